/// Names one request of a session to its shell; never used twice in a session.
public struct RequestID: RawRepresentable, Hashable, Sendable {
    /// A running number.
    public var rawValue: UInt64
    /// Wraps a number.
    public init(rawValue: UInt64) { self.rawValue = rawValue }
}

/// Replies in the order of their commands, whatever the order in which they become known.
///
/// The front's reply goes straight to the output; one that is known before its turn is kept as bytes. An empty queue owns
/// no memory.
struct ReplyQueue: Sendable {
    /// What a slot without a reply waits for.
    enum Kind: Sendable {
        case push, signIn, pairingCode, account, read, watch, staging, importing

        /// Whether further commands may begin meanwhile.
        var overlaps: Bool { self == .push || self == .staging }
    }

    private enum Slot: Sendable {
        case waiting(Kind)
        case ready([UInt8])
    }

    private var slots: [Slot] = []
    /// The id of `slots[0]`.
    private var firstID: UInt64 = 1
    /// How many of `slots` have been answered and sent.
    private var sent: UInt32 = 0
    /// How many commands wait for a reply.
    private(set) var waitingCount: UInt32 = 0
    /// A command that waits alone, the common case: it needs no slot. Its id is `firstID`.
    private var lone: Kind?

    /// How many commands have no reply in the output yet.
    var count: Int { lone == nil ? slots.count - Int(sent) : 1 }
    var isEmpty: Bool { lone == nil && slots.isEmpty }

    /// Adds a command whose reply will come later.
    mutating func wait(for kind: Kind) -> RequestID {
        waitingCount += 1
        if isEmpty {
            lone = kind
            return RequestID(rawValue: firstID)
        }
        giveLoneASlot()
        slots.append(.waiting(kind))
        return RequestID(rawValue: firstID + UInt64(slots.count - 1))
    }

    /// Adds a command whose reply is known.
    mutating func add(to output: inout [UInt8], _ print: (inout [UInt8]) -> Void) {
        guard !isEmpty else { return print(&output) }
        giveLoneASlot()
        var bytes: [UInt8] = []
        print(&bytes)
        slots.append(.ready(bytes))
    }

    private mutating func giveLoneASlot() {
        guard let kind = lone else { return }
        lone = nil
        slots.append(.waiting(kind))
    }

    /// What a request waits for; `nil` if it was answered before or never was.
    func kind(of request: RequestID) -> Kind? {
        if let lone { return request.rawValue == firstID ? lone : nil }
        guard let index = index(of: request), case .waiting(let kind) = slots[index] else { return nil }
        return kind
    }

    /// Gives a waiting request its reply; another one is ignored.
    mutating func answer(_ request: RequestID, to output: inout [UInt8], _ print: (inout [UInt8]) -> Void) {
        if lone != nil {
            guard request.rawValue == firstID else { return }
            removeAll()
            return print(&output)
        }
        guard let index = index(of: request), case .waiting = slots[index] else { return }
        waitingCount -= 1
        guard index == sent else {
            var bytes: [UInt8] = []
            print(&bytes)
            slots[index] = .ready(bytes)
            return
        }
        print(&output)
        sent += 1
        while sent < slots.count, case .ready(let bytes) = slots[Int(sent)] {
            output.append(contentsOf: bytes)
            slots[Int(sent)] = .ready([])
            sent += 1
        }
        discardSent()
    }

    /// Forgets everything; later answers are ignored.
    mutating func removeAll() {
        firstID += lone == nil ? UInt64(slots.count) : 1
        lone = nil
        slots = []
        sent = 0
        waitingCount = 0
    }

    private func index(of request: RequestID) -> Int? {
        guard request.rawValue >= firstID, request.rawValue - firstID < UInt64(slots.count) else { return nil }
        let index = Int(request.rawValue - firstID)
        return index >= sent ? index : nil
    }

    private mutating func discardSent() {
        if sent == slots.count {
            removeAll()
        } else if sent >= 32, Int(sent) * 2 >= slots.count {
            slots.removeFirst(Int(sent))
            firstID += UInt64(sent)
            sent = 0
        }
    }
}
