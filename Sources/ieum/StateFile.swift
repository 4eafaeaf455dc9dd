import Arguments
import Glibc

/// Reads the JSON text that is to be pushed.
enum StateFile {
    /// The largest file that is read; servers take less.
    static let limit = 64 << 20

    /// The state in a file, or on stdin for `-`, as one line.
    static func read(_ path: String) throws(UsageError) -> [UInt8] {
        try oneLine(bytes(of: path))
    }

    private static func bytes(of path: String) throws(UsageError) -> [UInt8] {
        let isStdin = path == "-"
        let descriptor = isStdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { throw problem(path) }
        defer { if !isStdin { close(descriptor) } }
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 65_536)
        while true {
            let count = Glibc.read(descriptor, &chunk, chunk.count)
            if count > 0 {
                bytes += chunk[..<count]
                guard bytes.count <= limit else { throw UsageError("\(path) is longer than \(limit) bytes") }
            } else if count == 0 {
                return bytes
            } else if errno != EINTR {
                throw problem(path)
            }
        }
    }

    private static func problem(_ path: String) -> UsageError {
        UsageError("\(path) cannot be read: \(String(cString: strerror(errno)))")
    }

    /// A JSON text as one line, since a push is one: the line breaks around it go, those between its parts become blanks.
    /// A byte order mark before it goes, too. All else stays as it is, byte for byte.
    /// - Throws: ``UsageError`` for an empty text and for a line break inside a string, which JSON does not allow.
    static func oneLine(_ bytes: [UInt8]) throws(UsageError) -> [UInt8] {
        // Some editors put a byte order mark before a text. It is no part of the JSON value.
        let bytes = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? bytes.dropFirst(3) : bytes[...]
        let start = bytes.firstIndex { !$0.isJSONBlank } ?? bytes.endIndex
        let end = bytes.lastIndex { $0 != 0x0A && $0 != 0x0D } ?? bytes.startIndex
        guard start <= end, start < bytes.endIndex else {
            throw UsageError("the state is empty: it must be a JSON value")
        }
        var line = Array(bytes[start...end])
        var lineNumber = 1 + bytes[..<start].count { $0 == 0x0A }
        var isInString = false
        var index = 0
        while index < line.count {
            switch line[index] {
            case UInt8(ascii: "\""): isInString.toggle()
            case UInt8(ascii: "\\") where isInString: index += 1
            case 0x0A, 0x0D:
                guard !isInString else {
                    throw UsageError("line \(lineNumber) of the state ends inside a string: write \\n there")
                }
                if line[index] == 0x0A { lineNumber += 1 }
                line[index] = 0x20
            default: break
            }
            index += 1
        }
        // An escaped line break was jumped over above.
        guard !line.contains(where: { $0 == 0x0A || $0 == 0x0D }) else {
            throw UsageError("a line of the state ends inside a string: write \\n there")
        }
        return line
    }
}

extension UInt8 {
    fileprivate var isJSONBlank: Bool { self == 0x20 || self == 0x09 || self == 0x0A || self == 0x0D }
}
