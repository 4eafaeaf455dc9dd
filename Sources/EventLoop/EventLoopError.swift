import CLibEvent
import Glibc

/// A system or library call that failed.
public struct EventLoopError: Error, Hashable, Sendable {
    /// The call, e.g. `bind`.
    public var call: String
    /// The error number, e.g. `EADDRINUSE`; for ``isNameResolution`` a code of `getaddrinfo`; 0 when the call gave none.
    public var number: Int32
    /// What the system says to it, one line.
    public var message: String
    /// Whether ``number`` is one of `getaddrinfo`'s `EAI_` codes and no errno.
    public var isNameResolution: Bool

    /// An error of a call that sets `errno`; taken from there when no number is given.
    public init(call: String, number: Int32 = errno) {
        self.call = call
        self.number = number
        message = number == 0 ? "failed" : Self.text(ofError: number)
        isNameResolution = false
    }

    /// An error with words of its own.
    public init(call: String, number: Int32, message: String) {
        self.call = call
        self.number = number
        self.message = message
        isNameResolution = false
    }

    /// An error that `getaddrinfo` returned.
    init(nameResolution code: Int32) {
        call = "getaddrinfo"
        number = code
        message = gai_strerror(code).map { String(cString: $0) } ?? "failed"
        isNameResolution = true
    }

    private static func text(ofError number: Int32) -> String {
        withUnsafeTemporaryAllocation(of: CChar.self, capacity: 256) { buffer in
            buffer.initialize(repeating: 0)
            // The XSI form of strerror_r, since strerror's shared buffer belongs to all threads.
            guard let start = buffer.baseAddress, strerror_r(number, start, buffer.count) == 0 else {
                return "error \(number)"
            }
            return String(cString: start)
        }
    }
}

extension EventLoopError: CustomStringConvertible {
    /// `bind: Address already in use (98)`
    public var description: String {
        number == 0 ? "\(call): \(message)" : "\(call): \(message) (\(number))"
    }
}
