import Foundation
import TerminalText

extension Console {
    /// Writes columns to standard output, the heads first; two blanks between them. Nothing in a cell steers a terminal.
    static func table(_ heads: [String], _ rows: [[String]]) {
        let lines = ([heads] + rows).map { $0.map(\.terminalSafe) }
        let widths = heads.indices.map { column in lines.map { $0[column].terminalWidth }.max() ?? 0 }
        var text = ""
        for line in lines {
            let cells = zip(line, widths).map { $0.padded(to: $1) }
            text += cells.joined(separator: "  ").trimmingCharacters(in: .whitespaces) + "\n"
        }
        output(text)
    }

    /// Writes a value as a line of JSON to standard output. On a terminal what would steer it is escaped.
    static func json(_ value: some Encodable) {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let data = try? encoder.encode(value) else { return }
        let text = String(decoding: data, as: UTF8.self)
        output((isatty(STDOUT_FILENO) == 1 ? text.terminalSafeJSON : text) + "\n")
    }

    /// Asks on standard error and gives the line that is typed; nil where nobody can be asked.
    static func ask(_ question: String) -> String? {
        guard isatty(STDIN_FILENO) == 1 else { return nil }
        talk(question.terminalSafe)
        return readLine() ?? ""
    }
}

extension String {
    /// The same JSON text: what would steer a terminal stands in strings only, where an escape says the same.
    fileprivate var terminalSafeJSON: String {
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isTerminalSafe {
                text.unicodeScalars.append(scalar)
            } else {
                for unit in String(scalar).utf16 {
                    let digits = String(unit, radix: 16)
                    text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
                }
            }
        }
        return text
    }

    /// A printed time without its fraction, for people: `2026-11-29 12:00:00`.
    var shortTime: String { "\(prefix(10)) \(dropFirst(11).prefix(8))" }
}

extension Int64 {
    /// `512 B`, `1.1 kB`, `2.5 MB`, `3.0 GB`
    var sizeText: String {
        var (value, unit) = (Double(self), 0)
        while value >= 999.95, unit < 4 { (value, unit) = (value / 1_000, unit + 1) }
        return unit == 0 ? "\(self) B" : "\((value * 10).rounded() / 10) \(["", "kB", "MB", "GB", "TB"][unit])"
    }
}
