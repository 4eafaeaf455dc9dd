/// One stored row as observers see it: never changed after it was read, shared by everyone who observes it.
package final class ObservedRow<Element: Sendable>: Sendable {
    package let id: String
    /// The row's change number; a greater one for each visible change of it.
    package let change: Int64
    package let value: Element

    package init(id: String, change: Int64, value: Element) {
        self.id = id
        self.change = change
        self.value = value
    }
}

/// What changed in a collection since a change number, read in one snapshot of the store.
package struct RowChanges<Element: Sendable>: Sendable {
    /// One changed row; without a value it is gone.
    package struct Row: Sendable {
        package var id: String
        package var change: Int64
        package var value: Element?

        package init(id: String, change: Int64, value: Element?) {
            self.id = id
            self.change = change
            self.value = value
        }
    }

    package var rows: [Row]
    /// The greatest change number that the snapshot can hold; the next reading begins after it.
    package var upTo: Int64
    /// Whether `rows` are all that there is (the first reading, or the file is another one now).
    package var isWhole: Bool

    package init(rows: [Row], upTo: Int64, isWhole: Bool) {
        self.rows = rows
        self.upTo = upTo
        self.isWhole = isWhole
    }
}

/// A collection at one moment, in ascending order of id.
struct ObservedSnapshot<Element: Sendable>: Sendable {
    var rows: [ObservedRow<Element>] = []
    var upTo: Int64 = 0

    /// Takes changes in; in one pass over the rows, however many changed.
    mutating func take(_ changes: RowChanges<Element>) {
        var newest: [String: RowChanges<Element>.Row] = [:]
        newest.reserveCapacity(changes.rows.count)
        for row in changes.rows where row.change >= newest[row.id]?.change ?? .min { newest[row.id] = row }
        let incoming = newest.values.sorted { $0.id < $1.id }
        let old = changes.isWhole ? [] : rows
        var merged: [ObservedRow<Element>] = []
        merged.reserveCapacity(old.count + incoming.count)
        var next = old.startIndex
        for row in incoming {
            while next < old.endIndex, old[next].id < row.id {
                merged.append(old[next])
                next += 1
            }
            if next < old.endIndex, old[next].id == row.id { next += 1 }
            if let value = row.value { merged.append(ObservedRow(id: row.id, change: row.change, value: value)) }
        }
        merged += old[next...]
        rows = merged
        upTo = changes.upTo
    }
}

/// Which rows of a collection an observer sees, in which order, and what it counts as a change.
package struct ObservedQuery<Element: Sendable>: Sendable {
    /// The one row that is observed; `nil`: all of them.
    package var id: String?
    /// Whether a value belongs to the observed collection; `nil`: every value does.
    package var isIncluded: (@Sendable (Element) -> Bool)?
    /// The order; `nil`: ascending by id. Equal values follow each other by id.
    package var isBefore: (@Sendable (Element, Element) -> Bool)?
    /// Whether two values of a row are the same for this observer (key paths); `nil`: every saved change counts.
    package var isSame: (@Sendable (Element, Element) -> Bool)?

    package init(
        id: String? = nil, isIncluded: (@Sendable (Element) -> Bool)? = nil,
        isBefore: (@Sendable (Element, Element) -> Bool)? = nil,
        isSame: (@Sendable (Element, Element) -> Bool)? = nil
    ) {
        self.id = id
        self.isIncluded = isIncluded
        self.isBefore = isBefore
        self.isSame = isSame
    }

    func apply(to rows: [ObservedRow<Element>]) -> [ObservedRow<Element>] {
        if let id {
            var (low, high) = (rows.startIndex, rows.endIndex)
            while low < high {
                let middle = (low + high) / 2
                if rows[middle].id < id { low = middle + 1 } else { high = middle }
            }
            return low < rows.endIndex && rows[low].id == id ? [rows[low]] : []
        }
        let included = isIncluded.map { isIncluded in rows.filter { isIncluded($0.value) } } ?? rows
        guard let isBefore else { return included }
        return included.sorted { left, right in
            if isBefore(left.value, right.value) { return true }
            if isBefore(right.value, left.value) { return false }
            return left.id < right.id
        }
    }

    func difference(from old: [ObservedRow<Element>], to new: [ObservedRow<Element>]) -> CollectionDiff {
        CollectionDiff(from: old, to: new, id: \.id) { before, after in
            if before === after || before.change == after.change { return true }
            return isSame?(before.value, after.value) ?? false
        }
    }
}
