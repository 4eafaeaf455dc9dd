import CLibEvent

/// Tells when a descriptor of somebody else, such as libpq's socket, can be read or written.
///
/// The watch does not own the descriptor: ``cancel()`` it, or release it, **before** the descriptor is closed, since the
/// number may be a stranger's a moment later. Readiness is level-triggered: the closure is called in every turn in which
/// the descriptor is ready for something that ``interest`` names. Cancelling and releasing are safe in the closure.
public final class DescriptorWatch {
    /// Directions of readiness.
    public struct Interest: OptionSet, Hashable, Sendable {
        /// Bits: 1 read, 2 write.
        public let rawValue: UInt8

        /// A set with these bits.
        public init(rawValue: UInt8) { self.rawValue = rawValue }

        /// There is something to read, or the peer is gone, or there is an error to fetch.
        public static let read = Interest(rawValue: 1)
        /// There is room to write, or there is an error to fetch.
        public static let write = Interest(rawValue: 2)
    }

    /// The descriptor that is watched.
    public let descriptor: Int32
    /// What is watched for now.
    public private(set) var interest: Interest = []

    private let loop: EventLoop
    private let handler: (Interest) -> Void
    private var readEvent: OpaquePointer?
    private var writeEvent: OpaquePointer?

    /// Watches a descriptor, which must be open and of a kind that epoll takes (no regular file).
    /// - Parameters:
    ///   - loop: the loop that watches.
    ///   - descriptor: stays the caller's.
    ///   - interest: what to watch for.
    ///   - handler: is given what is ready, one direction a call.
    public init(
        on loop: EventLoop, descriptor: Int32, interest: Interest, _ handler: @escaping (_ ready: Interest) -> Void
    ) throws(EventLoopError) {
        self.loop = loop
        self.descriptor = descriptor
        self.handler = handler
        try setInterest(interest)
    }

    deinit {
        if let readEvent { event_free(readEvent) }
        if let writeEvent { event_free(writeEvent) }
    }

    /// Changes what is watched for; cheap when nothing changes.
    public func setInterest(_ wanted: Interest) throws(EventLoopError) {
        if wanted.contains(.read) != interest.contains(.read) {
            try set(&readEvent, EV_READ, isWanted: wanted.contains(.read))
            interest.formSymmetricDifference(.read)
        }
        if wanted.contains(.write) != interest.contains(.write) {
            try set(&writeEvent, EV_WRITE, isWanted: wanted.contains(.write))
            interest.formSymmetricDifference(.write)
        }
    }

    /// Watches for nothing any more.
    public func cancel() {
        interest = []
        if let readEvent { event_del(readEvent) }
        if let writeEvent { event_del(writeEvent) }
    }

    private func set(_ event: inout OpaquePointer?, _ direction: Int32, isWanted: Bool) throws(EventLoopError) {
        guard isWanted else {
            if let event { event_del(event) }
            return
        }
        if event == nil { event = try makeEvent(direction) }
        guard event_add(event, nil) == 0 else { throw EventLoopError(call: "event_add") }
    }

    private func makeEvent(_ direction: Int32) throws(EventLoopError) -> OpaquePointer {
        let context = Unmanaged.passUnretained(self).toOpaque()
        let event = event_new(
            loop.base, descriptor, Int16(direction | EV_PERSIST),
            { _, what, context in
                guard let context else { return }
                let watch = Unmanaged<DescriptorWatch>.fromOpaque(context).takeUnretainedValue()
                watch.handler(Int32(what) & EV_READ != 0 ? .read : .write)
            }, context)
        guard let event else { throw EventLoopError(call: "event_new") }
        return event
    }
}
