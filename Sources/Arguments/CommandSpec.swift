/// What a command of a program takes: enough to parse its arguments and to print its help.
///
/// One value serves both, so that help can never name an option that the parser does not know.
public struct CommandSpec: Sendable {
    /// The words that call it, e.g. `ieumd serve`.
    public var name: String
    /// One line: what it does, in lower case and without a full stop.
    public var summary: String
    /// Names of the positional arguments in order, e.g. `<collection>`; one in brackets may be left out.
    public var positionals: [String]
    /// Options in the order in which help lists them.
    public var options: [OptionSpec]
    /// Complete command lines.
    public var examples: [String]
    /// Exit codes with their meaning, in order.
    public var exitCodes: [(code: Int32, meaning: String)]

    /// Describes a command.
    public init(
        _ name: String, _ summary: String, positionals: [String] = [], options: [OptionSpec] = [],
        examples: [String] = [], exitCodes: [(code: Int32, meaning: String)] = []
    ) {
        self.name = name
        self.summary = summary
        self.positionals = positionals
        self.options = options
        self.examples = examples
        self.exitCodes = exitCodes
    }

    /// The help text: summary, usage, example, options, exit codes.
    public var help: String {
        var lines = ["\(name): \(summary)", "", "Usage: \(usage)"]
        if !examples.isEmpty {
            lines.append("")
            lines += examples.enumerated().map { ($0.offset == 0 ? "Example: " : "         ") + $0.element }
        }
        if !options.isEmpty {
            lines += ["", "Options:"]
            let width = min(34, options.map { $0.label.count }.max() ?? 0)
            for option in options {
                let label = "  " + option.label
                let text = option.fullHelp
                if option.label.count > width {
                    lines += [label, String(repeating: " ", count: width + 4) + text]
                } else {
                    lines.append(label + String(repeating: " ", count: width - option.label.count + 2) + text)
                }
            }
        }
        if !exitCodes.isEmpty {
            lines += ["", "Exit codes: " + exitCodes.map { "\($0.code) \($0.meaning)" }.joined(separator: ", ")]
        }
        return lines.joined(separator: "\n") + "\n"
    }

    /// One line: the command's name with its arguments.
    public var usage: String {
        let flags = options.map { option in option.isRequired ? option.label : "[\(option.label)]" }
        let short = flags.count > 6 ? ["[options]"] : flags
        return ([name] + positionals + short).joined(separator: " ")
    }
}

/// One `--option` of a command.
public struct OptionSpec: Sendable {
    /// Its name without dashes.
    public var name: String
    /// What its value is, e.g. `HOST:PORT`; nil for a flag.
    public var value: String?
    /// The value used when it is not given, as help shows it.
    public var standard: String?
    /// The environment variable that stands in for it.
    public var environment: String?
    /// Whether the command refuses to run without it.
    public var isRequired: Bool
    /// One line of help.
    public var help: String

    /// Describes an option; a flag has no `value`.
    public init(
        _ name: String, _ value: String? = nil, default standard: String? = nil, environment: String? = nil,
        isRequired: Bool = false, help: String
    ) {
        self.name = name
        self.value = value
        self.standard = standard
        self.environment = environment
        self.isRequired = isRequired
        self.help = help
    }

    var label: String { value.map { "--\(name) \($0)" } ?? "--\(name)" }

    var fullHelp: String {
        var notes: [String] = []
        if let standard { notes.append("default \(standard)") }
        if let environment { notes.append("$\(environment)") }
        return notes.isEmpty ? help : "\(help) (\(notes.joined(separator: "; ")))"
    }
}
