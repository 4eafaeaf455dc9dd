/// Reads what a ``StateEncoder`` wrote, and what other hands write: any JSON.
///
/// As Foundation's `JSONDecoder` does, but for three things: of a key that stands twice in an object the last one counts, as in
/// PostgreSQL; a whole number is exact however it is spelled; and a value that never ends is an error.
struct StateDecoder: Decoder {
    let reading: StateReading
    let index: Int
    let place: DecodingPlace

    var codingPath: [any CodingKey] { place.path }
    var userInfo: [CodingUserInfoKey: Any] { reading.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(try StateObjectReader<Key>(reading, index, place))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer { try StateArrayReader(reading, index, place) }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }
}

extension StateDecoder: SingleValueDecodingContainer {
    func decodeNil() -> Bool { reading.kind(index) == .null }
    func decode(_ type: Bool.Type) throws -> Bool { try reading.bool(index, at: place) }
    func decode(_ type: String.Type) throws -> String { try reading.string(index, at: place) }
    func decode(_ type: Double.Type) throws -> Double { try reading.double(type, index, at: place) }
    func decode(_ type: Float.Type) throws -> Float { try reading.double(type, index, at: place) }
    func decode(_ type: Int.Type) throws -> Int { try reading.integer(type, index, at: place) }
    func decode(_ type: Int8.Type) throws -> Int8 { try reading.integer(type, index, at: place) }
    func decode(_ type: Int16.Type) throws -> Int16 { try reading.integer(type, index, at: place) }
    func decode(_ type: Int32.Type) throws -> Int32 { try reading.integer(type, index, at: place) }
    func decode(_ type: Int64.Type) throws -> Int64 { try reading.integer(type, index, at: place) }
    func decode(_ type: Int128.Type) throws -> Int128 { try reading.integer(type, index, at: place) }
    func decode(_ type: UInt.Type) throws -> UInt { try reading.integer(type, index, at: place) }
    func decode(_ type: UInt8.Type) throws -> UInt8 { try reading.integer(type, index, at: place) }
    func decode(_ type: UInt16.Type) throws -> UInt16 { try reading.integer(type, index, at: place) }
    func decode(_ type: UInt32.Type) throws -> UInt32 { try reading.integer(type, index, at: place) }
    func decode(_ type: UInt64.Type) throws -> UInt64 { try reading.integer(type, index, at: place) }
    func decode(_ type: UInt128.Type) throws -> UInt128 { try reading.integer(type, index, at: place) }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        // One deeper: a value that is made of itself does not go on for ever.
        try reading.value(type, index, at: DecodingPlace(place, .root))
    }
}

/// The `Decoder`'s side of an object.
struct StateObjectReader<Key: CodingKey>: KeyedDecodingContainerProtocol {
    private let reading: StateReading
    private let place: DecodingPlace
    /// The entries of the members: of each key one, and behind it those of its value.
    private let first: Int
    private let end: Int
    /// The keys of an object with many, by their bytes.
    private let places: [[UInt8]: Int]?

    /// Up to so many members are looked through one by one.
    private static var fewMembers: Int { 16 }

    init(_ reading: StateReading, _ index: Int, _ place: DecodingPlace) throws {
        guard reading.kind(index) == .object else { throw reading.mismatch([String: Any].self, index, place) }
        self.reading = reading
        self.place = place
        let tape = reading.tape
        (first, end) = tape.children(of: index)
        guard tape.entries[index].count > Self.fewMembers else {
            places = nil
            return
        }
        var places: [[UInt8]: Int] = [:]
        var key = first
        while key + 1 < end {
            if let text = tape.text(tape.entries[key]) { places[Array(text.utf8)] = key }
            key = tape.entries[key + 1].next
        }
        self.places = places
    }

    /// The last key for which something holds.
    private func lastKey(_ isWanted: (StateTape.Entry) -> Bool) -> Int? {
        let entries = reading.tape.entries
        var (key, found) = (first, Int?.none)
        while key + 1 < end {
            if isWanted(entries[key]) { found = key }
            key = entries[key + 1].next
        }
        return found
    }

    var codingPath: [any CodingKey] { place.path }

    var allKeys: [Key] {
        var seen: Set<[UInt8]> = []
        var keys: [Key] = []
        _ = lastKey { entry in
            if let text = reading.tape.text(entry), seen.insert(Array(text.utf8)).inserted,
                let key = Key(stringValue: text)
            {
                keys.append(key)
            }
            return false
        }
        return keys
    }

