/// The options that commands know, as parsed from `key=value` words.
struct CommandOptions {
    /// Names of options.
    struct Keys: OptionSet {
        var rawValue: UInt16

        static let client = Keys(rawValue: 1 << 0)
        static let device = Keys(rawValue: 1 << 1)
        static let since = Keys(rawValue: 1 << 2)
        static let limit = Keys(rawValue: 1 << 3)
        static let saved = Keys(rawValue: 1 << 4)
        static let base = Keys(rawValue: 1 << 5)
        static let schema = Keys(rawValue: 1 << 6)
        static let revision = Keys(rawValue: 1 << 7)
        static let before = Keys(rawValue: 1 << 8)

        private static let byText: [(packed: UInt64, key: Keys)] = [
            ("saved", saved), ("base", base), ("schema", schema), ("since", since), ("limit", limit),
            ("revision", revision), ("before", before), ("device", device), ("client", client),
        ].map { (text: String, key: Keys) in (text.utf8.reduce(0) { $0 << 8 | UInt64($1) }, key) }

        /// The key that stands in a line; empty for a key that nobody knows.
        init(_ line: Span<UInt8>, _ range: Range<Int>) {
            let packed = line.packed(range)
            for entry in Self.byText where entry.packed == packed {
                self = entry.key
                return
            }
            self = []
        }

        init(rawValue: UInt16) { self.rawValue = rawValue }
    }

    private(set) var client: String?
    private(set) var device: String?
    private(set) var since: Revision?
    private(set) var limit: Int?
    private(set) var saved: Timestamp?
    private(set) var base: Revision?
    private(set) var schema: Int32?
    private(set) var revision: Revision?
    private(set) var before: Revision?

    /// Takes options for as long as they follow one another. Those that are not `known` to the command are ignored.
    init(_ line: Span<UInt8>, _ scanner: inout LineScanner, known: Keys) throws(WireError) {
        var seen: Keys = []
        while let option = try scanner.nextOption(in: line) {
            let key = Keys(line, option.key).intersection(known)
            guard !key.isEmpty else { continue }
            guard seen.isDisjoint(with: key) else { throw .repeatedArgument(field: line.text(option.key)) }
            seen.formUnion(key)
            if option.hasEscapes {
                guard let value = JSONString.unescape(line.extracting(option.value)) else {
                    let name = line.text(option.key)
                    throw .invalidArgument(field: name, "the value of \(name)= is no JSON string")
                }
                try set(key, value.span)
            } else {
                try set(key, line.extracting(option.value))
            }
        }
    }

    private mutating func set(_ key: Keys, _ value: Span<UInt8>) throws(WireError) {
        switch key {
        case .client: client = try Self.name(value, "client")
        case .device: device = try Self.name(value, "device")
        case .since: since = try Self.number(value, "since", 0...Int64.max)
        case .limit: limit = Int(try Self.number(value, "limit", 1...Int64(Int32.max)))
        case .saved:
            guard let time = Timestamp(utf8: value) else {
                throw .invalidArgument(
                    field: "saved", "saved= is no time from 1970-01-01 to 9999-12-31",
                    hint: "Write it in UTC like 2026-11-29T11:59:58.120000Z, with at most six digits of fraction.")
            }
            saved = time
        case .base: base = try Self.number(value, "base", 0...Int64.max)
        case .schema: schema = Int32(try Self.number(value, "schema", 0...Int64(Int32.max)))
        case .revision: revision = try Self.number(value, "revision", 1...Int64.max)
        case .before: before = try Self.number(value, "before", 1...Int64.max)
        default: break
        }
    }

    private static func number(
        _ value: Span<UInt8>, _ field: String, _ range: ClosedRange<Int64>
    ) throws(WireError) -> Int64 {
        guard let number = value.decimal(), range.contains(number) else {
            throw .invalidArgument(
                field: field, "\(field)= is no whole number from \(range.lowerBound) to \(range.upperBound)",
                hint: "Write decimal digits only, without a sign and without leading zeros.")
        }
        return number
    }

    private static func name(_ value: Span<UInt8>, _ field: String) throws(WireError) -> String {
        let limit = Limits.maxNameCharacters
        guard (1...limit * 4).contains(value.count) else { throw invalidName(field) }
        let text = value.text(0..<value.count)
        let scalars = text.unicodeScalars
        guard scalars.count <= limit, scalars.allSatisfy({ $0.properties.generalCategory != .control }) else {
            throw invalidName(field)
        }
        return text
    }

    private static func invalidName(_ field: String) -> WireError {
        .invalidArgument(
            field: field,
            "\(field)= is no name of 1 to \(Limits.maxNameCharacters) characters without control characters",
            hint: "Put a name with blanks in quotes: \(field)=\"my phone\".")
    }
}
