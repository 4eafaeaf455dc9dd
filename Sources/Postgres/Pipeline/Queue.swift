/// First in, first out, in one array: taking from the front costs nothing but an index.
struct Queue<Element> {
    private var elements: [Element?] = []
    private var head = 0

    var isEmpty: Bool { head == elements.count }
    var count: Int { elements.count - head }

    mutating func append(_ element: Element) {
        elements.append(element)
    }

    mutating func popFirst() -> Element? {
        guard !isEmpty else { return nil }
        let element = elements[head].take()
        head += 1
        if isEmpty {
            elements.removeAll(keepingCapacity: elements.count <= 1024)
            head = 0
        } else if head >= 64 && head * 2 >= elements.count {
            elements.removeFirst(head)
            head = 0
        }
        return element
    }

    /// Changes the first element in its place; nil if there is none.
    mutating func withFirst<Value>(_ body: (inout Element) -> Value) -> Value? {
        guard !isEmpty, var element = elements[head].take() else { return nil }
        defer { elements[head] = element }
        return body(&element)
    }
}
