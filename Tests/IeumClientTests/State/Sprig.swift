import Foundation
import TestSupport

@testable import IeumClient

/// A random value that encodes itself by every way that `Encoder` has.
indirect enum Sprig: Encodable {
    case null, bool(Bool), text(String), double(Double), float(Float), int(Int64), unsigned(UInt64), small(Int8)
    case wide(Int128)
    case date(Date), data(Data), url(URL), decimal(Decimal)
    case list([Sprig]), nestedList([Sprig]), nestedListOfObjects([[(String, Sprig)]])
    case object([(String, Sprig)]), nestedObject(String, [(String, Sprig)]), nestedArray(String, [Sprig])
    case inherited([(String, Sprig)], base: Sprig), inheritedUnder(String, Sprig), listOfInherited([Sprig])
    case wrapped(Sprig), optional(Sprig?), nothing
    case careful([(String, Sprig)]), carefulList([Sprig]), failing(Sprig)
    case table([String: Sprig]), numbered([Int: Sprig]), dated([Date: Sprig])

    struct Name: CodingKey {
        var stringValue: String
        var intValue: Int? { nil }
        init(_ name: String) { stringValue = name }
        init?(stringValue: String) { self.init(stringValue) }
        init?(intValue: Int) { nil }
    }

    func encode(to encoder: any Encoder) throws {
        switch self {
        case .null:
            var value = encoder.singleValueContainer()
            try value.encodeNil()
        case .bool(let value): try Self.single(encoder) { try $0.encode(value) }
        case .text(let value): try Self.single(encoder) { try $0.encode(value) }
        case .double(let value): try Self.single(encoder) { try $0.encode(value) }
        case .float(let value): try Self.single(encoder) { try $0.encode(value) }
        case .int(let value): try Self.single(encoder) { try $0.encode(value) }
        case .unsigned(let value): try Self.single(encoder) { try $0.encode(value) }
        case .small(let value): try Self.single(encoder) { try $0.encode(value) }
        case .wide(let value): try Self.single(encoder) { try $0.encode(value) }
        case .date(let value): try Self.single(encoder) { try $0.encode(value) }
        case .data(let value): try Self.single(encoder) { try $0.encode(value) }
        case .url(let value): try Self.single(encoder) { try $0.encode(value) }
        case .decimal(let value): try Self.single(encoder) { try $0.encode(value) }
        case .wrapped(let value): try Self.single(encoder) { try $0.encode(value) }
        case .optional(let value): try Self.single(encoder) { try $0.encode(value) }
        case .table(let value): try Self.single(encoder) { try $0.encode(value) }
        case .numbered(let value): try Self.single(encoder) { try $0.encode(value) }
        case .dated(let value):
            // The order of a dictionary is anybody's; of one it is certain.
            guard let first = value.first else { return try Self.single(encoder) { try $0.encode([Date: Sprig]()) } }
            try Self.single(encoder) { try $0.encode([first.key: first.value]) }
        case .nothing: break
        case .list(let values):
            var list = encoder.unkeyedContainer()
            for value in values { try Self.add(value, to: &list) }
        case .nestedList(let values):
            var list = encoder.unkeyedContainer()
            var inner = list.nestedUnkeyedContainer()
            try list.encode(values.count)
            for value in values { try inner.encode(value) }
        case .nestedListOfObjects(let objects):
            var list = encoder.unkeyedContainer()
            for members in objects {
                var object = list.nestedContainer(keyedBy: Name.self)
                for (name, value) in members { try object.encode(value, forKey: Name(name)) }
            }
        case .object(let members):
            var object = encoder.container(keyedBy: Name.self)
            for (name, value) in members { try Self.set(Name(name), value, in: &object) }
        case .nestedObject(let name, let members):
            var object = encoder.container(keyedBy: Name.self)
            var inner = object.nestedContainer(keyedBy: Name.self, forKey: Name(name))
            for (name, value) in members.dropLast() { try inner.encode(value, forKey: Name(name)) }
            try object.encode(1, forKey: Name(name + "!"))
            var again = object.nestedContainer(keyedBy: Name.self, forKey: Name(name))
            for (name, value) in members.suffix(1) { try again.encode(value, forKey: Name(name)) }
        case .nestedArray(let name, let values):
            var object = encoder.container(keyedBy: Name.self)
            var inner = object.nestedUnkeyedContainer(forKey: Name(name))
            for value in values { try inner.encode(value) }
            try object.encode("x", forKey: Name(name + "!"))
        case .inherited(let members, let base):
            var object = encoder.container(keyedBy: Name.self)
            for (name, value) in members { try object.encode(value, forKey: Name(name)) }
            try base.encode(to: object.superEncoder())
        case .inheritedUnder(let name, let base):
            var object = encoder.container(keyedBy: Name.self)
            try base.encode(to: object.superEncoder(forKey: Name(name)))
        case .careful(let members):
            var object = encoder.container(keyedBy: Name.self)
            // What fails is left out; the rest stands.
            for (name, value) in members { try? object.encode(value, forKey: Name(name)) }
        case .carefulList(let values):
            var list = encoder.unkeyedContainer()
            for value in values { try? list.encode(value) }
        case .failing(let value):
            var list = encoder.unkeyedContainer()
            try list.encode("begun")
            try list.encode(value)
            throw Failed()
        case .listOfInherited(let values):
            var list = encoder.unkeyedContainer()
            for value in values { try value.encode(to: list.superEncoder()) }
        }
    }

    private struct Failed: Error {}

    private static func single(
        _ encoder: any Encoder, _ body: (inout any SingleValueEncodingContainer) throws -> Void
    ) throws {
        var container = encoder.singleValueContainer()
        try body(&container)
    }

    /// By the method of the value's own type where there is one.
    private static func add(_ value: Sprig, to list: inout any UnkeyedEncodingContainer) throws {
        switch value {
        case .null: try list.encodeNil()
        case .bool(let value): try list.encode(value)
        case .text(let value): try list.encode(value)
        case .double(let value): try list.encode(value)
        case .float(let value): try list.encode(value)
        case .int(let value): try list.encode(value)
        case .unsigned(let value): try list.encode(value)
        case .small(let value): try list.encode(value)
        case .wide(let value): try list.encode(value)
        case .date(let value): try list.encode(value)
        case .data(let value): try list.encode(value)
        case .url(let value): try list.encode(value)
        case .decimal(let value): try list.encode(value)
        case .optional(let value): try list.encode(value)
        default: try list.encode(value)
        }
    }

    private static func set(_ key: Name, _ value: Sprig, in object: inout KeyedEncodingContainer<Name>) throws {
        switch value {
        case .null: try object.encodeNil(forKey: key)
        case .bool(let value): try object.encode(value, forKey: key)
        case .text(let value): try object.encode(value, forKey: key)
        case .double(let value): try object.encode(value, forKey: key)
        case .float(let value): try object.encode(value, forKey: key)
        case .int(let value): try object.encode(value, forKey: key)
        case .unsigned(let value): try object.encode(value, forKey: key)
        case .small(let value): try object.encode(value, forKey: key)
        case .wide(let value): try object.encode(value, forKey: key)
        case .date(let value): try object.encode(value, forKey: key)
        case .data(let value): try object.encode(value, forKey: key)
        case .url(let value): try object.encode(value, forKey: key)
        case .decimal(let value): try object.encode(value, forKey: key)
        case .optional(let value): try object.encodeIfPresent(value, forKey: key)
        default: try object.encode(value, forKey: key)
        }
    }
}

