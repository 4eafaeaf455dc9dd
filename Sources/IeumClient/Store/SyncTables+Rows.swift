import Foundation
import Wire

/// Rows and values.
extension SyncTables {
    /// Reads a game with what is under way and what was not shown.
    func read(_ key: GameKey) throws -> HeldGame? {
        var game: HeldGame?
        try connection.rows(
            """
            SELECT g.state, g.schema, g.saved, g.stamp, g.base, g.device, g.unsent, i.id IS NOT NULL, i.saved, i.base,
                   i.schema, i.state, u.version
              FROM games AS g LEFT JOIN inflight AS i USING (collection, id) LEFT JOIN unseen AS u USING (collection, id)
             WHERE g.collection = ? AND g.id = ?
            """, [.text(key.collection), .text(key.id)]
        ) { row in
            var held = HeldGame(
                key: key, state: row.bytes(0), schema: Int32(clamping: row.integer(1)),
                saved: Timestamp(clamping: row.integer(2)),
                device: row.bytes(5).flatMap { UUID(bytes: $0) }.map { DeviceID($0) },
                stamp: row.isNull(3) ? nil : Timestamp(clamping: row.integer(3)))
            held.base =
                row.isNull(4) ? .nothing : row.integer(4) > 0 ? .revision(row.integer(4)) : .earlierEpoch
            held.standing = HeldGame.Standing(rawValue: Int(clamping: row.integer(6))) ?? .edited
            if row.integer(7) != 0 {
                held.sending = Push(
                    game: key, saved: Timestamp(clamping: row.integer(8)), base: row.isNull(9) ? nil : row.integer(9),
                    schema: Int32(clamping: row.integer(10)), state: row.bytes(11))
            }
            held.unseen = row.bytes(12).flatMap { Self.version($0) }
            game = held
        }
        return game
    }

    /// Writes a game.
    /// - Parameter isChanged: whether the app sees something else now.
    func write(_ game: HeldGame, isChanged: Bool = false) throws {
        let key: [SQLiteValue] = [.text(game.key.collection), .text(game.key.id)]
        let base: SQLiteValue =
            switch game.base {
            case .nothing: .null
            case .revision(let revision): .integer(revision)
            case .earlierEpoch: .integer(-1)
            }
        let row: [SQLiteValue] = [
            .bytes(game.state), .integer(Int64(game.schema)), .integer(game.saved.microseconds),
            game.stamp.map { .integer($0.microseconds) } ?? .null, base, .bytes(game.device.map { Array($0.bytes) }),
            .integer(Int64(game.standing.rawValue)),
        ]
        if isChanged {
            changed.insert(game.key.collection)
            let time = game.state.flatMap(timestamp) ?? game.saved.microseconds
            let change = try nextChange()
            try connection.run(
                """
                INSERT INTO games (
                    collection, id, state, schema, saved, stamp, base, device, unsent, timestamp, change, span)
                VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                ON CONFLICT (collection, id) DO UPDATE SET state = excluded.state, schema = excluded.schema,
                    saved = excluded.saved, stamp = excluded.stamp, base = excluded.base, device = excluded.device,
                    unsent = excluded.unsent, timestamp = excluded.timestamp, change = excluded.change,
                    span = excluded.span
                """, key + row + [.integer(time), .integer(change), .integer(StoreFile.span(of: change))])
        } else {
            try connection.run(
                """
                UPDATE games SET state = ?, schema = ?, saved = ?, stamp = ?, base = ?, device = ?, unsent = ?
                 WHERE collection = ? AND id = ?
                """, row + key)
        }
        if let push = game.sending {
            try connection.run(
                "INSERT OR REPLACE INTO inflight (collection, id, saved, base, schema, state) VALUES (?, ?, ?, ?, ?, ?)",
                key + [
                    .integer(push.saved?.microseconds ?? 0), push.base.map { .integer($0) } ?? .null,
                    .integer(Int64(push.schema)), .bytes(push.state),
                ])
        } else {
            try connection.run("DELETE FROM inflight WHERE collection = ? AND id = ?", key)
        }
        if let unseen = game.unseen {
            try connection.run(
                "INSERT OR REPLACE INTO unseen (collection, id, version) VALUES (?, ?, ?)",
                key + [.bytes(Self.line(unseen))])
        } else {
            try connection.run("DELETE FROM unseen WHERE collection = ? AND id = ?", key)
        }
    }

    /// Saves a state as the app would, without going through its type.
    func edit(_ key: GameKey, state: [UInt8]?, schema: Int32, wall: Timestamp) throws {
        let now = wall.advanced(byMicroseconds: try clockOffset())
        if var game = try read(key) {
            guard game.state != state || game.schema != schema else { return }
            game.edit(state: state, schema: schema, at: now)
            try write(game, isChanged: true)
        } else {
            try write(HeldGame(key: key, state: state, schema: schema, saved: now), isChanged: true)
        }
    }

