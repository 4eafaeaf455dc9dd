extension Migrator {
    /// How a migrator behaves; the defaults are those of the command line.
    public struct Options: Sendable {
        /// How long to wait for another run to finish; zero fails at once.
        public var lockWait: Duration = .seconds(60)
        /// PostgreSQL's `lock_timeout` while a file runs in a transaction, so that waiting for a table does not stop everybody else
        /// who waits behind it; zero for none.
        public var lockTimeout: Duration = .seconds(5)
        /// The same for files without a transaction, where a failure leaves half of the work: none.
        public var lockTimeoutOutsideTransaction: Duration = .zero
        /// PostgreSQL's `statement_timeout` for each file; zero for none.
        public var statementTimeout: Duration = .zero
        /// How often a file is tried when it could not get its locks.
        public var lockAttempts = 3
        /// The wait before a file is tried again, doubled each time, with jitter.
        public var retryDelay: Duration = .seconds(1)
        /// Versions that may run although later ones are applied.
        public var allowedOutOfOrder: Set<Version> = []
        /// The schema of the table `schema_migrations`; nil for the first one in the connection's search path.
        public var historySchema: String?
        /// The program's name, as `pg_stat_activity` shows it with `-migrate` behind.
        public var applicationName = "migrator"
        /// The program's version, remembered with every file that it applies.
        public var applicationVersion: String?
        /// How this is called by a person, for the commands in the hints.
        public var command: CommandLine = "migrate"
        /// Stops a run from outside.
        public var interruption = Interruption()

        /// The defaults.
        public init() {}
    }

    /// How a person calls this migrator's commands.
    public struct CommandLine: Equatable, Sendable, ExpressibleByStringLiteral {
        /// What stands before the command: `ieumd migrate`.
        public var program: String
        /// What every command needs behind it: `--dir views --set views`.
        public var options: [String]

        /// A way to call.
        public init(program: String, options: [String] = []) {
            self.program = program
            self.options = options
        }

        /// A program alone.
        public init(stringLiteral program: String) {
            self.init(program: program)
        }

        /// A command to type.
        public func callAsFunction(_ words: String) -> String {
            ([program, words] + options.map(Self.quoted)).joined(separator: " ")
        }

        private static func quoted(_ word: String) -> String {
            let isPlain = word.unicodeScalars.allSatisfy {
                $0.properties.isAlphabetic || ("0"..."9").contains($0) || "-_./:=,".unicodeScalars.contains($0)
            }
            if isPlain, !word.isEmpty { return word }
            return "'" + word.split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
        }
    }
}
