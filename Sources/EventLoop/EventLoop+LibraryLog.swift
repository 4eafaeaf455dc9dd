import CLibEvent
import Synchronization

extension EventLoop {
    /// How grave a message of libevent is.
    public enum LogLevel: Sendable {
        /// For libevent's own developers; off as it is built by Debian.
        case debug
        /// Worth knowing.
        case info
        /// A call failed, e.g. a descriptor that epoll does not take; the caller gets an error as well.
        case warning
        /// libevent is about to give up.
        case error
    }

    /// Hands what libevent has to say to a log; else it goes to standard error as it is.
    ///
    /// For the whole process, all loops together; best set once, before the first loop is made.
    /// - Parameter handler: called on whatever thread runs a loop; it must not call the loop.
    public static func setLibraryLog(_ handler: @escaping @Sendable (LogLevel, String) -> Void) {
        libraryLog.withLock { $0 = handler }
        event_set_log_callback { severity, text in
            guard let text, let handler = libraryLog.withLock({ $0 }) else { return }
            let level: LogLevel =
                switch severity {
                case EVENT_LOG_DEBUG: .debug
                case EVENT_LOG_MSG: .info
                case EVENT_LOG_WARN: .warning
                default: .error
                }
            handler(level, String(cString: text))
        }
    }
}

/// A C callback without a context reads it.
private let libraryLog = Mutex<(@Sendable (EventLoop.LogLevel, String) -> Void)?>(nil)
