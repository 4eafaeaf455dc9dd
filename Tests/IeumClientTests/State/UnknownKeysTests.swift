import Foundation
import Testing

@testable import IeumClient

@Suite("What an older app does not know of the elements of a list")
struct UnknownKeysTests {
    struct Case: CustomTestStringConvertible, Sendable {
        var name: String
        var old: String
        var known: String
        var new: String
        var stored: String
        var testDescription: String { name }
    }

    @Test(
        "stays with the element that it belongs to, and goes to no other one",
        arguments: [
            Case(
                name: "changed where it stands", old: #"[{"x":1,"y":1},{"x":2,"y":2}]"#, known: #"[{"x":1},{"x":2}]"#,
                new: #"[{"x":1},{"x":9}]"#, stored: #"[{"x":1,"y":1},{"x":9,"y":2}]"#),
            Case(
                name: "moved", old: #"[{"x":1,"y":1},{"x":2,"y":2}]"#, known: #"[{"x":1},{"x":2}]"#,
                new: #"[{"x":2},{"x":1}]"#, stored: #"[{"x":2,"y":2},{"x":1,"y":1}]"#),
            Case(
                name: "the first one gone, and a new one at the end",
                old: #"[{"x":1,"y":1},{"x":2,"y":2},{"x":3,"y":3}]"#,
                known: #"[{"x":1},{"x":2},{"x":3}]"#, new: #"[{"x":2},{"x":3},{"x":4}]"#,
                stored: #"[{"x":2,"y":2},{"x":3,"y":3},{"x":4}]"#),
            Case(
                name: "a new one at the beginning, and the last one gone", old: #"[{"x":1,"y":1},{"x":2,"y":2}]"#,
                known: #"[{"x":1},{"x":2}]"#, new: #"[{"x":0},{"x":1}]"#, stored: #"[{"x":0},{"x":1,"y":1}]"#),
            Case(
                name: "with an id: another one gone, this one changed",
                old: #"[{"id":"a","x":1,"y":1},{"id":"b","x":2,"y":2}]"#,
                known: #"[{"id":"a","x":1},{"id":"b","x":2}]"#, new: #"[{"id":"b","x":9}]"#,
                stored: #"[{"id":"b","x":9,"y":2}]"#),
            Case(
                name: "with an id: moved and changed", old: #"[{"id":1,"x":1,"y":1},{"id":2,"x":2,"y":2}]"#,
                known: #"[{"id":1,"x":1},{"id":2,"x":2}]"#, new: #"[{"id":2,"x":9},{"id":1,"x":8}]"#,
                stored: #"[{"id":2,"x":9,"y":2},{"id":1,"x":8,"y":1}]"#),
            Case(
                name: "with an id: a new one in its place", old: #"[{"id":1,"x":1,"y":1},{"id":2,"x":2,"y":2}]"#,
                known: #"[{"id":1,"x":1},{"id":2,"x":2}]"#, new: #"[{"id":1,"x":1},{"id":3,"x":2}]"#,
                stored: #"[{"id":1,"x":1,"y":1},{"id":3,"x":2}]"#),
            Case(
                name: "with an id that two have: as without one",
                old: #"[{"id":1,"x":1,"y":1},{"id":1,"x":2,"y":2},{"id":3}]"#,
                known: #"[{"id":1,"x":1},{"id":1,"x":2},{"id":3}]"#,
                new: #"[{"id":1,"x":8},{"id":1,"x":9},{"id":3}]"#,
                stored: #"[{"id":1,"x":8,"y":1},{"id":1,"x":9,"y":2},{"id":3}]"#),
        ] as [Case])
    func lists(_ example: Case) throws {
        let (old, known, new) = (try raw(example.old), try raw(example.known), try raw(example.new))
        let stored = UnknownKeys.carried(from: old, known: known, into: new)
        #expect(String(decoding: stored.text, as: UTF8.self) == example.stored)
    }

    private func raw(_ text: String) throws -> RawJSON { try RawJSON(checking: Array(text.utf8)) }
}
