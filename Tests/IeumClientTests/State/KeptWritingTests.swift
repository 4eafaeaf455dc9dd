import Foundation
import Testing

@testable import IeumClient

@Suite("What an encoding leaves for the next one")
struct KeptWritingTests {
    @Test("is one encoding's, however many were under way at once: the others are gone")
    func oneIsKept() throws {
        let rounds = 100
        var seen: [Seen] = []
        for _ in 0..<rounds {
            // Three at once, on one thread: each is begun while the one that it is in has what was kept.
            let values = [Seen(), Seen(), Seen()]
            seen += values
            let value = Watched(seen: values[0], inner: Watched(seen: values[1], inner: Watched(seen: values[2])))
            #expect(try StateWriting.state(of: value) == Array(#"["[\"[\\\"\\\"]\"]"]"#.utf8))
        }
        // One that is kept, and those that other tests are encoding with now.
        let alive = Set(seen.compactMap { $0.writing.map(ObjectIdentifier.init) })
        #expect(alive.count < rounds / 2)
    }

    /// The encoding that a value was written by, as long as it is there.
    private final class Seen {
        weak var writing: StateWriting?
    }

    /// Its one element is the text of another value, which it makes while it is encoded itself.
    private final class Watched: Encodable {
        let seen: Seen
        let inner: Watched?

        init(seen: Seen, inner: Watched? = nil) { (self.seen, self.inner) = (seen, inner) }

        func encode(to encoder: any Encoder) throws {
            seen.writing = (encoder as? StateEncoder)?.slot.writing
            let text = try inner.map { String(decoding: try StateWriting.state(of: $0), as: UTF8.self) } ?? ""
            var list = encoder.unkeyedContainer()
            try list.encode(text)
        }
    }
}
