import Foundation
import TerminalText

/// Lines of `key=value` on standard error (logfmt), one for each event.
///
/// Never holds a state, a token, a code or a password: callers give events, ids and counts.
public struct Log: Sendable {
    /// How much is written.
    public enum Level: Int, Sendable, Comparable, CaseIterable {
        case debug, info, warning, error

        /// The level of that name, e.g. `info`.
        public init?(name: String) {
            guard let level = Level.allCases.first(where: { $0.name == name }) else { return nil }
            self = level
        }

        var name: String { "\(self)" }

        /// Whether the left level is the less urgent one.
        public static func < (left: Level, right: Level) -> Bool { left.rawValue < right.rawValue }
    }

    /// Lines below this level are left out.
    public var level: Level
    private let write: @Sendable (String) -> Void

    /// A log that writes each line with `write`, by default to standard error.
    public init(level: Level = .info, write: @escaping @Sendable (String) -> Void = Log.standardError) {
        self.level = level
        self.write = write
    }

    /// Writes one line to standard error in one system call.
    public static let standardError: @Sendable (String) -> Void = { line in
        let bytes = Array((line + "\n").utf8)
        _ = bytes.withUnsafeBytes { Foundation.write(STDERR_FILENO, $0.baseAddress, $0.count) }
    }

    /// Writes an event with its fields; a value with blanks or quotes, or with what would steer a terminal or turn text around,
    /// is quoted and escaped.
    public func callAsFunction(
        _ level: Level, _ event: String, _ fields: KeyValuePairs<String, any CustomStringConvertible> = [:]
    ) {
        guard level >= self.level else { return }
        var line = "time=\(Clock.now()) level=\(level.name) event=\(Log.quoted(event))"
        for (key, value) in fields { line += " \(key)=\(Log.quoted(value.description))" }
        write(line)
    }

    private static func quoted(_ text: String) -> String {
        let isPlain =
            !text.isEmpty
            && text.unicodeScalars.allSatisfy {
                $0.isASCII ? $0.value > 0x20 && $0.value != 0x7F && $0 != "\"" && $0 != "=" : $0.isTerminalSafe
            }
        guard !isPlain else { return text }
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\"", "\\": result += "\\\(scalar)"
            case "\n": result += "\\n"
            case let scalar where !scalar.isTerminalSafe: result += "\\u{\(String(scalar.value, radix: 16))}"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
