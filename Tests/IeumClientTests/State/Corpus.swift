import Foundation
import Testing

@testable import IeumClient

/// Values of every kind of type that apps have in their games.
enum Corpus {
    /// A value, its type gone.
    struct Sample: CustomTestStringConvertible, Sendable, CustomStringConvertible {
        let testDescription: String
        let bytes: @Sendable () throws -> [UInt8]
        let check: @Sendable () throws -> Void
        /// What the type reads from a text, described; nil: it refuses.
        let read: @Sendable ([UInt8]) -> String?
        let readByFoundation: @Sendable ([UInt8]) -> String?

        var description: String { testDescription }

        init<Value: Codable & Equatable & Sendable>(_ value: Value) {
            testDescription = "\(Value.self)"
            bytes = { try StateWriting.state(of: value) }
            check = {
                let bytes = try StateWriting.state(of: value)
                #expect(try bytes == FoundationCoder.encode(value))
                #expect(try StateReading.value(Value.self, of: bytes) == value)
                #expect(try FoundationCoder.decode(Value.self, bytes) == value)
            }
            read = { bytes in (try? StateReading.value(Value.self, of: bytes)).map { Self.describe($0) } }
            readByFoundation = { bytes in (try? FoundationCoder.decode(Value.self, bytes)).map { Self.describe($0) } }
        }

        private static func describe<Value: Encodable>(_ value: Value) -> String {
            (try? FoundationCoder.encode(value)).map { String(decoding: $0, as: UTF8.self) } ?? "no text"
        }
    }

    static let all: [Sample] = [
        Sample(Numbers()), Sample(Shapes()), Sample(Tables()), Sample(Tree.sample), Sample(Cat()), Sample([[Int]]()),
        Sample([Letter.a, .b]), Sample(["", "a", "\u{1}"]), Sample([1.5, .infinity, 0]), Sample([Date.distantFuture]),
        Sample([Data([0, 255])]), Sample([URL(fileURLWithPath: "/x")]), Sample([Decimal(string: "123.4500"), nil]),
        Sample([Int128.max, Int128.min]), Sample([UInt128.max]), Sample(Range(uncheckedBounds: (1, 4))),
        Sample([true: 1]),
        Sample(UUID(uuidString: "6C1E0000-0000-4000-8000-000000000001")),
        Sample(Optional<Int>.none.map { [$0] } ?? [7]),
        Sample(Maybe(value: 3)),
        Sample(
            WordGame(
                id: "g", timestamp: Date(timeIntervalSinceReferenceDate: 0.25), answer: "사람")),
    ]

    struct Numbers: Codable, Equatable, Sendable {
        var int = Int.min, int8 = Int8.min, int16 = Int16.max, int32 = Int32.min, int64 = Int64.max
        var uint = UInt.max, uint8 = UInt8.max, uint16 = UInt16.max, uint32 = UInt32.max, uint64 = UInt64.max
        var double = -0.1, float = Float(0.1), half = Float16(0.5), bool = true
        var cgfloat: CGFloat = 3
        var decimal = Decimal(string: "-1234567890.12345678901234567890")
    }

    struct Shapes: Codable, Equatable, Sendable {
        var shapes: [Shape] = [.point, .circle(radius: 1), .box(1, 2), .named("x", inner: .point)]
        var letters: [Letter: Int] = [.a: 1]
        var ranks: [Rank] = [.low, .high]
        var nothing = Nothing()
        var rank: Rank?
    }

    indirect enum Shape: Codable, Equatable, Sendable {
        case point, circle(radius: Double), box(Int, Int), named(String, inner: Shape)
    }

    enum Letter: String, Codable, Sendable { case a, b }
    enum Rank: Int, Codable, Sendable { case low = -1, high = 300 }
    struct Nothing: Codable, Equatable, Sendable {}

    struct Tables: Codable, Equatable, Sendable {
        var strings = ["b": 1, "a": 2, "é": 3, "B": 4, "10": 5, "9": 6]
        var integers = [3: "c", 1: "a", 20: "t"]
        var dates = [Date(timeIntervalSince1970: 1): [1]]
        var enums = [Rank.low: 2]
        var optional: [String: Int?] = ["a": nil, "b": 1]
        var nested = ["x": ["y": [Data([1])]]]
        var set: Set<Int> = [4]
    }

    final class Tree: Codable, Equatable, Sendable {
        let name: String
        let left: Tree?
        let right: Tree?
        init(_ name: String, _ left: Tree? = nil, _ right: Tree? = nil) {
            (self.name, self.left, self.right) = (name, left, right)
        }
        static func == (one: Tree, other: Tree) -> Bool {
            one.name == other.name && one.left == other.left && one.right == other.right
        }
        static let sample = Tree("a", Tree("b", nil, Tree("c")), Tree("d"))
    }

    class Animal: Codable, Equatable, @unchecked Sendable {
        var legs = 4
        static func == (one: Animal, other: Animal) -> Bool { one.legs == other.legs }
    }

    struct Maybe: Codable, Equatable { var value: Int?? }

    /// `@unchecked Sendable`: nobody changes it.
    struct Cat: Codable, Equatable, @unchecked Sendable {
        var animal = Animal()
        var kitten = Kitten()
    }

    final class Kitten: Animal, @unchecked Sendable {
        var name = "m"
        override init() { super.init() }
        enum CodingKeys: CodingKey { case name }
        required init(from decoder: any Decoder) throws {
            let object = try decoder.container(keyedBy: CodingKeys.self)
            name = try object.decode(String.self, forKey: .name)
            try super.init(from: object.superDecoder())
        }
        override func encode(to encoder: any Encoder) throws {
            var object = encoder.container(keyedBy: CodingKeys.self)
            try object.encode(name, forKey: .name)
            try super.encode(to: object.superEncoder())
        }
    }
}