    func contains(_ key: Key) -> Bool { find(key.stringValue) != nil }

    /// The entry of a key's value; nil: there is no such key.
    private func find(_ name: String) -> Int? {
        if let places {
            if let found = places[Array(name.utf8)] { return found + 1 }
        } else if let found = search(name) {
            return found + 1
        }
        // The same key in another normal form: Swift does not tell them apart.
        guard !name.utf8.allSatisfy({ $0 < 0x80 }) else { return nil }
        return lastKey { reading.tape.text($0) == name }.map { $0 + 1 }
    }

    private func search(_ name: String) -> Int? {
        var name = name
        let tape = reading.tape
        return name.withUTF8 { name in
            lastKey { entry in
                guard entry.isEscaped else { return tape.holds(entry, name) }
                return tape.text(entry)?.utf8.elementsEqual(name) ?? false
            }
        }
    }

    private func entry(_ key: Key) throws -> Int {
        if let found = find(key.stringValue) { return found }
        throw DecodingError.keyNotFound(
            key,
            DecodingError.Context(codingPath: codingPath, debugDescription: "there is no key \(key.stringValue)"))
    }

    private func inner(_ key: some CodingKey) -> DecodingPlace { DecodingPlace(place, .key(key)) }

    func decodeNil(forKey key: Key) throws -> Bool { reading.kind(try entry(key)) == .null }
    func decode(_ type: Bool.Type, forKey key: Key) throws -> Bool { try reading.bool(entry(key), at: inner(key)) }
    func decode(_ type: String.Type, forKey key: Key) throws -> String {
        try reading.string(entry(key), at: inner(key))
    }
    func decode(_ type: Double.Type, forKey key: Key) throws -> Double { try double(type, key) }
    func decode(_ type: Float.Type, forKey key: Key) throws -> Float { try double(type, key) }
    func decode(_ type: Int.Type, forKey key: Key) throws -> Int { try integer(type, key) }
    func decode(_ type: Int8.Type, forKey key: Key) throws -> Int8 { try integer(type, key) }
    func decode(_ type: Int16.Type, forKey key: Key) throws -> Int16 { try integer(type, key) }
    func decode(_ type: Int32.Type, forKey key: Key) throws -> Int32 { try integer(type, key) }
    func decode(_ type: Int64.Type, forKey key: Key) throws -> Int64 { try integer(type, key) }
    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 { try integer(type, key) }
    func decode(_ type: UInt.Type, forKey key: Key) throws -> UInt { try integer(type, key) }
    func decode(_ type: UInt8.Type, forKey key: Key) throws -> UInt8 { try integer(type, key) }
    func decode(_ type: UInt16.Type, forKey key: Key) throws -> UInt16 { try integer(type, key) }
    func decode(_ type: UInt32.Type, forKey key: Key) throws -> UInt32 { try integer(type, key) }
    func decode(_ type: UInt64.Type, forKey key: Key) throws -> UInt64 { try integer(type, key) }
    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 { try integer(type, key) }

    private func integer<Number: FixedWidthInteger>(_ type: Number.Type, _ key: Key) throws -> Number {
        try reading.integer(type, entry(key), at: inner(key))
    }

    private func double<Number: BinaryFloatingPoint & LosslessStringConvertible>(
        _ type: Number.Type, _ key: Key
    ) throws -> Number {
        try reading.double(type, entry(key), at: inner(key))
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try reading.value(type, entry(key), at: inner(key))
    }

    func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type, forKey key: Key) throws
        -> KeyedDecodingContainer<Nested>
    {
        KeyedDecodingContainer(try StateObjectReader<Nested>(reading, entry(key), inner(key)))
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try StateArrayReader(reading, entry(key), inner(key))
    }

    func superDecoder() -> any Decoder { superDecoder(for: StatePathKey.super) }

    func superDecoder(forKey key: Key) -> any Decoder { superDecoder(for: key) }

    private func superDecoder(for key: some CodingKey) -> any Decoder {
        StateDecoder(reading: reading, index: find(key.stringValue) ?? StateReading.missing, place: inner(key))
    }
}

