import Foundation

/// An object as an app of an older schema saved it: read-only, with its old names and types.
///
/// ```swift
/// let name = try old.string("firstName")
/// let numbers = try old.list("phoneNumbers", of: String.self)
/// let nickname = try old.optional("nickname", as: String.self)
/// ```
/// Every reading throws a ``StoreError`` that names the type, the property, what is stored there and what was asked for.
/// Numbers come out of their text: integers beyond 2^53 are exact.
public struct OldObject: Sendable {
    /// The object's key in the store; of a nested object, that of the object around it.
    public let id: String
    let state: PersistedState
    let site: MigrationSite

    init(id: String, state: PersistedState, site: MigrationSite) {
        self.id = id
        self.state = state
        self.site = site
    }

    /// The properties that are stored, in their order.
    public var keys: [String] { state.keys }

    /// The whole object's JSON text.
    public var json: Data { state.json }

    /// Whether a property is stored, `null` or not.
    public func contains(_ property: String) -> Bool { state.contains(property) }

    /// What is stored for a property: `try old["phoneNumbers"].strings`.
    public subscript(property: String) -> OldValue {
        OldValue(id: id, raw: state.raw(property), site: site.property(property))
    }

    /// A text.
    public func string(_ property: String) throws(StoreError) -> String { try self[property].string }

    /// An integer.
    public func int(_ property: String) throws(StoreError) -> Int { try self[property].int }

    /// A number; `"NaN"`, `"Infinity"` and `"-Infinity"` too.
    public func double(_ property: String) throws(StoreError) -> Double { try self[property].double }

    /// A truth value.
    public func bool(_ property: String) throws(StoreError) -> Bool { try self[property].bool }

    /// Bytes, stored as base64.
    public func data(_ property: String) throws(StoreError) -> Data { try self[property].data }

    /// A moment, stored as ISO 8601 text.
    public func date(_ property: String) throws(StoreError) -> Date { try self[property].date }

    /// A UUID, stored as text.
    public func uuid(_ property: String) throws(StoreError) -> UUID { try self[property].uuid }

    /// A nested object.
    public func object(_ property: String) throws(StoreError) -> OldObject { try self[property].object }

    /// A list of nested objects, in order.
    public func objects(_ property: String) throws(StoreError) -> [OldObject] { try self[property].objects }

    /// A list, in order and with its duplicates.
    public func list<Element: Decodable>(_ property: String, of type: Element.Type) throws(StoreError) -> [Element] {
        try self[property].list(of: type)
    }

    /// A value of any type that can be decoded.
    public func value<Value: Decodable>(_ property: String, as type: Value.Type) throws(StoreError) -> Value {
        try self[property].value(as: type)
    }

    /// A value that may be missing or `null`: nil then.
    public func optional<Value: Decodable>(_ property: String, as type: Value.Type) throws(StoreError) -> Value? {
        try self[property].optional(as: type)
    }
}

/// What is stored for one property of an ``OldObject``.
public struct OldValue: Sendable {
    let id: String
    let raw: RawJSON?
    let site: MigrationSite

    /// Whether nothing is stored, or `null`.
    public var isNil: Bool { raw == nil || raw?.kind == .null }

    /// The type in the JSON text: `object`, `array`, `string`, `number`, `bool` or `null`; nil: nothing is stored.
    public var storedType: String? { raw?.kind.rawValue }

    /// A text.
    public var string: String { get throws(StoreError) { try value(as: String.self) } }

    /// An integer.
    public var int: Int { get throws(StoreError) { try value(as: Int.self) } }

    /// A number.
    public var double: Double { get throws(StoreError) { try value(as: Double.self) } }

    /// A truth value.
    public var bool: Bool { get throws(StoreError) { try value(as: Bool.self) } }

    /// Bytes, stored as base64.
    public var data: Data { get throws(StoreError) { try value(as: Data.self) } }

    /// A moment, stored as ISO 8601 text.
    public var date: Date { get throws(StoreError) { try value(as: Date.self) } }

    /// A UUID, stored as text.
    public var uuid: UUID { get throws(StoreError) { try value(as: UUID.self) } }

    /// A list of texts.
    public var strings: [String] { get throws(StoreError) { try list(of: String.self) } }

    /// A list of integers.
    public var ints: [Int] { get throws(StoreError) { try list(of: Int.self) } }

    /// A list of numbers.
    public var doubles: [Double] { get throws(StoreError) { try list(of: Double.self) } }

    /// A nested object.
    public var object: OldObject {
        get throws(StoreError) { try nested(raw, site, asked: "object") }
    }

