/// The answer to a push that was accepted.
public struct PushReceipt: Hashable, Sendable {
    /// What became of it.
    public var outcome: Outcome
    /// Of a repeated push: what became of it the first time.
    public var first: Outcome?
    /// The revision under which it is stored.
    public var revision: Revision
    /// What the server compares.
    public var stamp: Timestamp
    /// Of a push that won or lost: the revision that it met.
    public var rival: Revision?
    /// Of a push that lost: the game's head now.
    public var head: Head?

    /// The version that won.
    public struct Head: Hashable, Sendable {
        /// Its revision.
        public var revision: Revision
        /// When its device saved it.
        public var saved: Timestamp
        /// What the server compares.
        public var stamp: Timestamp
        /// Which device pushed it.
        public var device: DeviceID
        /// The version of its state's shape.
        public var schema: Int32
        /// Its JSON text; `nil` is a tombstone.
        public var state: [UInt8]?

        /// Creates a head.
        public init(
            revision: Revision, saved: Timestamp, stamp: Timestamp, device: DeviceID, schema: Int32, state: [UInt8]?
        ) {
            self.revision = revision
            self.saved = saved
            self.stamp = stamp
            self.device = device
            self.schema = schema
            self.state = state
        }
    }

    /// Creates a receipt.
    public init(
        outcome: Outcome, first: Outcome? = nil, revision: Revision, stamp: Timestamp, rival: Revision? = nil,
        head: Head? = nil
    ) {
        self.outcome = outcome
        self.first = first
        self.revision = revision
        self.stamp = stamp
        self.rival = rival
        self.head = head
    }

    /// What became of the push when it first came: never `repeated` in a server's answer.
    public var settled: Outcome { first ?? outcome }

    /// Appends the line `OK outcome=… [first=…] revision=… stamp=… [rival=…] [head=… {state}]`.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: "OK outcome=")
        bytes.append(outcome)
        if let first {
            bytes.append(text: " first=")
            bytes.append(first)
        }
        bytes.append(option: " revision=", revision)
        bytes.append(option: " stamp=", stamp)
        if let rival { bytes.append(option: " rival=", rival) }
        if let head {
            bytes.append(option: " head=", head.revision)
            bytes.append(option: " head-saved=", head.saved)
            bytes.append(option: " head-stamp=", head.stamp)
            bytes.append(option: " head-device=", head.device)
            bytes.append(option: " head-schema=", head.schema)
            if let state = head.state {
                bytes.append(state: state.span)
            } else {
                bytes.append(text: " head-deleted=true")
            }
        }
        bytes.append(UInt8(ascii: "\n"))
    }
}

extension [UInt8] {
    mutating func append(_ outcome: Outcome) {
        switch outcome {
        case .created: append(text: "created")
        case .advanced: append(text: "advanced")
        case .won: append(text: "won")
        case .lost: append(text: "lost")
        case .repeated: append(text: "repeated")
        }
    }

    /// Appends a blank and a state. A line break in it (JSON text from another source than this protocol may hold some
    /// between its parts) becomes a blank: it would end the line.
    mutating func append(state: Span<UInt8>) {
        append(UInt8(ascii: " "))
        let start = count
        state.withUnsafeBufferPointer { append(contentsOf: $0) }
        guard state.holdsLineBreak else { return }
        for index in start..<count where self[index] == 0x0A || self[index] == 0x0D { self[index] = 0x20 }
    }
}

extension Span<UInt8> {
    fileprivate var holdsLineBreak: Bool {
        let raw = bytes
        var index = 0
        while index <= count - 8 {
            let word = raw.unsafeLoadUnaligned(fromByteOffset: index, as: UInt64.self)
            if word.bytes(equalTo: 0x0A) | word.bytes(equalTo: 0x0D) != 0 { return true }
            index += 8
        }
        while index < count {
            if self[index] == 0x0A || self[index] == 0x0D { return true }
            index += 1
        }
        return false
    }
}
