/// The arguments of one call, checked against a ``CommandSpec``.
///
/// Values come from the command line first, then from the option's environment variable, then from its default.
public struct ParsedArguments: Sendable {
    /// Positional arguments in order.
    public private(set) var positionals: [String] = []
    private var values: [String: String] = [:]
    private var given: Set<String> = []
    private let spec: CommandSpec

    /// Parses what follows the command's name.
    ///
    /// Takes `--name value`, `--name=value` and `--`, after which everything is positional.
    /// - Throws: ``UsageError`` for unknown, doubled or missing arguments; an unknown option comes with a suggestion.
    public init(
        _ arguments: some Sequence<String>, of spec: CommandSpec, environment: [String: String] = [:]
    ) throws(UsageError) {
        self.spec = spec
        var rest = Array(arguments)[...]
        var onlyPositionals = false
        while let argument = rest.popFirst() {
            if onlyPositionals || argument == "-" || !argument.hasPrefix("-") {
                positionals.append(argument)
            } else if argument == "--" {
                onlyPositionals = true
            } else {
                try takeOption(argument, &rest)
            }
        }
        given = Set(values.keys)
        for option in spec.options where values[option.name] == nil {
            if let variable = option.environment, let value = environment[variable], !value.isEmpty {
                values[option.name] = value
            } else if let standard = option.standard, option.value != nil {
                values[option.name] = standard
            } else if option.isRequired {
                throw UsageError("--\(option.name) is missing", usage: spec.usage)
            }
        }
        let required = spec.positionals.filter { !$0.hasPrefix("[") }.count
        if positionals.count < required {
            throw UsageError("\(spec.positionals[positionals.count]) is missing", usage: spec.usage)
        }
        if positionals.count > spec.positionals.count {
            throw UsageError("\"\(positionals[spec.positionals.count])\" is one argument too many", usage: spec.usage)
        }
    }

    /// The positional argument at a place, or nil when it was left out.
    public func positional(_ index: Int) -> String? {
        positionals.indices.contains(index) ? positionals[index] : nil
    }

    /// The option's value, or nil when it was not given and has no default.
    public func string(_ name: String) -> String? { values[name] }

    /// The option's value when the command line itself gives it, not the environment or a default.
    public func given(_ name: String) -> String? { given.contains(name) ? values[name] : nil }

    /// Whether a flag was given. From the environment, `0`, `no`, `false` and the empty string mean that it was not.
    public func flag(_ name: String) -> Bool {
        guard let value = values[name] else { return false }
        return !["0", "no", "false", ""].contains(value.lowercased())
    }

    /// The option's value as a whole number within a range.
    /// - Throws: ``UsageError`` naming option, value and range.
    public func integer(_ name: String, in range: ClosedRange<Int>) throws(UsageError) -> Int? {
        guard let text = values[name] else { return nil }
        guard let number = Int(text), range.contains(number) else {
            throw UsageError(
                "--\(name) takes a whole number from \(range.lowerBound) to \(range.upperBound), not \"\(text)\"",
                usage: spec.usage)
        }
        return number
    }

    /// The option's value as seconds, with a fraction where wanted, e.g. `0.5`.
    /// - Throws: ``UsageError`` naming option, value and range.
    public func seconds(_ name: String, in range: ClosedRange<Double>) throws(UsageError) -> Duration? {
        guard let text = values[name] else { return nil }
        guard let number = Double(text), range.contains(number) else {
            throw UsageError(
                "--\(name) takes seconds from \(range.lowerBound) to \(range.upperBound), not \"\(text)\"",
                usage: spec.usage)
        }
        return .seconds(number)
    }

    private mutating func takeOption(_ argument: String, _ rest: inout ArraySlice<String>) throws(UsageError) {
        let body = argument.drop { $0 == "-" }
        let parts = body.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = String(parts.first ?? "")
        guard argument.hasPrefix("--"), let option = spec.options.first(where: { $0.name == name }) else {
            let near = nearest(to: name, in: spec.options.map(\.name)).map { "; did you mean --\($0)?" } ?? ""
            throw UsageError("there is no option \(argument.prefix(60))\(near)", usage: spec.usage)
        }
        guard values[name] == nil else { throw UsageError("--\(name) is given twice", usage: spec.usage) }
        if option.value == nil {
            guard parts.count == 1 else { throw UsageError("--\(name) takes no value", usage: spec.usage) }
            values[name] = "1"
        } else if parts.count == 2 {
            values[name] = String(parts[1])
        } else if let value = rest.popFirst() {
            values[name] = value
        } else {
            throw UsageError("--\(name) needs a value", usage: spec.usage)
        }
    }
}

/// A call that the program cannot take: what is wrong, and how it is called. Exit code 2.
public struct UsageError: Error, Equatable, Sendable {
    /// One line, factual.
    public var message: String
    /// The usage line of the command, or nil.
    public var usage: String?

    /// Makes an error from its message and the command's usage line.
    public init(_ message: String, usage: String? = nil) {
        self.message = message
        self.usage = usage
    }
}

/// The candidate that a mistyped word most likely meant: at most a third of its letters (at least two) wrong.
public func nearest(to word: String, in candidates: [String]) -> String? {
    let limit = max(2, word.count / 3)
    let ranked = candidates.map { (candidate: $0, distance: editDistance(word, $0)) }
    guard let best = ranked.min(by: { $0.distance < $1.distance }), best.distance <= limit,
        best.distance < best.candidate.count
    else { return nil }
    return best.candidate
}

private func editDistance(_ left: String, _ right: String) -> Int {
    let left = Array(left.lowercased().prefix(64))
    let right = Array(right.lowercased().prefix(64))
    var row = Array(0...right.count)
    for (i, a) in left.enumerated() {
        var diagonal = row[0]
        row[0] = i + 1
        for (j, b) in right.enumerated() {
            let substituted = diagonal + (a == b ? 0 : 1)
            diagonal = row[j + 1]
            row[j + 1] = min(substituted, row[j] + 1, row[j + 1] + 1)
        }
    }
    return row[right.count]
}
