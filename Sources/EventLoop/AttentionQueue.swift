/// The connections that a loop looks after at the end of its turn, in the order in which they asked.
///
/// A list linked through the connections themselves: no memory for idle ones, and one that is released in between takes
/// itself out.
struct AttentionQueue {
    private var first: Unmanaged<Connection>?
    private var last: Unmanaged<Connection>?
    private(set) var count = 0

    var isEmpty: Bool { first == nil }

    mutating func append(_ connection: Connection) {
        let link = Unmanaged.passUnretained(connection)
        connection.previousInQueue = last
        connection.nextInQueue = nil
        if let last { last._withUnsafeGuaranteedRef { $0.nextInQueue = link } } else { first = link }
        last = link
        count += 1
    }

    mutating func popFirst() -> Connection? {
        guard let connection = first?.takeUnretainedValue() else { return nil }
        remove(connection)
        return connection
    }

    /// Takes out a connection that is in the queue.
    mutating func remove(_ connection: Connection) {
        let (previous, next) = (connection.previousInQueue, connection.nextInQueue)
        if let previous { previous._withUnsafeGuaranteedRef { $0.nextInQueue = next } } else { first = next }
        if let next { next._withUnsafeGuaranteedRef { $0.previousInQueue = previous } } else { last = previous }
        connection.previousInQueue = nil
        connection.nextInQueue = nil
        count -= 1
    }
}
