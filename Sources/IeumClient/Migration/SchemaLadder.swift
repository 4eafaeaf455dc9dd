import Wire

/// An app's way from any older schema to its own: the migration block.
package struct SchemaLadder: Sendable {
    /// The app's schema.
    package let version: Int
    let climb: @Sendable (Migration, _ oldVersion: Int) throws -> Void

    /// - Parameter climb: changes objects of `oldVersion` so that they fit `version`, skipped versions included.
    package init(to version: Int, _ climb: @escaping @Sendable (Migration, _ oldVersion: Int) throws -> Void) {
        self.version = version
        self.climb = climb
    }

    /// Takes one state up that an app of an older schema has saved.
    /// - Throws: ``StoreError`` `newerSchema` for a state of a newer app, which is to be kept as it is; what the block
    ///   throws; `migrationFailed` when the block deletes the object.
    package func state(of key: GameKey, _ state: PersistedState, schema: Int) throws -> PersistedState {
        guard schema <= version else { throw StoreError.needsNewerApp(key, schema: schema, known: version) }
        guard schema < version else { return state }
        let rows = SingleState(key: key, before: state.bytes)
        let migration = try Migration(newVersion: version, rows: rows)
        defer { migration.close() }
        try climb(migration, schema)
        guard let now = rows.now else {
            throw StoreError(
                .migrationFailed, "\(key) of schema \(schema) is deleted by the migration to schema \(version)",
                hint: "It is kept as it is. Delete it, or leave it in the migration.",
                place: StoreError.Place(collection: key.collection, id: key.id, type: "", property: ""))
        }
        return try PersistedState(json: now)
    }
}

/// One object alone, as it came from another device.
private final class SingleState: MigrationRows {
    let key: GameKey
    let before: [UInt8]
    private(set) var now: [UInt8]?

    init(key: GameKey, before: [UInt8]) {
        self.key = key
        self.before = before
        now = before
    }

    var isWhole: Bool { false }

    func collections() -> Set<String> { [key.collection] }

    func keys(in collection: String) -> [GameKey] { collection == key.collection ? [key] : [] }

    func read(_ key: GameKey) -> (before: [UInt8], now: [UInt8])? { now.map { (before, $0) } }

    func state(of key: GameKey) -> [UInt8]? { key == self.key ? now : nil }

    func change(_ key: GameKey, to state: [UInt8]) {
        if key == self.key, now != nil { now = state }
    }

    func create(_ key: GameKey, _ state: [UInt8]) {}

    func delete(_ key: GameKey) {
        if key == self.key { now = nil }
    }

    func deleteAll(in collection: String) -> Bool {
        guard collection == key.collection, now != nil else { return false }
        now = nil
        return true
    }
}

extension StoreError {
    /// What is said of a state that a newer app has saved.
    static func needsNewerApp(_ key: GameKey, schema: Int, known: Int) -> StoreError {
        StoreError(
            .newerSchema, "\(key) was saved by an app with schema \(schema), and this one has schema \(known)",
            hint: "Update the app. The game is kept as it is.",
            place: StoreError.Place(collection: key.collection, id: key.id, type: "", property: ""))
    }
}
