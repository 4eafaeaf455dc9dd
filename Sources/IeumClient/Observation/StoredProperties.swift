/// The properties that an observer names: what is stored of them, and how their values are compared.
///
/// A key path tells its names when printed, e.g. `\Game.keyBoard.keys`; a computed property, or one with `didSet`, tells
/// none. Whether a property that has a place in the value also has one in the stored state is seen from the keys that the
/// type's defaults are encoded with, where it declares some.
struct StoredProperties<Game: Persistable>: Sendable {
    private let keyPaths: [PartialKeyPath<Game> & Sendable]

    /// - Throws: ``StoreError`` `misuse`.
    init(_ keyPaths: [PartialKeyPath<Game> & Sendable]) throws(StoreError) {
        self.keyPaths = keyPaths
        for keyPath in keyPaths { try Self.check(keyPath) }
    }

    /// Whether two rows hold the same in all these properties.
    var isSame: @Sendable (Result<Game, StoreError>, Result<Game, StoreError>) -> Bool {
        { [keyPaths] left, right in
            switch (left, right) {
            case (.success(let left), .success(let right)):
                keyPaths.allSatisfy { Self.isEqual(left[keyPath: $0], right[keyPath: $0]) }
            case (.failure(let left), .failure(let right)): left == right
            default: false
            }
        }
    }

    private static func check(_ keyPath: PartialKeyPath<Game> & Sendable) throws(StoreError) {
        let valueType = type(of: keyPath).valueType
        guard valueType is any Equatable.Type || valueType is any Encodable.Type else {
            throw refusal(keyPath, "its values, of type \(valueType), can be neither compared nor encoded")
        }
        let name = firstName(keyPath)
        if name == "self" { return }
        guard !name.hasPrefix("<") else {
            throw refusal(keyPath, "it is computed, or watched by willSet or didSet, and such a property has no name")
        }
        guard let keys = storedKeys(), !keys.contains(name) else { return }
        // Where keys have other names than properties, there is no telling which is whose.
        guard let defaults = Game.defaults else { return }
        guard keys.isSubset(of: Set(Mirror(reflecting: defaults).children.compactMap(\.label))) else { return }
        throw refusal(keyPath, "it is not stored; \(keys.sorted().joined(separator: ", ")) are")
    }

    private static func refusal(_ keyPath: PartialKeyPath<Game>, _ reason: String) -> StoreError {
        StoreError(
            .misuse, "\(Game.self) cannot be observed by \(keyPath.debugDescription): \(reason)",
            hint: "Name properties that are stored.",
            place: StoreError.Place(collection: Game.collection, type: "\(Game.self)", property: firstName(keyPath)))
    }

    /// The first property on the path.
    private static func firstName(_ keyPath: PartialKeyPath<Game>) -> String {
        let root = (\Game.self as PartialKeyPath<Game>).debugDescription.dropLast("self".count)
        let path = keyPath.debugDescription
        guard path.hasPrefix(root) else { return path }
        let rest = path.dropFirst(root.count)
        if rest.hasPrefix("<") { return String(rest) }
        return String(rest.prefix { !".?![".contains($0) })
    }

    /// The keys that a value is stored with, those of nils included; `nil`: the type declares no defaults.
    private static func storedKeys() -> Set<String>? {
        guard let defaults = Game.PersistedObject.defaults else { return nil }
        let spy = KeySpy()
        try? defaults.encode(to: spy)
        return spy.names.isEmpty ? nil : spy.names
    }

    private static func isEqual(_ left: Any, _ right: Any) -> Bool {
        if let left = left as? any Equatable { return isEqual(left, to: right) }
        guard let left = left as? any Encodable, let right = right as? any Encodable,
            let before = try? StateCoder.encode(value: left), let after = try? StateCoder.encode(value: right)
        else { return false }
        return before == after
    }

    private static func isEqual<Value: Equatable>(_ left: Value, to right: Any) -> Bool { left == right as? Value }
}
