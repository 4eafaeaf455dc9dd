import Arguments
import Foundation

/// The command line of the migrator: reads the arguments behind `migrate`, does what they say, and gives the exit code.
///
/// Data goes to `output`, talk to `errorOutput`. A program gives it its own files and its way to find the database, and can
/// leave everything else to it.
public struct MigrateCommand {
    /// How a person calls it: `ieumd migrate`.
    public var program: String
    /// The name of the program's own set.
    public var setName: String
    /// The program's own files.
    public var embedded: [(name: String, contents: String)]
    /// The program's name, shown by `pg_stat_activity`.
    public var applicationName: String
    /// The program's version, remembered with every file.
    public var applicationVersion: String?
    /// The options that say which database is meant.
    public var databaseOptions: [OptionSpec]
    /// Lends the connection string of the database that the options mean to a body, and gives the body's exit code.
    ///
    /// A ``MigrationError`` or `UsageError` that it throws is shown as one of ours; any other counts as a database that cannot
    /// be reached.
    public var withDatabase: (ParsedArguments, (String) -> Int32) throws -> Int32
    /// Takes what goes to standard output, line ends included.
    public var output: (String) -> Void = StandardStream.output
    /// Takes what goes to standard error, line ends included.
    public var errorOutput: @Sendable (String) -> Void = StandardStream.errorOutput
    /// Whether standard error is a terminal, on which progress may be drawn.
    public var isTerminal = isatty(STDERR_FILENO) == 1 && ProcessInfo.processInfo.environment["TERM"] != "dumb"
    /// The environment of the process.
    public var environment = ProcessInfo.processInfo.environment

    /// A command for a program with files of its own.
    public init(
        program: String, setName: String, embedded: [(name: String, contents: String)], applicationName: String,
        applicationVersion: String?,
        databaseOptions: [OptionSpec] = [
            OptionSpec("database", "CONNINFO", help: "the database; a libpq connection string")
        ],
        withDatabase: @escaping (ParsedArguments, (String) -> Int32) throws -> Int32
    ) {
        self.program = program
        self.setName = setName
        self.embedded = embedded
        self.applicationName = applicationName
        self.applicationVersion = applicationVersion
        self.databaseOptions = databaseOptions
        self.withDatabase = withDatabase
    }

    /// Runs a command to its end and gives the exit code. SIGINT and SIGTERM stop it meanwhile.
    public func run(_ arguments: [String]) -> Int32 {
        StandardStreams.holdClosed()
        let code = runCommand(arguments)
        let failure = StandardStream.outputFailure.load(ordering: .relaxed)
        guard code == 0, failure != 0 else { return code }
        return report(MigrationError(.usage, "cannot write the output: \(String(cString: strerror(failure)))"), false)
    }

    private func runCommand(_ arguments: [String]) -> Int32 {
        guard let first = arguments.first else {
            output(help)
            return 2
        }
        let wantsHelp = ["help", "--help", "-h"].contains(first)
        guard let word = wantsHelp ? arguments.dropFirst().first : first else {
            output(help)
            return 0
        }
        let isJSON = arguments.contains("--json")
        guard let command = Subcommand(rawValue: word) else {
            let near = nearest(to: word, in: Subcommand.allCases.map(\.rawValue) + ["help"])
            let suggestion = near.map { "; did you mean \($0)?" } ?? ""
            return usage(
                UsageError("there is no command \(word.prefix(60))\(suggestion)", usage: "\(program) help"), isJSON)
        }
        let spec = command.spec(program: program, databaseOptions: databaseOptions)
        if wantsHelp || arguments.contains("--help") || arguments.contains("-h") {
            output(spec.help)
            return 0
        }
        let rest = arguments.dropFirst().map { $0 == "-v" ? "--verbose" : $0 }
        let parsed: ParsedArguments
        do throws(UsageError) {
            parsed = try ParsedArguments(rest, of: spec, environment: environment)
        } catch {
            return usage(error, isJSON)
        }
        func attempt(_ body: () throws(MigrationError) -> Int32) -> Int32 {
            do throws(MigrationError) {
                return try body()
            } catch {
                return report(error, isJSON)
            }
        }
        return attempt { () throws(MigrationError) in
            let call = try MigrateCall(self, command, spec, parsed)
            guard command.usesDatabase else { return try call.run(database: "") }
            do {
                return try withDatabase(parsed) { database in
                    attempt { () throws(MigrationError) in try call.run(database: database) }
                }
            } catch let error as MigrationError {
                throw error
            } catch let error as UsageError {
                return usage(error, isJSON)
            } catch {
                throw MigrationError(.connection, "\(error)")
            }
        }
    }

    private func usage(_ error: UsageError, _ isJSON: Bool) -> Int32 {
        report(MigrationError(.usage, error.message, hint: error.usage), isJSON)
    }

    private func report(_ error: MigrationError, _ isJSON: Bool) -> Int32 {
        errorOutput(error.description.shown + "\n")
        if isJSON { output(Self.json(of: error).text + "\n") }
        return error.exitCode
    }

    private var help: String {
        let width = Subcommand.allCases.map(\.usage.count).max() ?? 0
        let commands = Subcommand.allCases.map { command in
            "  " + command.usage + String(repeating: " ", count: width - command.usage.count + 2) + command.summary
        }
        return """
            \(program): bring the database to the state that this program needs

            Usage: \(program) <command> [options]
            Example: \(program) up
                     \(program) status --check
                     \(program) up --dir views --set views

            Commands:
            \(commands.joined(separator: "\n"))

            \(program) help <command> tells more. There are no down migrations: ship a forward fix, and take a dump before.
            Exit codes: \(Subcommand.exitCodes.map { "\($0.code) \($0.meaning)" }.joined(separator: ", "))

            """
    }

    static func json(of applied: [Migrator.UpResult.Applied]) -> JSONValue {
        .array(
            applied.map { file in
                .object([
                    "version": .string(file.version.digits), "name": .string(file.name),
                    "mode": .string(file.mode.rawValue), "milliseconds": .number(file.milliseconds),
                ])
            })
    }

    /// A failure as one object.
    static func json(of error: MigrationError) -> JSONValue {
        .object([
            "ok": .bool(false), "exitCode": .number(Int64(error.exitCode)),
            "applied": json(of: error.applied),
            "problems": .array(
                error.problems.map { problem in
                    .object([
                        "message": .string(problem.message), "file": JSONValue(problem.file),
                        "line": problem.location.map { .number(Int64($0.line)) } ?? .null,
                        "column": problem.location.map { .number(Int64($0.column)) } ?? .null,
                        "sqlState": JSONValue(problem.sqlState), "detail": JSONValue(problem.detail),
                        "hint": JSONValue(problem.hint), "context": JSONValue(problem.context),
                    ])
                }),
        ])
    }
}
