import Foundation
import TestSupport
import Testing

@testable import IeumClient

@Suite("Small values in a state")
struct SmallValueTests {
    private enum Mark: String, Codable, CaseIterable { case unused, absent, right }
    private struct Cell: Codable, Equatable {
        var mark = Mark.unused
        var weight: UInt8 = 0
    }
    private struct Placed: Codable, Equatable {
        var number: UInt8
        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            try container.encode(encoder.codingPath.map(\.stringValue).joined(separator: "/"))
        }
        init(number: UInt8) { self.number = number }
        init(from decoder: any Decoder) throws { number = 0 }
    }
    private enum Fussy: UInt8, Encodable {
        case fine, failing
        struct Refusal: Error {}
        func encode(to encoder: any Encoder) throws {
            if self == .failing { throw Refusal() }
            var container = encoder.singleValueContainer()
            try container.encode("fine")
        }
    }

    @Test("that come again are written again as they are, those of other types and optional ones too")
    func repeated() throws {
        let cells = (0..<600).map { Cell(mark: Mark.allCases[$0 % 3], weight: UInt8($0 % 256)) }
        #expect(try StateCoder.encode(value: cells) == FoundationCoder.encode(cells))
        let marks: [Mark?] = [.right, nil, .right, .unused, nil, .absent]
        #expect(try StateCoder.encode(value: marks) == FoundationCoder.encode(marks))
        #expect(
            try StateCoder.encode(value: ["a": [UInt8(1), 1], "b": [2, 1]]) == Array("{\"a\":[1,1],\"b\":[2,1]}".utf8))
        #expect(try StateCoder.encode(value: [Int8(1), 1, -1]) == Array("[1,1,-1]".utf8))
    }

    /// A board, and what stands around it: members in no order, so that texts are moved.
    private struct Board: Codable {
        var rows: [[Cell]]
        var empty: [[[Cell]]] = [[], [[]]]
        var byName: [String: [Mark]]
        var areSet: [Bool]
        var a = "a"
        var sparse: [Cell?]
        var layers: [[[Mark]]]
    }

    @Test("fill lists, and lists of lists, as Foundation writes them, those met before and new ones mixed")
    func lists() throws {
        var random = SeededRandom(for: "lists of small values")
        func list<Value>(_ most: Int, _ make: (inout SeededRandom) -> Value) -> [Value] {
            (0..<Int.random(in: 0...most, using: &random)).map { _ in make(&random) }
        }
        for round in 0..<2_000 {
            let weights = UInt8(clamping: round / 8)
            func cell(_ random: inout SeededRandom) -> Cell {
                Cell(
                    mark: Mark.allCases.randomElement(using: &random) ?? .unused,
                    weight: .random(in: 0...weights, using: &random))
            }
            func mark(_ random: inout SeededRandom) -> Mark { Mark.allCases.randomElement(using: &random) ?? .unused }
            let board = Board(
                rows: (0..<round % 5).map { _ in list(6, cell) },
                byName: ["한": list(3, mark)], areSet: list(4) { Bool.random(using: &$0) },
                sparse: list(5) { Bool.random(using: &$0) ? cell(&$0) : nil },
                layers: (0..<round % 3).map { _ in (0..<round % 4).map { _ in list(4, mark) } })
            let (ours, expected) = (try StateCoder.encode(value: board), try FoundationCoder.encode(board))
            guard ours == expected else {
                Issue.record(
                    "\(String(decoding: ours, as: UTF8.self)), not \(String(decoding: expected, as: UTF8.self))")
                return
            }
        }
    }

    @Test("that write where they are are asked each time; one that fails fails each time")
    func placed() throws {
        let written = try StateCoder.encode(value: ["x": [Placed(number: 1), Placed(number: 1)]])
        #expect(String(decoding: written, as: UTF8.self) == "{\"x\":[\"x/Index 0\",\"x/Index 1\"]}")
        #expect(throws: Fussy.Refusal.self) { try StateCoder.encode(value: [Fussy.fine, .fine, .failing]) }
    }
}