extension Sprig {
    /// A random value, at most so deep.
    static func random(_ depth: Int, _ random: inout SeededRandom) -> Sprig {
        let leaf = Int.random(in: 0..<(depth > 0 ? 27 : 13), using: &random)
        func some() -> [Sprig] {
            (0..<Int.random(in: 0...4, using: &random)).map { _ in Sprig.random(depth - 1, &random) }
        }
        func members() -> [(String, Sprig)] { some().map { (name(&random), $0) } }
        switch leaf {
        case 0: return .null
        case 1: return .bool(.random(using: &random))
        case 2: return .text(text(&random))
        case 3: return .double(number(&random))
        case 4: return .float(Float(bitPattern: .random(in: .min ... .max, using: &random)))
        case 5: return .int(.random(in: .min ... .max, using: &random) >> Int64.random(in: 0...63, using: &random))
        case 6:
            return .unsigned(.random(in: .min ... .max, using: &random) >> UInt64.random(in: 0...63, using: &random))
        case 7: return .small(.random(in: .min ... .max, using: &random))
        case 8:
            return .wide(Int128.random(in: .min ... .max, using: &random) >> Int128.random(in: 0...127, using: &random))
        case 9:
            return .date(DateText.date(.random(in: -62_000_000_000_000_000...250_000_000_000_000_000, using: &random)))
        case 10: return .data(Data(random.bytes(Int.random(in: 0...9, using: &random))))
        case 11: return .url(URL(fileURLWithPath: "/a b/\(Int.random(in: 0...99, using: &random))"))
        case 12:
            let digits = Decimal(Int64.random(in: .min ... .max, using: &random))
            return .decimal(digits * pow(10, Int.random(in: -20...20, using: &random)))
        case 13: return .list(some())
        case 14: return .nestedList(some())
        case 15: return .nestedListOfObjects((0..<Int.random(in: 0...2, using: &random)).map { _ in members() })
        case 16: return .object(members())
        case 17: return .nestedObject(name(&random), members())
        case 18: return .nestedArray(name(&random), some())
        case 19: return .inherited(members(), base: .random(depth - 1, &random))
        case 20: return .inheritedUnder(name(&random), .random(depth - 1, &random))
        case 21: return .listOfInherited(some())
        case 22: return .wrapped(.random(depth - 1, &random))
        case 23: return .optional(.random(in: 0...2, using: &random) == 0 ? nil : .random(depth - 1, &random))
        case 24: return .table(Dictionary(members(), uniquingKeysWith: { $1 }))
        case 25:
            return .numbered(Dictionary(some().map { (Int(random.next() >> 50) - 99, $0) }, uniquingKeysWith: { $1 }))
        default: return Bool.random(using: &random) ? .nothing : .dated([Date(timeIntervalSince1970: 1): .null])
        }
    }

