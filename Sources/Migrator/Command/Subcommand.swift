import Arguments

/// The words behind `migrate`.
enum Subcommand: String, CaseIterable {
    case up, status, history, validate, new, baseline, repair, resolve, dump

    static let exitCodes: [(code: Int32, meaning: String)] = [
        (0, "done or nothing to do"), (1, "a file is at fault"), (2, "usage"),
        (3, "history and files disagree, nothing was run"), (4, "the database cannot be reached or used"),
        (5, "another run held the lock for too long"), (6, "files are pending (status --check)"),
        (130, "stopped by SIGINT"), (143, "stopped by SIGTERM"),
    ]

    var summary: String {
        switch self {
        case .up: "apply what is pending"
        case .status: "show the state of every migration"
        case .history: "show what was applied, when and by whom"
        case .validate: "check the files without a database"
        case .new: "make the file of a new migration"
        case .baseline: "take all up to a version as applied, on a database older than the history"
        case .repair: "accept a changed file as the one that was applied"
        case .resolve: "declare a version applied or not applied"
        case .dump: "print the schema, as pg_dump sees it"
        }
    }

    var usage: String { ([rawValue] + positionals).joined(separator: " ") }

    private var positionals: [String] {
        switch self {
        case .new: ["<name>"]
        case .baseline, .repair, .resolve: ["<version>"]
        default: []
        }
    }

    private var examples: [String] {
        switch self {
        case .up: ["up", "up --to 0007 --dry-run", "up --dir views --set views"]
        case .status: ["status", "status --check --json"]
        case .new: ["new add_scores --dir SQL/migrations"]
        case .baseline: ["baseline 0012"]
        case .repair: ["repair 0003"]
        case .resolve: ["resolve 0009 --applied"]
        case .validate: ["validate --dir SQL/migrations"]
        case .history, .dump: [rawValue]
        }
    }

    func spec(program: String, databaseOptions: [OptionSpec]) -> CommandSpec {
        CommandSpec(
            "\(program) \(rawValue)", summary, positionals: positionals, options: options + common(databaseOptions),
            examples: examples.map { "\(program) \($0)" }, exitCodes: Self.exitCodes)
    }

    private var options: [OptionSpec] {
        switch self {
        case .up:
            [
                OptionSpec("to", "VERSION", help: "stop after this version"),
                OptionSpec("dry-run", help: "show what would run, change nothing"),
                OptionSpec("verify", help: "with --dry-run: run it all in one transaction and roll back"),
                OptionSpec(
                    "allow-out-of-order", "VERSIONS", help: "run these although later ones are applied, e.g. 7,9"),
                OptionSpec(
                    "lock-timeout", "TIME", default: "5s", help: "how long a file may wait for a table; 0 for ever"),
                OptionSpec("statement-timeout", "TIME", default: "0", help: "how long a file may run; 0 for ever"),
            ]
        case .status:
            [OptionSpec("check", help: "exit 6 when files are pending, 3 when history and files disagree")]
        case .resolve:
            [
                OptionSpec("applied", help: "it is in the database; remember it as it is now"),
                OptionSpec("not-applied", help: "it is not; forget it, so that up runs it"),
            ]
        case .history, .validate, .new, .baseline, .repair, .dump:
            []
        }
    }

    private func common(_ databaseOptions: [OptionSpec]) -> [OptionSpec] {
        var common = [
            OptionSpec("dir", "DIR", help: "use the files of this folder in place of the program's own"),
            OptionSpec("set", "NAME", help: "the name of the folder's set; goes with --dir"),
        ]
        if self == .dump { common = [] }
        if usesDatabase {
            common += databaseOptions
            if self != .dump {
                common.append(
                    OptionSpec("schema", "NAME", help: "where the history is; the first of the search_path otherwise"))
            }
        }
        if takesLock {
            common.append(
                OptionSpec(
                    "lock-wait", "TIME", default: "60s", help: "how long to wait for another run; 0 fails at once"))
        }
        common.append(OptionSpec("json", help: "print one JSON object"))
        common.append(OptionSpec("verbose", help: "also show notices and ignored files; -v"))
        return common
    }

    var usesDatabase: Bool { self != .validate && self != .new }

    var readsFiles: Bool { self != .new && self != .dump }

    private var takesLock: Bool {
        switch self {
        case .up, .baseline, .repair, .resolve: true
        case .status, .history, .validate, .new, .dump: false
        }
    }
}
