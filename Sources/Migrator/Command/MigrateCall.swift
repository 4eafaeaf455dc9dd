import Arguments
import Foundation

/// One call of the command line, its arguments read.
struct MigrateCall {
    let command: MigrateCommand
    let subcommand: Subcommand
    let spec: CommandSpec
    let arguments: ParsedArguments

    /// Does what was asked and gives the exit code.
    func run() throws(MigrationError) -> Int32 {
        switch subcommand {
        case .up: try up()
        case .status: try status()
        case .history: try history()
        case .validate: try validate()
        case .new: try new()
        case .baseline: try baseline()
        case .repair: try repair()
        case .resolve: try resolve()
        case .dump: try dump()
        }
    }

    // MARK: - Output

    var isJSON: Bool { arguments.flag("json") }
    var isVerbose: Bool { arguments.flag("verbose") }

    /// Prints lines for a person, or one object for a program.
    func print(_ lines: [String], _ json: JSONValue) {
        command.output(isJSON ? json.text + "\n" : lines.map { $0 + "\n" }.joined())
    }

    // MARK: - Arguments

    /// How to call another command on the same set, for hints.
    private var commandLine: Migrator.CommandLine {
        let options = ["dir", "set", "schema"].flatMap { name in
            arguments.string(name).map { ["--\(name)", $0] } ?? []
        }
        return Migrator.CommandLine(program: command.program, options: options)
    }

    /// The set that is meant: the program's own, or a folder's.
    func set() throws(MigrationError) -> MigrationSet {
        let name = arguments.string("set")
        guard let directory = arguments.string("dir") else {
            if let name, name != command.setName {
                throw usage("--set \(name) needs --dir, the folder with its files")
            }
            return try MigrationSet(name: command.setName, embedded: command.embedded)
        }
        // Only the history needs a name.
        guard let name = name ?? (subcommand.usesDatabase ? nil : "files") else {
            throw usage("--dir needs --set, a name for the folder's files in the history")
        }
        let set = try MigrationSet(name: name, directory: directory)
        if isVerbose {
            for entry in set.ignored { command.errorOutput("ignored: \(entry)\n") }
        }
        return set
    }

    func usage(_ message: String) -> MigrationError {
        MigrationError(.usage, message, hint: spec.usage)
    }

    func version(_ text: String) throws(MigrationError) -> Version {
        // A whole file name stands for its version.
        guard let version = Version(text) ?? Version(text.prefix { $0 != "_" }) else {
            throw usage("\"\(text)\" is no version, which is the number in front of a file's name")
        }
        return version
    }

    /// The version that is the command's argument.
    func version() throws(MigrationError) -> Version {
        try version(arguments.positional(0) ?? "")
    }

    private func time(_ option: String) throws(MigrationError) -> Duration? {
        guard let text = arguments.string(option) else { return nil }
        let digits = text.prefix { $0.isASCII && $0.isNumber }
        let units: [String: Int64] = ["ms": 1, "": 1000, "s": 1000, "min": 60_000, "h": 3_600_000]
        // PostgreSQL holds its time limits in 32 bits of milliseconds.
        guard let count = Int64(digits), let unit = units[String(text.dropFirst(digits.count))],
            count <= Int64(Int32.max) / unit
        else { throw usage("--\(option) takes a time such as 500ms, 30s or 5min, not \"\(text)\"") }
        return .milliseconds(count * unit)
    }

    func conninfo() throws(MigrationError) -> String {
        do {
            return try command.database(arguments.string("database"))
        } catch let error as MigrationError {
            throw error
        } catch {
            throw MigrationError(.usage, "\(error)")
        }
    }

    private func options() throws(MigrationError) -> Migrator.Options {
        var options = Migrator.Options()
        options.applicationName = command.applicationName
        options.applicationVersion = command.applicationVersion
        options.command = commandLine
        options.historySchema = arguments.string("schema")
        if let time = try time("lock-wait") { options.lockWait = time }
        if let time = try time("lock-timeout") { options.lockTimeout = time }
        if let time = try time("statement-timeout") { options.statementTimeout = time }
        if let list = arguments.string("allow-out-of-order") {
            for text in list.split(separator: ",") { options.allowedOutOfOrder.insert(try version(String(text))) }
        }
        return options
    }

    /// Runs something with a migrator whose events are shown and which signals stop.
    func withMigrator<Value>(
        onApplied: @escaping (String) -> Void = { _ in }, _ body: (Migrator) throws(MigrationError) -> Value
    ) throws(MigrationError) -> Value {
        let set = try set()
        let options = try options()
        let conninfo = try conninfo()
        let progress = Progress(
            write: command.errorOutput, onApplied: onApplied, isTerminal: command.isTerminal && !isJSON,
            isVerbose: isVerbose)
        let signals = SignalWatch(options.interruption)
        defer {
            progress.finish()
            signals.stop()
        }
        let migrator = Migrator(set: set, database: conninfo, options: options) { progress.show($0) }
        return try body(migrator)
    }
}