    /// Two values that say the same: one meets failures and goes on, the other leaves out what would fail.
    static func failingPair(_ random: inout SeededRandom) -> (failing: Sprig, sound: Sprig) {
        let parts = (0..<Int.random(in: 0...6, using: &random)).map { _ in
            (name: name(&random), value: Sprig.random(2, &random), fails: Bool.random(using: &random))
        }
        let sound = parts.filter { !$0.fails }
        if Bool.random(using: &random) {
            return (
                .careful(parts.map { ($0.name, $0.fails ? .failing($0.value) : $0.value) }),
                .careful(sound.map { ($0.name, $0.value) })
            )
        }
        return (.carefulList(parts.map { $0.fails ? .failing($0.value) : $0.value }), .carefulList(sound.map(\.value)))
    }

    static func text(_ random: inout SeededRandom) -> String {
        let pieces = [
            "", "a", "Z", "10", "9", "é", "e\u{301}", "한", "\u{1112}\u{1161}\u{11AB}", "😀", "\"", "\\", "/", "\n",
            "\u{8}",
            "\u{c}", "\r", "\t", "\u{1f}", "\u{0}", "\u{7f}", "\u{2028}", "\u{202e}", "\u{feff}", "\u{ffff}", " ", "_",
        ]
        return (0..<Int.random(in: 0...5, using: &random)).map { _ in pieces.randomElement(using: &random) ?? "" }
            .joined()
    }

    private static func name(_ random: inout SeededRandom) -> String {
        // Few, so that one stands twice now and then.
        Bool.random(using: &random)
            ? text(&random) : ["a", "b", "B", "é", "e\u{301}", "super"].randomElement(using: &random) ?? ""
    }

    private static func number(_ random: inout SeededRandom) -> Double {
        switch Int.random(in: 0...3, using: &random) {
        case 0: Double(bitPattern: random.next())
        case 1: Double(Int16.random(in: .min ... .max, using: &random))
        case 2: Double(Int64.random(in: .min ... .max, using: &random)) / 1_000
        default:
            [0, -0.0, .nan, .infinity, -.infinity, 1e16, 1e-5, .leastNonzeroMagnitude].randomElement(using: &random)
                ?? 0
        }
    }
}
