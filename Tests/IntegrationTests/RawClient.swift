import Foundation
import Wire

/// A plain TCP connection to a daemon that sends and reads bytes as a test gives them: `nc` for tests.
///
/// `@unchecked`: a socket takes one writing and one reading thread; the buffer belongs to the reading one.
final class RawClient: @unchecked Sendable {
    let descriptor: Int32
    private var reader: LineReader

    /// Connects and, unless told otherwise, reads the greeting.
    init(port: Int, readsGreeting: Bool = true, timeout: Double = 60) throws {
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = in_port_t(port).bigEndian
        address.sin_addr.s_addr = inet_addr("127.0.0.1")
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(descriptor, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        self.descriptor = descriptor
        reader = LineReader(descriptor)
        guard result == 0 else {
            let code = errno
            close(descriptor)
            throw SocketError(call: "connect", code: code)
        }
        if readsGreeting { _ = try line(timeout: timeout) }
    }

    deinit { close(descriptor) }

    /// Sends all bytes.
    func send(_ bytes: some Sequence<UInt8>) throws {
        let bytes = Array(bytes)
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes {
                Foundation.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            if count < 0 {
                if errno == EINTR { continue }
                throw SocketError(call: "send", code: errno)
            }
            rest = rest.dropFirst(count)
        }
    }

    /// Sends a command with its line end.
    func send(_ line: String) throws { try send((line + "\n").utf8) }

    /// Tells the server that nothing more comes.
    func finishSending() { shutdown(descriptor, Int32(SHUT_WR)) }

    /// The next line without its end; nil when the server has closed.
    func line(timeout: Double = 60) throws -> String? { try reader.next(timeout: timeout) }

    /// Whether a line, or the end, arrives within the time.
    func hasInput(within timeout: Double) -> Bool { reader.hasInput(within: timeout) }

    /// Lines up to and including the one that ends a reply. Notices are passed over.
    func reply(timeout: Double = 60) throws -> [String] {
        var lines: [String] = []
        while let line = try line(timeout: timeout) {
            if line.hasPrefix("* ") { continue }
            lines.append(line)
            if ["OK", "END", "ERR"].contains(line.prefix { $0 != " " }) { return lines }
        }
        throw SocketError(call: "reply: the server closed", code: 0)
    }

    /// Sends a command and gives the reply's last line.
    @discardableResult
    func ask(_ line: String, timeout: Double = 60) throws -> String {
        try send(line)
        return try reply(timeout: timeout).last ?? ""
    }
}

/// A system call on a socket failed, or a time limit passed.
struct SocketError: Error, CustomStringConvertible {
    let call: String
    let code: Int32
    /// Whether nothing came for too long, and not that the connection failed.
    var isTimeout: Bool { call.hasPrefix("no line within ") }
    var description: String { code == 0 ? call : "\(call): \(String(cString: strerror(code)))" }
}

/// Reads lines from a descriptor with a time limit.
struct LineReader {
    private let descriptor: Int32
    private var buffer: [UInt8] = []
    private var start = 0
    private var scanned = 0

    init(_ descriptor: Int32) { self.descriptor = descriptor }

    mutating func next(timeout: Double) throws -> String? {
        let deadline = Date().addingTimeInterval(timeout)
        while true {
            if let end = buffer[scanned...].firstIndex(of: 0x0A) {
                let line = String(decoding: buffer[start..<end], as: UTF8.self)
                start = end + 1
                scanned = start
                if start > 1 << 20 { compact() }
                return line
            }
            scanned = buffer.count
            guard hasInput(within: deadline.timeIntervalSinceNow) else {
                throw SocketError(call: "no line within \(timeout) s", code: 0)
            }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            let count = read(descriptor, &chunk, chunk.count)
            if count == 0 { return nil }
            if count < 0 {
                if errno == EINTR { continue }
                if errno == ECONNRESET { return nil }
                throw SocketError(call: "read", code: errno)
            }
            compact()
            buffer += chunk[..<count]
        }
    }

    func hasInput(within timeout: Double) -> Bool {
        if buffer[scanned...].contains(0x0A) { return true }
        var poll = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        return Foundation.poll(&poll, 1, Int32(max(0, timeout * 1000))) > 0
    }

    private mutating func compact() {
        buffer.removeFirst(start)
        scanned -= start
        start = 0
    }
}

/// The fields of a reply line, by key.
func fields(_ line: String) -> [String: String] {
    var result: [String: String] = [:]
    for word in line.split(separator: " ") {
        let parts = word.split(separator: "=", maxSplits: 1)
        if parts.count == 2 { result[String(parts[0])] = String(parts[1]) }
    }
    return result
}
