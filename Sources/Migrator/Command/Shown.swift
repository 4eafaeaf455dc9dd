import TerminalText

extension String {
    /// The text as a terminal may show it, on as many lines as it has: what would move its cursor, change its colours or turn
    /// text around is written as a number. Names and messages come from files and from the database.
    var shown: String {
        guard !unicodeScalars.allSatisfy(Self.mayStay) else { return self }
        return unicodeScalars.reduce(into: "") { text, scalar in
            text += Self.mayStay(scalar) ? String(scalar) : String(scalar).terminalSafe
        }
    }

    /// The same for a text that shall stay on its line.
    var shownOnOneLine: String {
        shown.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\\n")
    }

    private static func mayStay(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "\n" || scalar == "\t" || scalar.isTerminalSafe
    }
}