    // MARK: Events

    func events(limit: Int) throws -> [StoredSyncEvent] {
        var events: [StoredSyncEvent] = []
        try connection.rows(
            """
            SELECT event, outcome, rival, mine, other, error FROM conflicts WHERE is_open = 0 ORDER BY event LIMIT ?
            """, [.integer(Int64(limit))]
        ) { row in
            guard let mine = row.bytes(3).flatMap({ Self.version($0) }) else { return }
            if let error = row.bytes(5) {
                guard case .error(let refusal)? = try? ServerLine.parse(error.span) else { return }
                let push = Push(
                    game: mine.game, saved: mine.header.saved, base: mine.header.base, schema: mine.header.schema,
                    state: mine.state)
                events.append(StoredSyncEvent(id: row.integer(0), kind: .refused(push, refusal)))
            } else {
                let conflict = PushConflict(
                    outcome: PushConflict.Outcome(rawValue: row.text(1) ?? "") ?? .lost, mine: mine,
                    otherRevision: row.integer(2), other: row.bytes(4).flatMap { Self.version($0) }, isOpen: false)
                events.append(StoredSyncEvent(id: row.integer(0), kind: .conflict(conflict)))
            }
        }
        return events
    }

    func removeEvent(_ id: Int64) throws {
        try connection.run("DELETE FROM conflicts WHERE event = ?", [.integer(id)])
    }

    func add(_ conflict: PushConflict) throws {
        try connection.run(
            "INSERT INTO conflicts (is_open, collection, id, outcome, rival, mine, other) VALUES (?, ?, ?, ?, ?, ?, ?)",
            [
                .integer(conflict.isOpen ? 1 : 0), .text(conflict.mine.game.collection), .text(conflict.mine.game.id),
                .text(conflict.outcome.rawValue), .integer(conflict.otherRevision), .bytes(Self.line(conflict.mine)),
                .bytes(conflict.other.map { Self.line($0) }),
            ])
    }

    func add(_ push: Push, _ error: WireError) throws {
        guard let own = try own() else { return }
        // Told once more, and in place of what nobody has heard yet.
        try connection.run(
            "DELETE FROM conflicts WHERE outcome = 'refused' AND collection = ? AND id = ?",
            [.text(push.game.collection), .text(push.game.id)])
        let saved = push.saved ?? .earliest
        let header = GameHeader(
            revision: 0, saved: saved, stamp: saved, device: own, schema: push.schema, base: push.base)
        var line: [UInt8] = []
        error.print(into: &line)
        try connection.run(
            "INSERT INTO conflicts (is_open, collection, id, outcome, mine, error) VALUES (0, ?, ?, 'refused', ?, ?)",
            [
                .text(push.game.collection), .text(push.game.id),
                .bytes(Self.line(GameVersion(game: push.game, header: header, state: push.state))),
                .bytes(Array(line.dropLast())),
            ])
    }

    func closeConflicts(_ key: GameKey, _ revision: Revision, _ version: GameVersion?) throws {
        // Two saves with the same bytes are no conflict.
        var same: [Int64] = []
        let open: [SQLiteValue] = [.text(key.collection), .text(key.id), .integer(revision)]
        try connection.rows(
            "SELECT event, mine FROM conflicts WHERE is_open = 1 AND collection = ? AND id = ? AND rival = ?", open
        ) { row in
            guard let version, let mine = row.bytes(1).flatMap({ Self.version($0) }) else { return }
            if mine.state == version.state { same.append(row.integer(0)) }
        }
        for event in same { try removeEvent(event) }
        try connection.run(
            "UPDATE conflicts SET is_open = 0, other = ? WHERE is_open = 1 AND collection = ? AND id = ? AND rival = ?",
            [.bytes(version.map { Self.line($0) })] + open)
    }

    /// A version as the line that the server tells it by.
    private static func line(_ version: GameVersion) -> [UInt8] {
        var bytes: [UInt8] = []
        version.print(into: &bytes)
        return Array(bytes.dropLast())
    }

    private static func version(_ line: [UInt8]) -> GameVersion? {
        guard case .game(let version)? = try? ServerLine.parse(line.span) else { return nil }
        return version
    }
}

extension DeviceID {
    fileprivate var bytes: [UInt8] { withUnsafeBytes(of: uuid.uuid) { Array($0) } }
}

extension SQLiteStatement {
    func key(_ collection: Int32, _ id: Int32) -> GameKey? {
        guard let collection = text(collection), let id = text(id) else { return nil }
        return try? GameKey(collection: collection, id: id)
    }
}
