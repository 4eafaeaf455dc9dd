import CLibEvent
import Glibc
import Synchronization

extension EventLoop {
    /// Hands work to a loop from any thread; a small value that may outlive the loop.
    public struct Remote: Sendable {
        let mailbox: Mailbox

        init() throws(EventLoopError) {
            mailbox = try Mailbox()
        }

        /// Runs work on the loop's thread, in the order of the calls of one thread.
        /// - Returns: false when the loop is gone; the work is dropped then.
        @discardableResult
        public func post(_ work: @escaping @Sendable () -> Void) -> Bool {
            mailbox.put(work)
        }
    }

    /// Where other threads leave work; its event counter wakes the loop.
    final class Mailbox: Sendable {
        private struct State {
            var work: [@Sendable () -> Void] = []
            var isClosed = false
        }

        /// An eventfd. It lives as long as the mailbox, so a late `post` can never write to a stranger's descriptor.
        let descriptor: Int32
        private let state = Mutex(State())

        init() throws(EventLoopError) {
            descriptor = eventfd(0, Int32(EFD_NONBLOCK | EFD_CLOEXEC))
            guard descriptor >= 0 else { throw EventLoopError(call: "eventfd") }
        }

        deinit {
            Glibc.close(descriptor)
        }

        func put(_ work: @escaping @Sendable () -> Void) -> Bool {
            let (isAccepted, needsWaking) = state.withLock { state in
                guard !state.isClosed else { return (false, false) }
                state.work.append(work)
                return (true, state.work.count == 1)
            }
            if needsWaking { eventfd_write(descriptor, 1) }
            return isAccepted
        }

        func takeAll() -> [@Sendable () -> Void] {
            var count: eventfd_t = 0
            eventfd_read(descriptor, &count)
            return state.withLock { state in
                defer { state.work = [] }
                return state.work
            }
        }

        func close() {
            // The dropped work is released outside the lock: its captures may have any deinit.
            let dropped = state.withLock { state in
                defer { state = State(isClosed: true) }
                return state.work
            }
            _ = dropped
        }
    }
}
