import Arguments
import Foundation
import Postgres

/// One call of the command line, its arguments read and checked.
struct MigrateCall {
    let command: MigrateCommand
    let subcommand: Subcommand
    let arguments: ParsedArguments
    private let spec: CommandSpec
    private let files: MigrationSet?
    private(set) var options = Migrator.Options()
    private(set) var database = ""
    /// The version that is the command's argument, or that of `--to`.
    private(set) var version: Version?

    /// Reads what the arguments mean, and the files. Everything that is wrong with them is found before a database is asked for.
    init(
        _ command: MigrateCommand, _ subcommand: Subcommand, _ spec: CommandSpec, _ arguments: ParsedArguments
    ) throws(MigrationError) {
        self.command = command
        self.subcommand = subcommand
        self.spec = spec
        self.arguments = arguments
        files = subcommand.readsFiles ? try Self.files(command, subcommand, spec, arguments) : nil
        if let text = subcommand == .new ? nil : arguments.positional(0) ?? arguments.string("to") {
            version = try readVersion(text)
        }
        try readOptions()
        switch subcommand {
        case .up where arguments.flag("verify") && !arguments.flag("dry-run"):
            throw usage("--verify goes with --dry-run")
        case .resolve where arguments.flag("applied") == arguments.flag("not-applied"):
            throw usage("say either --applied or --not-applied")
        default:
            break
        }
    }

    /// Does what was asked and gives the exit code.
    func run(database: String) throws(MigrationError) -> Int32 {
        var call = self
        call.database = database
        switch subcommand {
        case .up: return try arguments.flag("dry-run") ? call.dryRun() : call.up()
        case .status: return try call.status()
        case .history: return try call.history()
        case .validate: return try call.validate()
        case .new: return try call.new()
        case .baseline: return try call.baseline()
        case .repair: return try call.repair()
        case .resolve: return try call.resolve()
        case .dump: return try call.dump()
        }
    }

    // MARK: - What the commands use

    var isJSON: Bool { arguments.flag("json") }

    /// Prints lines for a person, or one object for a program.
    func print(_ lines: [String], _ json: JSONValue) {
        command.output(isJSON ? json.text + "\n" : lines.map { $0.shown + "\n" }.joined())
    }

    /// The set that is meant: the program's own, or a folder's.
    func set() throws(MigrationError) -> MigrationSet {
        guard let files else { throw usage("this command reads no files") }
        return files
    }

    /// The version that the command needs.
    func requiredVersion() throws(MigrationError) -> Version {
        guard let version else { throw usage("<version> is missing") }
        return version
    }

    /// Runs something with a migrator whose events are shown and which signals stop.
    func withMigrator<Value>(
        onApplied: @escaping (String) -> Void = { _ in }, _ body: (Migrator) throws(MigrationError) -> Value
    ) throws(MigrationError) -> Value {
        let set = try set()
        let progress = Progress(
            write: command.errorOutput, onApplied: onApplied, isTerminal: command.isTerminal && !isJSON,
            isVerbose: arguments.flag("verbose"))
        let signals = SignalWatch(options.interruption)
        defer {
            progress.finish()
            signals.stop()
        }
        let migrator = Migrator(set: set, database: database, options: options) { progress.show($0) }
        return try body(migrator)
    }
}

// MARK: - Reading arguments

extension MigrateCall {
    private func usage(_ message: String) -> MigrationError {
        MigrationError(.usage, message, hint: spec.usage)
    }

    private static func files(
        _ command: MigrateCommand, _ subcommand: Subcommand, _ spec: CommandSpec, _ arguments: ParsedArguments
    ) throws(MigrationError) -> MigrationSet {
        let name = arguments.string("set")
        guard let directory = arguments.string("dir") else {
            if let name, name != command.setName {
                throw MigrationError(.usage, "--set \(name) needs --dir, the folder with its files", hint: spec.usage)
            }
            return try MigrationSet(name: command.setName, embedded: command.embedded)
        }
        // Only the history needs a name.
        guard let name = name ?? (subcommand.usesDatabase ? nil : "files") else {
            throw MigrationError(
                .usage, "--dir needs --set, a name for the folder's files in the history", hint: spec.usage)
        }
        // The program's own history must not be written by other files.
        guard name != command.setName || !subcommand.usesDatabase else {
            throw MigrationError(
                .usage, "--set \(name) is the name of the program's own files",
                hint: "Give the folder's set another name.")
        }
        let set = try MigrationSet(name: name, directory: directory)
        if arguments.flag("verbose") {
            for entry in set.ignored { command.errorOutput("ignored: \(entry.shownOnOneLine)\n") }
        }
        return set
    }

    private mutating func readOptions() throws(MigrationError) {
        options.applicationName = command.applicationName
        options.applicationVersion = command.applicationVersion
        // The hints' commands are to be typed as they stand.
        let repeated = (["dir", "set", "schema"] + command.databaseOptions.map(\.name)).flatMap { name in
            arguments.given(name).map { ["--\(name)", Self.shown($0)] } ?? []
        }
        options.command = Migrator.CommandLine(program: command.program, options: repeated)
        options.historySchema = arguments.string("schema")
        if let time = try time("lock-wait") { options.lockWait = time }
        if let time = try time("lock-timeout") { options.lockTimeout = time }
        if let time = try time("statement-timeout") { options.statementTimeout = time }
        for text in (arguments.string("allow-out-of-order") ?? "").split(separator: ",") {
            options.allowedOutOfOrder.insert(try readVersion(String(text)))
        }
    }

    /// An option's value as a message may show it: a connection string with a password is left out.
    private static func shown(_ value: String) -> String {
        guard let settings = try? ConnectionSettings(value) else { return value }
        return settings["password"] == nil && settings["sslpassword"] == nil ? value : "…"
    }

    private func readVersion(_ text: String) throws(MigrationError) -> Version {
        // A whole file name stands for its version.
        guard let version = Version(text) ?? Version(text.prefix { $0 != "_" }) else {
            throw usage("\"\(text)\" is no version, which is the number in front of a file's name")
        }
        return version
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
}
