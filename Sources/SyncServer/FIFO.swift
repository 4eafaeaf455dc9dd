/// A queue: append at the end, take from the front, both in constant time on average. One of a single element, the
/// common case, owns no memory.
struct FIFO<Element> {
    private var front: Element?
    /// What comes after the front, from `head` on; empty whenever there is no front.
    private var rest: [Element?] = []
    private var head = 0

    var count: Int { front == nil ? 0 : rest.count - head + 1 }
    var isEmpty: Bool { front == nil }
    var first: Element? { front }
    /// How many elements besides the first it has room for now.
    var capacity: Int { rest.capacity }

    mutating func append(_ element: Element) {
        if front == nil { front = element } else { rest.append(element) }
    }

    mutating func popFirst() -> Element? {
        guard let element = front else { return nil }
        guard head < rest.count else {
            front = nil
            return element
        }
        front = rest[head]
        rest[head] = nil
        head += 1
        if head == rest.count {
            // The few that come and go keep their room; what a rush has taken is given back.
            rest.removeAll(keepingCapacity: rest.capacity <= 128)
            head = 0
        } else if head > 64, head > rest.count / 2 {
            rest.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Puts elements back before all others, in the given order.
    mutating func prepend(contentsOf elements: [Element]) {
        self = FIFO(elements + all)
    }

    /// Takes out every element that matches; the others keep their order.
    mutating func removeAll(where matches: (Element) -> Bool) -> [Element] {
        var removed: [Element] = []
        var kept: [Element] = []
        for element in all {
            if matches(element) { removed.append(element) } else { kept.append(element) }
        }
        if !removed.isEmpty { self = FIFO(kept) }
        return removed
    }

    init() {}

    private init(_ elements: [Element]) {
        front = elements.first
        rest = elements.dropFirst().map(Optional.some)
    }

    private var all: [Element] {
        guard let front else { return [] }
        return [front] + rest[head...].compactMap { $0 }
    }
}
