/// The difference between two ordered collections of rows with identities: what `CollectionChange.update` reports.
///
/// Deletions and modifications are positions in the old collection, insertions and `modificationsNew` in the new one, all
/// ascending; `modifications[n]` and `modificationsNew[n]` are the same row. A row that changed its place among the others
/// is a deletion and an insertion. Deleting the one kind, inserting the other and replacing what is modified turns the old
/// array into exactly the new one.
package struct CollectionDiff: Equatable, Sendable {
    package var deletions: [Int] = []
    package var insertions: [Int] = []
    package var modifications: [Int] = []
    package var modificationsNew: [Int] = []

    package var isEmpty: Bool { deletions.isEmpty && insertions.isEmpty && modifications.isEmpty }

    /// Compares two collections.
    ///
    /// Costs one pass over what both have in common at the start and at the end, and O(n log n) over what lies between.
    /// The rows that keep their place are as many as can be (a longest increasing run of old positions).
    /// - Parameters:
    ///   - id: the identity of a row; where an id stands twice in a collection, only its first row is matched.
    ///   - isSame: whether two rows of the same identity hold the same.
    package init<Rows: RandomAccessCollection, ID: Hashable>(
        from old: Rows, to new: Rows, id: (Rows.Element) -> ID, isSame: (Rows.Element, Rows.Element) -> Bool
    ) where Rows.Index == Int {
        let oldStart = old.startIndex, newStart = new.startIndex
        let shorter = min(old.count, new.count)
        var head = 0
        while head < shorter, id(old[oldStart + head]) == id(new[newStart + head]) { head += 1 }
        var tail = 0
        while tail < shorter - head, id(old[old.endIndex - 1 - tail]) == id(new[new.endIndex - 1 - tail]) { tail += 1 }

        func compare(_ from: Int, _ to: Int) {
            guard !isSame(old[oldStart + from], new[newStart + to]) else { return }
            modifications.append(from)
            modificationsNew.append(to)
        }
        for place in 0..<head { compare(place, place) }

        let oldMiddle = head..<(old.count - tail), newMiddle = head..<(new.count - tail)
        var places: [ID: Int] = [:]
        if !newMiddle.isEmpty {
            places.reserveCapacity(oldMiddle.count)
            for place in oldMiddle where places[id(old[oldStart + place])] == nil {
                places[id(old[oldStart + place])] = place
            }
        }
        var pairs: [(old: Int, new: Int)] = []
        for place in newMiddle {
            if let from = places.removeValue(forKey: id(new[newStart + place])) { pairs.append((from, place)) }
        }
        let kept = Self.longestIncreasing(pairs)
        var nextOld = head, nextNew = head
        for pair in kept {
            deletions += nextOld..<pair.old
            insertions += nextNew..<pair.new
            compare(pair.old, pair.new)
            (nextOld, nextNew) = (pair.old + 1, pair.new + 1)
        }
        deletions += nextOld..<oldMiddle.upperBound
        insertions += nextNew..<newMiddle.upperBound
        for place in 0..<tail { compare(oldMiddle.upperBound + place, newMiddle.upperBound + place) }
    }

    /// The longest run of pairs, in their order, whose old positions rise (patience sorting).
    private static func longestIncreasing(_ pairs: [(old: Int, new: Int)]) -> [(old: Int, new: Int)] {
        var ends: [Int] = []  // ends[n]: the pair that ends the best run of length n + 1
        var before = [Int](repeating: -1, count: pairs.count)
        for index in pairs.indices {
            var low = 0, high = ends.count
            if let last = ends.last, pairs[last].old < pairs[index].old { low = high }
            while low < high {
                let middle = (low + high) / 2
                if pairs[ends[middle]].old < pairs[index].old { low = middle + 1 } else { high = middle }
            }
            if low > 0 { before[index] = ends[low - 1] }
            if low == ends.count { ends.append(index) } else { ends[low] = index }
        }
        var run: [(old: Int, new: Int)] = []
        run.reserveCapacity(ends.count)
        var index = ends.last ?? -1
        while index >= 0 {
            run.append(pairs[index])
            index = before[index]
        }
        return run.reversed()
    }
}
