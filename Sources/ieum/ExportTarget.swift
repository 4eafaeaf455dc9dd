import FileDraft

/// Where an export goes: a file that is there when it is whole and not before, or stdout; on a terminal what would steer it
/// is escaped.
final class ExportTarget {
    private let draft: FileDraft?
    private let output: Output
    /// What waits for more to go to stdout with it.
    private var buffer: [UInt8] = []

    /// Begins the file that is named; `-` is stdout.
    init(_ path: String, _ output: Output) throws {
        self.output = output
        draft = path == "-" ? nil : try FileDraft(path, isReplacing: true)
    }

    /// Takes whole lines; they are written when there are enough of them.
    func write(_ bytes: [UInt8]) throws {
        guard let draft else {
            buffer += bytes
            return buffer.count >= 262_144 ? try flush() : ()
        }
        try draft.write(bytes)
    }

    /// All is written: the file takes its name.
    func finish() throws {
        guard let draft else { return try flush() }
        try draft.finish()
    }

    private func flush() throws {
        defer { buffer.removeAll(keepingCapacity: true) }
        // For the eyes: what an import takes goes into a file or a pipe.
        try output.data(output.isTerminal ? JSONText.terminalSafe(buffer) : buffer)
    }
}