    /// A list of nested objects.
    public var objects: [OldObject] {
        get throws(StoreError) {
            guard let elements = raw?.elements else { throw site.mismatch(id, stored: raw, asked: "list of objects") }
            var objects: [OldObject] = []
            objects.reserveCapacity(elements.count)
            for (index, element) in elements.enumerated() {
                objects.append(try nested(element, site.element(index), asked: "object"))
            }
            return objects
        }
    }

    /// A list, in order and with its duplicates.
    public func list<Element: Decodable>(of type: Element.Type) throws(StoreError) -> [Element] {
        guard raw?.kind == .array else { throw site.mismatch(id, stored: raw, asked: "list of \(type)") }
        return try value(as: [Element].self)
    }

    /// A value that may be missing or `null`: nil then.
    public func optional<Value: Decodable>(as type: Value.Type) throws(StoreError) -> Value? {
        isNil ? nil : try value(as: type)
    }

    /// A value of any type that can be decoded.
    public func value<Value: Decodable>(as type: Value.Type) throws(StoreError) -> Value {
        guard let raw else {
            // A property that is nil is not stored at all.
            if let none = (type as? any ExpressibleByNilLiteral.Type)?.init(nilLiteral: ()) as? Value { return none }
            throw site.mismatch(id, stored: nil, asked: "\(type)")
        }
        do {
            return try StateCoder.decode(value: type, Array(raw.text))
        } catch {
            throw site.unreadable(id, raw, as: type, error)
        }
    }

    private func nested(_ raw: RawJSON?, _ site: MigrationSite, asked: String) throws(StoreError) -> OldObject {
        guard let members = raw?.members else { throw site.mismatch(id, stored: raw, asked: asked) }
        return OldObject(id: id, state: PersistedState(members: members), site: site)
    }
}

/// Where in the old data a migration reads or writes, as its errors name it.
struct MigrationSite: Sendable {
    var collection: String
    var type: String
    var path = ""

    func property(_ name: String) -> MigrationSite {
        var site = self
        site.path += path.isEmpty ? name : ".\(name)"
        return site
    }

    func element(_ index: Int) -> MigrationSite {
        var site = self
        site.path += "[\(index)]"
        return site
    }

    private func name(_ place: StoreError.Place) -> String {
        "\(type)\(place.property.isEmpty ? "" : ".\(place.property)") of \(collection) \(place.id ?? "")"
    }

    private func place(_ id: String, stored: RawJSON?, asked: String) -> StoreError.Place {
        StoreError.Place(
            collection: collection, id: id, type: type, property: path, storedType: stored?.kind.rawValue,
            askedType: asked)
    }

    /// The type is another one, or nothing is there.
    func mismatch(_ id: String, stored: RawJSON?, asked: String) -> StoreError {
        let place = place(id, stored: stored, asked: asked)
        guard let stored else {
            return StoreError(
                .missingKey, "\(name(place)) was asked for as \(asked), but nothing is stored there",
                hint: "Ask with optional(_:as:) if it may be missing.", place: place)
        }
        return StoreError(
            .typeMismatch, "\(name(place)) was asked for as \(asked), but \(stored.kind.rawValue) is stored",
            place: place)
    }

    /// What decoding said, with its own path after this one.
    func unreadable(_ id: String, _ raw: RawJSON, as type: Any.Type, _ error: any Error) -> StoreError {
        var site = self
        var stored: RawJSON? = raw
        func follow(_ path: [any CodingKey]) {
            for key in path {
                if let index = key.intValue {
                    let elements = stored?.elements ?? []
                    stored = elements.indices.contains(index) ? elements[index] : nil
                    site = site.element(index)
                } else {
                    stored = stored?[key.stringValue]
                    site = site.property(key.stringValue)
                }
            }
        }
        switch error {
        case DecodingError.typeMismatch(let asked, let context), DecodingError.valueNotFound(let asked, let context):
            follow(context.codingPath)
            return site.mismatch(id, stored: stored, asked: "\(asked)")
        case DecodingError.keyNotFound(let key, let context):
            follow(context.codingPath + [key])
            return site.mismatch(id, stored: nil, asked: "\(type)")
        case DecodingError.dataCorrupted(let context):
            follow(context.codingPath)
            let place = site.place(id, stored: stored, asked: "\(type)")
            return StoreError(
                .unknownValue, "\(site.name(place)) cannot be read as \(type): \(context.debugDescription)",
                place: place)
        default:
            let place = place(id, stored: raw, asked: "\(type)")
            return StoreError(.unknownValue, "\(name(place)) cannot be read as \(type): \(error)", place: place)
        }
    }
}
