import Foundation

/// The options that commands know, as parsed from `key=value` words.
struct CommandOptions {
    /// Names of options.
    struct Keys: OptionSet {
        var rawValue: UInt32

        static let client = Keys(rawValue: 1 << 0)
        static let device = Keys(rawValue: 1 << 1)
        static let since = Keys(rawValue: 1 << 2)
        static let limit = Keys(rawValue: 1 << 3)
        static let saved = Keys(rawValue: 1 << 4)
        static let base = Keys(rawValue: 1 << 5)
        static let schema = Keys(rawValue: 1 << 6)
        static let revision = Keys(rawValue: 1 << 7)
        static let before = Keys(rawValue: 1 << 8)
        static let after = Keys(rawValue: 1 << 9)
        static let conflicts = Keys(rawValue: 1 << 10)
        static let states = Keys(rawValue: 1 << 11)
        static let outcome = Keys(rawValue: 1 << 12)
        static let stamp = Keys(rawValue: 1 << 13)
        static let received = Keys(rawValue: 1 << 14)
        static let rival = Keys(rawValue: 1 << 15)
        static let name = Keys(rawValue: 1 << 16)
        static let created = Keys(rawValue: 1 << 17)
        static let versions = Keys(rawValue: 1 << 18)
        static let devices = Keys(rawValue: 1 << 19)
        static let last = Keys(rawValue: 1 << 20)
        static let purged = Keys(rawValue: 1 << 21)
        static let importID = Keys(rawValue: 1 << 22)
        static let invite = Keys(rawValue: 1 << 23)

        private static let byText: [(packed: UInt64, key: Keys)] = [
            ("saved", saved), ("base", base), ("schema", schema), ("since", since), ("limit", limit),
            ("revision", revision), ("before", before), ("device", device), ("client", client), ("after", after),
            ("states", states), ("outcome", outcome), ("stamp", stamp), ("received", received), ("rival", rival),
            ("name", name), ("created", created), ("versions", versions), ("devices", devices), ("last", last),
            ("purged", purged), ("import", importID), ("invite", invite),
        ].map { (text: String, key: Keys) in (text.utf8.reduce(0) { $0 << 8 | UInt64($1) }, key) }

        /// The key that stands in a line; empty for a key that nobody knows.
        init(_ line: Span<UInt8>, _ range: Range<Int>) {
            guard range.count <= 8 else {
                // The one key that is longer.
                self = line.text(range) == "conflicts" ? .conflicts : []
                return
            }
            let packed = line.packed(range)
            for entry in Self.byText where entry.packed == packed {
                self = entry.key
                return
            }
            self = []
        }

        init(rawValue: UInt32) { self.rawValue = rawValue }
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
    private(set) var after: DeviceID?
    private(set) var conflicts: Bool?
    private(set) var states: Bool?
    private(set) var outcome: Outcome?
    private(set) var stamp: Timestamp?
    private(set) var received: Timestamp?
    private(set) var rival: Revision?
    private(set) var name: String?
    private(set) var created: Timestamp?
    private(set) var versions: Int64?
    private(set) var devices: Int64?
    private(set) var last: Revision?
    private(set) var purged: Revision?
    private(set) var importID: UUID?
    private(set) var invite: InviteCode?

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
        case .saved: saved = try Self.time(value, "saved")
        case .base: base = try Self.number(value, "base", 0...Int64.max)
        case .schema: schema = Int32(try Self.number(value, "schema", 0...Int64(Int32.max)))
        case .revision: revision = try Self.number(value, "revision", 1...Int64.max)
        case .before: before = try Self.number(value, "before", 1...Int64.max)
        case .after: after = DeviceID(try Self.uuid(value, "after"))
        case .conflicts: conflicts = try Self.flag(value, "conflicts")
        case .states: states = try Self.flag(value, "states")
        case .invite:
            guard let code = InviteCode(utf8: value) else {
                throw .invalidArgument(
                    field: "invite", "invite= is no invite", hint: "An invite looks like 7K3M-Q9TD-0V5R-ZX2C.")
            }
            invite = code
        default: try setImported(key, value)
        }
    }

    /// What only parts of an import carry.
    private mutating func setImported(_ key: Keys, _ value: Span<UInt8>) throws(WireError) {
        switch key {
        case .outcome:
            guard let outcome = Outcome(rawValue: value.text(0..<value.count)), outcome != .repeated else {
                throw .invalidArgument(field: "outcome", "outcome= is none of created, advanced, won and lost")
            }
            self.outcome = outcome
        case .stamp: stamp = try Self.time(value, "stamp")
        case .received: received = try Self.time(value, "received")
        case .rival: rival = try Self.number(value, "rival", 1...Int64.max)
        case .name: name = try Self.name(value, "name")
        case .created: created = try Self.time(value, "created")
        case .versions: versions = try Self.number(value, "versions", 0...Int64.max)
        case .devices: devices = try Self.number(value, "devices", 0...Int64.max)
        case .last: last = try Self.number(value, "last", 0...Int64.max - 1)
        case .purged: purged = try Self.number(value, "purged", 0...Int64.max)
        case .importID: importID = try Self.uuid(value, "import")
        default: break
        }
    }

    private static func time(_ value: Span<UInt8>, _ field: String) throws(WireError) -> Timestamp {
        guard let time = Timestamp(utf8: value) else {
            throw .invalidArgument(
                field: field, "\(field)= is no time from 1970-01-01 to 9999-12-31",
                hint: "Write it in UTC like 2026-11-29T11:59:58.120000Z, with at most six digits of fraction.")
        }
        return time
    }

    private static func flag(_ value: Span<UInt8>, _ field: String) throws(WireError) -> Bool {
        switch value.text(0..<value.count) {
        case "true": return true
        case "false": return false
        default: throw .invalidArgument(field: field, "\(field)= is neither true nor false")
        }
    }

    private static func uuid(_ value: Span<UInt8>, _ field: String) throws(WireError) -> UUID {
        guard let uuid = UUID(utf8: value) else { throw .invalidArgument(field: field, "\(field)= is no UUID") }
        return uuid
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
        guard (1...Limits.maxNameBytes).contains(value.count) else { throw invalidName(field) }
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
