import Testing
import TestSupport

@testable import IeumClient

@Suite("The difference of two collections")
struct CollectionDiffTests {
    private struct Row: Equatable {
        var id: Int
        var version: Int
    }

    private func diff(_ old: [Row], _ new: [Row]) -> CollectionDiff {
        CollectionDiff(from: old, to: new, id: \.id) { $0.version == $1.version }
    }

    private func rows(_ text: String) -> [Row] {
        text.split(separator: " ").map { word in
            let parts = word.split(separator: ".")
            return Row(id: Int(parts[0]) ?? -1, version: parts.count > 1 ? Int(parts[1]) ?? -1 : 0)
        }
    }

    @Test(
        "deletions and modifications are places in the old, insertions in the new collection",
        arguments: [
            ("1 2 3", "1 2 3", [], [], [], []),
            ("", "1 2", [], [0, 1], [], []),
            ("1 2", "", [0, 1], [], [], []),
            ("1 2 3", "1 3", [1], [], [], []),
            ("1 3", "1 2 3", [], [1], [], []),
            ("1 2 3", "1 2.1 3", [], [], [1], [1]),
            ("1 2 3", "2.1 3 4", [0], [2], [1], [0]),
            ("1 2 3", "3 1 2", [2], [0], [], []),
            ("1 2 3", "2 3 1.1", [0], [2], [], []),
            ("1 2 3 4", "1.1 3 2 4.1", [2], [1], [0, 3], [0, 3]),
            ("1 2", "3 4", [0, 1], [0, 1], [], []),
        ] as [(String, String, [Int], [Int], [Int], [Int])])
    func table(
        old: String, new: String, deletions: [Int], insertions: [Int], modifications: [Int], modificationsNew: [Int]
    ) {
        let diff = diff(rows(old), rows(new))
        #expect(diff.deletions.count == deletions.count && diff.insertions.count == insertions.count)
        #expect(diff.modifications == modifications && diff.modificationsNew == modificationsNew)
        // Where two neighbours change places, either of them may be called the one that moved.
        if old != "1 2 3 4" { #expect(diff.deletions == deletions && diff.insertions == insertions) }
    }

    @Test("applying it to the old array gives exactly the new one: 10,000 random histories, coalesced ones too")
    func histories() {
        for seed in UInt64(1)...10_000 {
            var random = SeededRandom(seed: seed)
            var current = (0..<Int.random(in: 0...12, using: &random)).map { Row(id: $0, version: 0) }
            current.shuffle(using: &random)
            var delivered = current
            var fresh = 100
            for _ in 0..<6 {
                for _ in 0..<Int.random(in: 1...5, using: &random) {  // commits that merge into one delivery
                    change(&current, delivered: delivered, fresh: &fresh, using: &random)
                }
                let diff = diff(delivered, current)
                let applied = Applied(
                    delivered, deletions: diff.deletions, insertions: diff.insertions,
                    modifications: diff.modifications, modificationsNew: diff.modificationsNew, from: current)
                guard applied.rows == current, applied.faults.isEmpty, diff.isEmpty == (delivered == current) else {
                    Issue.record("seed \(seed): \(delivered) to \(current) gave \(diff): \(applied.faults)")
                    return
                }
                if delivered.map(\.id) == current.map(\.id) {
                    #expect(diff.deletions.isEmpty && diff.insertions.isEmpty, "seed \(seed)")
                }
                for (old, new) in zip(diff.modifications, diff.modificationsNew) {
                    guard delivered[old].id == current[new].id else {
                        Issue.record("seed \(seed): a modification of two different rows")
                        return
                    }
                }
                delivered = current
            }
        }
    }

    /// One commit: a row comes, goes, changes, moves, or comes back.
    private func change(_ rows: inout [Row], delivered: [Row], fresh: inout Int, using random: inout SeededRandom) {
        let place = Int.random(in: 0...rows.count, using: &random)
        let victim = rows.indices.randomElement(using: &random)
        switch (Int.random(in: 0..<5, using: &random), victim) {
        case (1, let victim?): rows.remove(at: victim)
        case (2, let victim?): rows[victim].version += 1
        case (3, let victim?):
            let row = rows.remove(at: victim)
            rows.insert(row, at: min(place, rows.count))
        case (4, _):
            guard let gone = delivered.randomElement(using: &random), !rows.contains(where: { $0.id == gone.id })
            else { return }
            rows.insert(gone, at: place)
        default:
            fresh += 1
            rows.insert(Row(id: fresh, version: 0), at: place)
        }
    }

    @Test("few changes in 10,000 rows cost about one pass over them, moves included")
    func cost() {
        var old = (0..<10_000).map { Row(id: $0, version: 0) }
        old.swapAt(1, 9_998)
        var new = old
        new.swapAt(0, 9_999)
        new[5_000].version = 1
        var looks = 0
        let diff = CollectionDiff(
            from: old, to: new,
            id: {
                looks += 1
                return $0.id
            }, isSame: { $0.version == $1.version })
        #expect(diff.deletions == [0, 9_999] && diff.insertions == [0, 9_999])
        #expect(diff.modifications == [5_000])
        #expect(looks < 10_000 * 5)
    }
}
