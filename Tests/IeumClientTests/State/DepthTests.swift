import Foundation
import Testing
import Wire

@testable import IeumClient

@Suite("How deep a state may nest")
struct DepthTests {
    @Test(
        "counts the containers that a type nests by itself",
        arguments: [Limits.maxStateDepth, Limits.maxStateDepth + 1])
    func containers(_ depth: Int) throws {
        for isKeyed in [false, true] {
            let state = try StateWriting.provenState(of: Nested(depth: depth, isKeyed: isKeyed))
            #expect(passes(state.text) == (depth <= Limits.maxStateDepth))
            #expect(!state.isProven || passes(state.text))
        }
    }

    @Test("counts the parts of a small value whose text is known")
    func smallValues() throws {
        for parts in [1, 2, 7, 8, 9, 10, 40] {
            for depth in Limits.maxStateDepth - 45...Limits.maxStateDepth {
                let state = try StateWriting.provenState(of: Hill(depth: depth, top: SmallHill(parts: UInt8(parts))))
                #expect(passes(state.text) == (depth + parts <= Limits.maxStateDepth))
                #expect(!state.isProven || passes(state.text), "\(parts) in \(depth)")
            }
        }
    }

    @Test("is no more than can be read back: a save is refused, and what was saved before stays")
    func refused() throws {
        let store = try GameStore.inMemory()
        try store.save(DeepGame(depth: 3))
        #expect(throws: StoreError.self) { try store.save(DeepGame(depth: Limits.maxStateDepth)) }
        #expect(try store.object(DeepGame.self, id: "deep")?.depth == 3)
        try store.save(DeepGame(depth: Limits.maxStateDepth - 1))
        #expect(try store.object(DeepGame.self, id: "deep")?.depth == Limits.maxStateDepth - 1)
    }

    private func passes(_ text: [UInt8]) -> Bool { (try? JSONCheck.check(text.span)) != nil }

    private struct Nested: Encodable {
        let depth: Int
        let isKeyed: Bool

        enum CodingKeys: CodingKey { case a }

        func encode(to encoder: any Encoder) throws {
            if isKeyed {
                var object = encoder.container(keyedBy: CodingKeys.self)
                for _ in 1..<depth { object = object.nestedContainer(keyedBy: CodingKeys.self, forKey: .a) }
            } else {
                var list = encoder.unkeyedContainer()
                for _ in 1..<depth { list = list.nestedUnkeyedContainer() }
            }
        }
    }

    /// Lists in one another, as many as it has parts.
    private struct SmallHill: Encodable {
        let parts: UInt8

        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            if parts > 1 { try list.encode(SmallHill(parts: parts - 1)) }
        }
    }

    /// A small value, and the same one deep in lists.
    private struct Hill: Encodable {
        let depth: Int
        let top: SmallHill

        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            try list.encode(top)
            try list.encode(Slope(depth: depth - 1, top: top))
        }
    }

    private final class Slope: Encodable {
        let depth: Int
        let top: SmallHill

        init(depth: Int, top: SmallHill) { (self.depth, self.top) = (depth, top) }

        func encode(to encoder: any Encoder) throws {
            var list = encoder.unkeyedContainer()
            if depth > 1 { try list.encode(Slope(depth: depth - 1, top: top)) } else { try list.encode(top) }
        }
    }

    private struct DeepGame: Persistable {
        static let collection = "test.deep"
        var id = "deep"
        var timestamp = Date(timeIntervalSince1970: 0)
        var depth: Int

        enum CodingKeys: CodingKey { case id, timestamp, depth, lists }

        init(depth: Int) { self.depth = depth }

        init(from decoder: any Decoder) throws {
            let object = try decoder.container(keyedBy: CodingKeys.self)
            id = try object.decode(String.self, forKey: .id)
            timestamp = try object.decode(Date.self, forKey: .timestamp)
            depth = try object.decode(Int.self, forKey: .depth)
        }

        func encode(to encoder: any Encoder) throws {
            var object = encoder.container(keyedBy: CodingKeys.self)
            try object.encode(id, forKey: .id)
            try object.encode(timestamp, forKey: .timestamp)
            try object.encode(depth, forKey: .depth)
            var list = object.nestedUnkeyedContainer(forKey: .lists)
            for _ in 1..<depth { list = list.nestedUnkeyedContainer() }
        }
    }
}
