extension String {
    /// The text as a terminal may show it: what would move its cursor or change its colours is written as a number. Names and
    /// messages come from files and from the database.
    var shown: String {
        guard unicodeScalars.contains(where: Self.isControl) else { return self }
        var text = ""
        for scalar in unicodeScalars {
            if Self.isControl(scalar) {
                text += "\\u{\(String(scalar.value, radix: 16, uppercase: true))}"
            } else {
                text.unicodeScalars.append(scalar)
            }
        }
        return text
    }

    /// The same for a text that shall stay on its line.
    var shownOnOneLine: String {
        shown.split(separator: "\n", omittingEmptySubsequences: false).joined(separator: "\\n")
    }

    private static func isControl(_ scalar: Unicode.Scalar) -> Bool {
        scalar.properties.generalCategory == .control && scalar != "\n" && scalar != "\t"
    }
}