/// The `Decoder`'s side of an array.
struct StateArrayReader: UnkeyedDecodingContainer {
    private let reading: StateReading
    private let place: DecodingPlace
    private let elementCount: Int
    /// The entry of the next element.
    private var next: Int
    private(set) var currentIndex = 0

    init(_ reading: StateReading, _ index: Int, _ place: DecodingPlace) throws {
        guard reading.kind(index) == .array else { throw reading.mismatch([Any].self, index, place) }
        self.reading = reading
        self.place = place
        elementCount = reading.tape.entries[index].count
        next = reading.tape.children(of: index).first
    }

    var codingPath: [any CodingKey] { place.path }
    var count: Int? { elementCount }
    var isAtEnd: Bool { currentIndex >= elementCount }

    private var inner: DecodingPlace { DecodingPlace(place, .index(currentIndex)) }

    /// Reads the next element, and steps behind it if that was possible.
    private mutating func step<Value>(_ type: Any.Type, _ read: (Int) throws -> Value) throws -> Value {
        guard !isAtEnd else {
            throw DecodingError.valueNotFound(
                type, DecodingError.Context(codingPath: inner.path, debugDescription: "the array ends here"))
        }
        let value = try read(next)
        next = reading.tape.entries[next].next
        currentIndex += 1
        return value
    }

    mutating func decodeNil() throws -> Bool {
        guard !isAtEnd else { return try step(Never.self) { _ in true } }
        guard reading.kind(next) == .null else { return false }
        return try step(Never.self) { _ in true }
    }

    mutating func decode(_ type: Bool.Type) throws -> Bool {
        try step(type, { [reading, inner] in try reading.bool($0, at: inner) })
    }
    mutating func decode(_ type: String.Type) throws -> String {
        try step(type) { [reading, inner] in try reading.string($0, at: inner) }
    }
    mutating func decode(_ type: Double.Type) throws -> Double { try double(type) }
    mutating func decode(_ type: Float.Type) throws -> Float { try double(type) }
    mutating func decode(_ type: Int.Type) throws -> Int { try integer(type) }
    mutating func decode(_ type: Int8.Type) throws -> Int8 { try integer(type) }
    mutating func decode(_ type: Int16.Type) throws -> Int16 { try integer(type) }
    mutating func decode(_ type: Int32.Type) throws -> Int32 { try integer(type) }
    mutating func decode(_ type: Int64.Type) throws -> Int64 { try integer(type) }
    mutating func decode(_ type: Int128.Type) throws -> Int128 { try integer(type) }
    mutating func decode(_ type: UInt.Type) throws -> UInt { try integer(type) }
    mutating func decode(_ type: UInt8.Type) throws -> UInt8 { try integer(type) }
    mutating func decode(_ type: UInt16.Type) throws -> UInt16 { try integer(type) }
    mutating func decode(_ type: UInt32.Type) throws -> UInt32 { try integer(type) }
    mutating func decode(_ type: UInt64.Type) throws -> UInt64 { try integer(type) }
    mutating func decode(_ type: UInt128.Type) throws -> UInt128 { try integer(type) }

    private mutating func integer<Number: FixedWidthInteger>(_ type: Number.Type) throws -> Number {
        let (reading, inner) = (reading, inner)
        return try step(type) { try reading.integer(type, $0, at: inner) }
    }

    private mutating func double<Number: BinaryFloatingPoint & LosslessStringConvertible>(
        _ type: Number.Type
    ) throws -> Number {
        let (reading, inner) = (reading, inner)
        return try step(type) { try reading.double(type, $0, at: inner) }
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        let (reading, inner) = (reading, inner)
        return try step(type) { try reading.value(type, $0, at: inner) }
    }

    mutating func nestedContainer<Nested: CodingKey>(keyedBy type: Nested.Type) throws
        -> KeyedDecodingContainer<Nested>
    {
        let (reading, inner) = (reading, inner)
        return try step(KeyedDecodingContainer<Nested>.self) {
            KeyedDecodingContainer(try StateObjectReader<Nested>(reading, $0, inner))
        }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        let (reading, inner) = (reading, inner)
        return try step((any UnkeyedDecodingContainer).self) { try StateArrayReader(reading, $0, inner) }
    }

    mutating func superDecoder() throws -> any Decoder {
        let (reading, inner) = (reading, inner)
        return try step((any Decoder).self) { StateDecoder(reading: reading, index: $0, place: inner) }
    }
}
