import Arguments

/// The arguments of `ieumd psql`, told apart: those of ieumd, and psql's.
struct PsqlArguments: Equatable {
    /// `--database` and `--data-directory` with their values.
    private(set) var own: [String] = []
    /// All others, in their order.
    private(set) var psql: [String] = []
    /// Whether psql will ask for commands, unless its input or output is no terminal.
    private(set) var isInteractive = true

    /// Options of psql that a value follows, as its manual lists them.
    private static let shortWithValue = Set("cdFfhLoPpRTUv")
    private static let longWithValue: Set = [
        "--command", "--dbname", "--field-separator", "--file", "--host", "--log-file", "--output", "--port", "--pset",
        "--record-separator", "--set", "--table-attr", "--username", "--variable",
    ]
    /// Options after which psql asks for nothing.
    private static let ending: Set = ["--command", "--file", "--list", "--version", "--help"]

    /// Tells them apart. What follows `--` is psql's, unseen.
    /// - Throws: ``UsageError`` for a word before `--` that is neither an option nor an option's value.
    init(_ arguments: [String], usage: String) throws(UsageError) {
        let split = arguments.firstIndex(of: "--") ?? arguments.endIndex
        var rest = arguments[..<split]
        while let argument = rest.popFirst() {
            if DatabaseChoice.options.contains(where: { argument == "--\($0.name)" }) {
                own.append(argument)
                if let value = rest.popFirst() { own.append(value) }
            } else if DatabaseChoice.options.contains(where: { argument.hasPrefix("--\($0.name)=") }) {
                own.append(argument)
            } else if argument.hasPrefix("-") && argument != "-" {
                psql.append(argument)
                if note(argument), let value = rest.popFirst() { psql.append(value) }
            } else {
                throw UsageError(
                    "\"\(argument)\" is no option; a file of SQL is given as -f \(argument)", usage: usage)
            }
        }
        var last = arguments[split...].dropFirst()
        while let argument = last.popFirst() {
            psql.append(argument)
            if argument.hasPrefix("-"), note(argument), let value = last.popFirst() { psql.append(value) }
        }
    }

    /// Notes what an option means for asking.
    /// - Returns: Whether its value is the next argument.
    private mutating func note(_ option: String) -> Bool {
        if option.hasPrefix("--") {
            let name = String(option.prefix { $0 != "=" })
            if Self.ending.contains(name) { isInteractive = false }
            return Self.longWithValue.contains(name) && !option.contains("=")
        }
        // Short options may stand together, -XAtc: the first that takes a value takes what follows.
        let letters = Array(option.dropFirst())
        for (place, letter) in letters.enumerated() {
            if "cflV?".contains(letter) { isInteractive = false }
            if Self.shortWithValue.contains(letter) { return place == letters.count - 1 }
        }
        return false
    }
}
