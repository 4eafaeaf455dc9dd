/// A queue: append at the end, take from the front, both in constant time on average.
struct FIFO<Element> {
    private var storage: [Element?] = []
    private var head = 0

    var count: Int { storage.count - head }
    var isEmpty: Bool { head == storage.count }
    var first: Element? { isEmpty ? nil : storage[head] }

    mutating func append(_ element: Element) { storage.append(element) }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = storage[head]
        storage[head] = nil
        head += 1
        if head == storage.count {
            storage.removeAll(keepingCapacity: storage.count <= 64)
            head = 0
        } else if head > 64, head > storage.count / 2 {
            storage.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Puts elements back before all others, in the given order.
    mutating func prepend(contentsOf elements: [Element]) {
        storage.replaceSubrange(0..<head, with: elements.map(Optional.some))
        head = 0
    }

    /// Takes out every element that matches; the others keep their order.
    mutating func removeAll(where matches: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        var kept: [Element?] = []
        for case let element? in storage[head...] {
            if matches(element) { removed.append(element) } else { kept.append(element) }
        }
        storage = kept
        head = 0
        return removed
    }
}
