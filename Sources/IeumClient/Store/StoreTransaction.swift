import CSQLite
import Wire

/// The inside of a ``GameStore/write(_:)``: what is saved here is on disk as a whole, or not at all.
///
/// Valid during the call that it is handed to, and on its thread.
public final class StoreTransaction {
    let connection: SQLiteConnection
    let memory: StateMemory
    let schemaVersion: Int32
    package var clock: @Sendable () -> Timestamp
    let upgrade: StateUpgrade?
    let damaged: DamagedKeys
    private(set) var rows: [GameKey: Int64] = [:]
    private var start: SavedRow.Start?
    /// The same as the last transaction left it: so it is as long as this one has changed nothing.
    private var startBefore: SavedRow.Start?
    /// How many rows the connection had changed when this transaction began.
    private var changesBefore: Int64 = 0
    /// The row that was saved last, and how many rows the connection had changed then.
    private var lastHead: (key: GameKey, head: SavedRow.Head, total: Int64)?
    /// The collections whose visible rows have changed.
    package private(set) var changed: Set<String> = []
    private var isOpen = true

    init(_ store: GameStore, _ writer: StoreWriter) {
        connection = writer.connection
        memory = store.memory
        schemaVersion = store.schemaVersion
        clock = store.clock
        upgrade = store.upgrade
        damaged = store.damagedKeys
    }

    // MARK: Saving

    /// Saves a value. One that says the same as what is stored changes nothing at all.
    /// - Throws: ``StoreError``, of kind `newerSchema`, `typeMismatch` and so on when what is stored under the id cannot
    ///   be read: it is not overwritten. Delete it first if that is meant.
    public func save<Game: Persistable>(_ game: Game) throws(StoreError) {
        try checkOpen()
        let key = try Game.key(game.id)
        let new = try StateCoder.encode(game)
        let time = try Self.micros(game)
        var row = savedHead(Game.self, key, comparing: new)
        if row == nil { row = try readHead(key, comparing: new) }
        guard let row else {
            try insert(key, state: new, timestamp: time)
            remember(Game.self, key, state: new, known: nil)
            return
        }
        guard !row.isSame else { return }
        guard !row.isDeleted, let (old, known) = try unknownParts(Game.self, key, row) else {
            try update(key, row, state: new, timestamp: time)
            remember(Game.self, key, state: new, known: nil)
            return
        }
        let carried = UnknownKeys.carried(
            from: RawJSON(trusted: old[...]), known: RawJSON(trusted: known[...]), into: RawJSON(trusted: new[...]))
        let state = Array(carried.text)
        if state == old, row.schema == schemaVersion { return }
        try update(key, row, state: state, timestamp: time)
        remember(Game.self, key, state: state, known: state == new ? nil : new)
    }

    private func remember<Game: Persistable>(_ type: Game.Type, _ key: GameKey, state: [UInt8], known: [UInt8]?) {
        memory.remember(
            key,
            StateMemory.Entry(change: rows[key] ?? 0, type: ObjectIdentifier(type), state: state, known: known))
    }

    /// Deletes a game, whether it can be read or not. Nothing happens when there is none.
    /// - Returns: whether there was one.
    @discardableResult
    public func delete<Game: Persistable>(_ type: Game.Type, id: String) throws(StoreError) -> Bool {
        try checkOpen()
        let key = try Game.key(id)
        guard let row = try readHead(key, comparing: []), !row.isDeleted else { return false }
        try update(key, row, state: nil, timestamp: row.timestamp)
        return true
    }

    // MARK: Reading

    /// The game with the greatest ``Persistable/timestamp``; nil: there is none. Of several with the same, the one with
    /// the greatest id.
    public func latest<Game: Persistable>(_ type: Game.Type) throws(StoreError) -> Game? {
        try checkOpen()
        return try reader.latest(type)
    }

    /// A game; nil: there is none with this id.
    public func object<Game: Persistable>(_ type: Game.Type, id: String) throws(StoreError) -> Game? {
        try checkOpen()
        return try reader.object(type, id: id)
    }

    /// All games of a type by id. See ``GameStore/objects(_:where:sortedBy:)``.
    public func objects<Game: Persistable>(_ type: Game.Type) throws(StoreError) -> [Game] {
        try checkOpen()
        return try reader.objects(type)
    }

    // MARK: For those who work beside the store

    /// Takes note that visible rows of a collection were changed by statements of one's own.
    package func noteChange(of collection: String) {
        changed.insert(collection)
    }

