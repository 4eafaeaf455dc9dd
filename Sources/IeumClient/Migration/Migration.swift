import Wire

/// What a migration block changes the stored objects with.
///
/// ```swift
/// let store = try GameStore(at: url, schemaVersion: 2) { migration, oldVersion in
///     if oldVersion < 1 {
///         try migration.enumerateObjects(ofType: Person.self) { old, new in
///             try new.set("fullName", to: "\(old.string("firstName")) \(old.string("lastName"))")
///         }
///     }
///     if oldVersion < 2 {
///         try migration.renameProperty(onType: Person.self, from: "phone", to: "mainPhoneNumber")
///     }
/// }
/// ```
/// The block runs once over the whole file, in one transaction, and then again for single states that arrive from devices
/// whose app is older still: these see only the one object, and what the block creates or deletes beside it is not done
/// for them. So a block changes objects by what they hold, and nothing else.
///
/// What a migration makes of an object is not an edit of the player's: it is not sent to the server, where the older apps
/// of the player's other devices still read what they wrote. The player's next save is.
///
/// Valid during the call that it is handed to, and on its thread.
public final class Migration {
    /// The schema that the app has.
    public let newVersion: Int
    /// The names of the collections that the file has or had objects of.
    public let collections: Set<String>

    /// The objects; nil once it is over, so that whoever keeps a migration does not keep the file open.
    private var rows: (any MigrationRows)?

    init(newVersion: Int, rows: any MigrationRows) throws {
        self.newVersion = newVersion
        self.rows = rows
        collections = try rows.collections()
    }

    // MARK: Objects

    /// Calls `body` for each object of a type that was there when the migration began, by ascending id.
    ///
    /// `old` is the object as it was before the migration, whatever was done since; `new` as it is now. Objects that the
    /// migration has created are not visited, those it has deleted are skipped. Left out is what cannot be read as JSON: it
    /// stays as it is.
    public func enumerateObjects<Game: Persistable>(
        ofType type: Game.Type, _ body: (_ old: OldObject, _ new: inout NewObject) throws -> Void
    ) throws {
        try enumerate(MigrationSite(collection: Game.collection, type: "\(Game.self)"), body)
    }

    /// The same for a collection that has no type any longer.
    /// - Throws: ``StoreError`` `invalidID` when there is no such collection in ``collections``: a mistyped name is not
    ///   "no objects".
    public func enumerateObjects(
        ofType collection: String, _ body: (_ old: OldObject, _ new: inout NewObject) throws -> Void
    ) throws {
        try enumerate(known(collection), body)
    }

    /// Gives a property of all objects of a type another name. Objects that have it not stored stay as they are.
    public func renameProperty<Game: Persistable>(onType type: Game.Type, from old: String, to new: String) throws {
        try enumerateObjects(ofType: type) { $1.rename(old, to: new) }
    }

    /// The same for a collection that has no type any longer.
    public func renameProperty(onType collection: String, from old: String, to new: String) throws {
        try enumerateObjects(ofType: collection) { $1.rename(old, to: new) }
    }

    /// Creates an object. Every device that migrates creates it: let the id follow from the data, or there will be several.
    /// - Throws: ``StoreError`` `invalidID` when there is one with this id.
    public func create<Game: Persistable>(_ game: Game) throws {
        let rows = try openRows()
        let key = try Game.key(game.id)
        guard try rows.state(of: key) == nil else {
            throw StoreError(.invalidID, "\(Game.self) \(game.id) cannot be created: there is one with this id")
        }
        try rows.create(key, StateCoder.encode(game))
    }

    /// Deletes an object.
    public func delete(_ object: NewObject) throws { try delete(object.site, object.id) }

    /// Deletes an object.
    public func delete(_ object: OldObject) throws { try delete(object.site, object.id) }

    /// Deletes all objects of a type.
    /// - Returns: whether there was one.
    @discardableResult
    public func deleteData<Game: Persistable>(forType type: Game.Type) throws -> Bool {
        try deleteData(MigrationSite(collection: Game.collection, type: "\(Game.self)"))
    }

    /// Deletes all objects of a collection that has no type any longer.
    /// - Returns: whether there was one; no collection of this name is no error, for that is what is wanted.
    @discardableResult
    public func deleteData(forType collection: String) throws -> Bool {
        try deleteData(MigrationSite(collection: collection, type: collection))
    }

    /// Nothing can be changed with it from here on.
    func close() { rows = nil }

    // MARK: Inside

    private func enumerate(_ site: MigrationSite, _ body: (OldObject, inout NewObject) throws -> Void) throws {
        let rows = try openRows()
        for key in try rows.keys(in: site.collection) {
            guard let (before, now) = try rows.read(key) else { continue }
            guard let old = try? PersistedState(json: before), let state = try? PersistedState(json: now) else {
                continue
            }
            var new = NewObject(id: key.id, state: state, site: site)
            try body(OldObject(id: key.id, state: old, site: site), &new)
            guard new.state != state, try rows.state(of: key) != nil else { continue }
            let bytes = new.state.bytes
            // What a server could not take is refused while the old file is still there.
            _ = try RawJSON(checking: bytes)
            try rows.change(key, to: bytes)
        }
    }

    private func delete(_ site: MigrationSite, _ id: String) throws {
        try openRows().delete(GameKey(collection: site.collection, id: id))
    }

    private func deleteData(_ site: MigrationSite) throws -> Bool {
        try openRows().deleteAll(in: site.collection)
    }

    private func known(_ collection: String) throws(StoreError) -> MigrationSite {
        let isWhole = try openRows().isWhole
        guard collections.contains(collection) || !isWhole else {
            throw StoreError(
                .invalidID, "the migration asks for objects of type \(collection), and there is no such collection",
                hint: """
                    The file has \(collections.isEmpty ? "none" : collections.sorted().joined(separator: ", ")). Name the \
                    type itself, e.g. Person.self, or look into migration.collections first, where it may never have been \
                    saved.
                    """)
        }
        return MigrationSite(collection: collection, type: collection)
    }

    private func openRows() throws(StoreError) -> any MigrationRows {
        guard let rows else { throw StoreError(.misuse, "the migration is over") }
        return rows
    }
}

/// Where a migration's objects are: in a file, or one alone.
protocol MigrationRows: AnyObject {
    /// Whether these are all objects there are, so that a name among them is missing for sure.
    var isWhole: Bool { get }
    func collections() throws -> Set<String>
    /// The objects that were there when the migration began, ascending.
    func keys(in collection: String) throws -> [GameKey]
    /// An object before the migration, and now; nil: it is gone.
    func read(_ key: GameKey) throws -> (before: [UInt8], now: [UInt8])?
    /// An object now, created ones included; nil: there is none.
    func state(of key: GameKey) throws -> [UInt8]?
    func change(_ key: GameKey, to state: [UInt8]) throws
    func create(_ key: GameKey, _ state: [UInt8]) throws
    func delete(_ key: GameKey) throws
    func deleteAll(in collection: String) throws -> Bool
}
