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