    /// Saves a state as it is, past its type: what a migration or a restored version is stored by.
    package func save(_ key: GameKey, state: [UInt8]?, timestamp: Int64? = nil) throws(StoreError) {
        try checkOpen()
        let time = timestamp ?? state.flatMap { GameStore.timestamp(ofState: $0) }
        guard let row = try readHead(key, comparing: state ?? []) else {
            if let state { try insert(key, state: state, timestamp: time ?? clock().microseconds) }
            return
        }
        if row.isSame || (row.isDeleted && state == nil) { return }
        try update(key, row, state: state, timestamp: time ?? row.timestamp)
    }

    var reader: StoreReader {
        StoreReader(
            connection: connection, memory: memory, schemaVersion: schemaVersion, upgrade: upgrade, damaged: damaged)
    }

    func close() { isOpen = false }

    private func checkOpen() throws(StoreError) {
        guard isOpen else { throw StoreError(.misuse, "the transaction is over") }
        // SQLite ends a transaction by itself, e.g. when the disk is full: what followed would stand alone.
        guard connection.isInTransaction else {
            throw StoreError(.misuse, "the transaction was rolled back after an error that the closure went on from")
        }
    }

    // MARK: Rows

    /// Takes what the last transaction has left, if nobody has changed the file since.
    func begin(after saved: SavedRow?) {
        changesBefore = connection.totalChanges
        guard let saved, saved.version == connection.dataVersion else { return }
        startBefore = saved.start
        lastHead = (saved.key, saved.head, changesBefore)
    }

    /// What this transaction leaves to the next one: the row that it has saved, if it has changed nothing but that.
    var savedRow: (key: GameKey, head: SavedRow.Head, start: SavedRow.Start)? {
        guard let lastHead, let start, let lastChange, lastChange == lastHead.head.change,
            lastHead.total == connection.totalChanges, lastHead.total == changesBefore + 1
        else { return nil }
        return (lastHead.key, lastHead.head, SavedRow.Start(change: lastChange, clockOffset: start.clockOffset))
    }

    /// The head that was saved last; nil: it is another game's, or something was changed since.
    private func savedHead<Game: Persistable>(_ type: Game.Type, _ key: GameKey, comparing state: [UInt8])
        -> SavedRow.Head?
    {
        guard let lastHead, lastHead.key == key, lastHead.total == connection.totalChanges,
            let entry = memory[key, lastHead.head.change, type]
        else { return nil }
        var head = lastHead.head
        head.isSame = entry.state == state
        return head
    }

    private func readHead(_ key: GameKey, comparing state: [UInt8]) throws(StoreError) -> SavedRow.Head? {
        var head: SavedRow.Head?
        try connection.rows(
            """
            SELECT rowid, state, schema, timestamp, saved, stamp, unsent, change FROM games
             WHERE collection = ? AND id = ?
            """, [.text(key.collection), .text(key.id)]
        ) { row in
            let schema = Int32(clamping: row.integer(2))
            head = SavedRow.Head(
                rowid: row.integer(0), isDeleted: row.isNull(1), isSame: row.holds(state, 1) && schema == schemaVersion,
                schema: schema, timestamp: row.integer(3), saved: row.integer(4),
                stamp: row.isNull(5) ? nil : row.integer(5), isUnsent: row.integer(6) == 1 || row.integer(6) == 3,
                isEdited: row.integer(6) == 1, change: row.integer(7))
        }
        return head
    }

    /// What is stored, and what its own type leaves of it; nil: the type leaves all of it.
    private func unknownParts<Game: Persistable>(_ type: Game.Type, _ key: GameKey, _ row: SavedRow.Head)
        throws(StoreError)
        -> (state: [UInt8], known: [UInt8])?
    {
        if let entry = memory[key, row.change, type] { return entry.known.map { (entry.state, $0) } }
        var bytes: [UInt8] = []
        try connection.rows("SELECT state FROM games WHERE rowid = ?", [.integer(row.rowid)]) { row in
            bytes = row.bytes(0) ?? []
        }
        do throws(StoreError) {
            let state = try reader.current(key, bytes, schema: row.schema)
            let known = try StateCoder.known(type, id: key.id, state)
            return state == known ? nil : (state, known)
        } catch {
            if error.kind == .invalidState { damaged.note(key) }
            throw error
        }
    }

    private func insert(_ key: GameKey, state: [UInt8], timestamp: Int64) throws(StoreError) {
        let change = try nextChange()
        try connection.run(
            """
            INSERT INTO games (collection, id, change, span, timestamp, schema, saved, unsent, state)
            VALUES (?, ?, ?, ?, ?, ?, ?, 1, ?)
            """, .text(key.collection), .text(key.id), .integer(change), .integer(StoreFile.span(of: change)),
            .integer(timestamp), .integer(Int64(schemaVersion)), .integer(try now()), .bytes(state))
        note(key, change)
    }

    private func update(_ key: GameKey, _ row: SavedRow.Head, state: [UInt8]?, timestamp: Int64) throws(StoreError) {
        let change = try nextChange()
        let saved = try nextSaved(row)
        var values: [SQLiteValue] = [
            state.map { .bytes($0) } ?? .null, .integer(timestamp), .integer(Int64(schemaVersion)), .integer(saved),
            .integer(change), .integer(row.rowid),
        ]
        // An index whose columns are not named is not written: an edit of what is unsent anyhow is a page cheaper, and so is one
        // in the span of the edit before.
        let span = StoreFile.span(of: change)
        if row.isEdited, span == StoreFile.span(of: row.change) {
            try connection.run(Self.update, values)
        } else {
            values.append(.integer(span))
            try connection.run(row.isEdited ? Self.updateWithSpan : Self.updateSent, values)
        }
        note(key, change)
        let head = SavedRow.Head(
            rowid: row.rowid, isDeleted: state == nil, isSame: false, schema: schemaVersion, timestamp: timestamp,
            saved: saved, stamp: row.stamp, isUnsent: true, isEdited: true, change: change)
        lastHead = (key, head, connection.totalChanges)
    }

    private static let update =
        "UPDATE games SET state = ?1, timestamp = ?2, schema = ?3, saved = ?4, change = ?5 WHERE rowid = ?6"
    private static let updateWithSpan =
        "UPDATE games SET state = ?1, timestamp = ?2, schema = ?3, saved = ?4, change = ?5, span = ?7 WHERE rowid = ?6"
    private static let updateSent = """
        UPDATE games SET state = ?1, timestamp = ?2, schema = ?3, saved = ?4, change = ?5, span = ?7, device = NULL, unsent = 1
         WHERE rowid = ?6
        """

    private func note(_ key: GameKey, _ change: Int64) {
        rows[key] = change
        changed.insert(key.collection)
    }

    private func readStart() throws(StoreError) -> SavedRow.Start {
        if let start { return start }
        if let startBefore, connection.totalChanges == changesBefore {
            start = startBefore
            return startBefore
        }
        var start = SavedRow.Start(change: 0, clockOffset: 0)
        try connection.rows(
            """
            SELECT \(StoreFile.lastChange),
                   (SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'clock_offset')
            """
        ) { row in
            start = SavedRow.Start(change: row.integer(0), clockOffset: row.integer(1))
        }
        self.start = start
        return start
    }

    /// The clock's time, corrected by what is known of the server's.
    private func now() throws(StoreError) -> Int64 {
        clock().advanced(byMicroseconds: try readStart().clockOffset).microseconds
    }

    /// After every stamp heard of for the game, and after the save that it replaces before the server has acknowledged that.
    ///
    /// What the server acknowledged counts by its stamp, to which it holds a clock down that runs ahead: such a save must
    /// not make those after it, by a clock that was set right, win conflicts for as long as the clock was ahead.
    private func nextSaved(_ row: SavedRow.Head) throws(StoreError) -> Int64 {
        var next = Timestamp(clamping: try now())
        if let stamp = row.stamp { next = max(next, Timestamp(clamping: stamp).advanced(byMicroseconds: 1)) }
        // No two states of a game get the same.
        if row.isUnsent ? next.microseconds <= row.saved : next.microseconds == row.saved {
            next = Timestamp(clamping: row.saved).advanced(byMicroseconds: 1)
        }
        return next.microseconds
    }

    /// The number of the last visible change, this transaction's included; nil: it has made none.
    private(set) var lastChange: Int64?

    /// A number for the next visible change. Nobody else can give one before the transaction is over.
    func nextChange() throws(StoreError) -> Int64 {
        let last = if let lastChange { lastChange } else { try readStart().change }
        let (next, isOverflow) = last.addingReportingOverflow(1)
        guard !isOverflow, last >= 0 else {
            throw StoreError(
                sqlite: SQLITE_CORRUPT, message: "a change has the number \(last)", path: connection.path,
                context: "SELECT max(change)")
        }
        lastChange = next
        return next
    }

    private static func micros<Game: Persistable>(_ game: Game) throws(StoreError) -> Int64 {
        guard let micros = DateText.microseconds(game.timestamp) else {
            throw StoreError(
                .notEncodable,
                "\(Game.self).timestamp of \(game.id) cannot be stored: dates are of the years 0000 to 9999")
        }
        return micros
    }
}

extension Persistable {
    /// The game's name; throws `invalidID`.
    static func key(_ id: String) throws(StoreError) -> GameKey {
        do throws(WireError) {
            // One game whatever the normal form of its id: Swift does not tell them apart.
            return try GameKey(normalizing: collection, id)
        } catch {
            throw StoreError(.invalidID, "\(Self.self) \(id): \(error.message)", hint: error.hint)
        }
    }
}
