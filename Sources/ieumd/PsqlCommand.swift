import Arguments
import Foundation
import Postgres
import SyncServer

/// `ieumd psql`: opens psql on the daemon's database.
struct PsqlCommand {
    static let spec = CommandSpec(
        "ieumd psql", "open psql on the database; other options, and all behind --, go to psql",
        positionals: ["[psql's options]"], options: DatabaseChoice.options,
        examples: [
            "ieumd psql", "ieumd psql -c 'TABLE conflicts'", "ieumd psql -f SQL/queries/player.sql -v player=ID",
        ],
        exitCodes: [(0, "psql ended well"), (2, "usage"), (4, "the database cannot be reached")])

    private let choice: DatabaseChoice
    private let arguments: PsqlArguments

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        var spec = Self.spec
        spec.positionals = []
        self.arguments = try PsqlArguments(arguments, usage: Self.spec.usage)
        choice = try DatabaseChoice(
            ParsedArguments(self.arguments.own, of: spec, environment: environment), environment: environment)
    }

    /// Runs psql and gives its exit code.
    func run() -> Int32 {
        // psql holds the password, and games: neither is left in a core file.
        var none = rlimit(rlim_cur: 0, rlim_max: 0)
        setrlimit(__rlimit_resource_t(UInt32(RLIMIT_CORE.rawValue)), &none)
        do throws(PrivateDatabaseError) {
            return try choice.use { conninfo in
                guard let (visible, passFile) = hidePassword(conninfo) else { return 2 }
                defer { withExtendedLifetime(passFile) {} }
                var words = ["psql", "-d", visible]
                if arguments.isInteractive && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 {
                    Console.output(PsqlWelcome.text(conninfo))
                    words += PsqlWelcome.settings
                }
                return spawn(words + arguments.psql)
            }
        } catch {
            Console.error(error.message, hint: error.hint)
            return error.exitCode
        }
    }

    /// The connection string without its password, which goes into a file: everybody sees arguments.
    private func hidePassword(_ conninfo: String) -> (conninfo: String, passFile: PassFile?)? {
        do {
            var settings = try ConnectionSettings(conninfo, applicationName: "ieumd psql")
            guard settings["sslpassword"] == nil else {
                throw UsageError(
                    "psql would show sslpassword: give the key without a passphrase, in a file of mode 0600")
            }
            let passFile = try settings["password"].map { (password) throws(UsageError) in
                try PassFile(password: password)
            }
            if let passFile { settings["passfile"] = passFile.path }
            settings["password"] = nil
            unsetenv("IEUM_DATABASE_URL")
            return (settings.conninfo, passFile)
        } catch let error as DatabaseError {
            Console.error("\(error)", hint: error.hint)
        } catch {
            Console.error((error as? UsageError)?.message ?? "\(error)", hint: nil)
        }
        return nil
    }

    /// Runs a program in the foreground of our terminal, in our process group, and waits for it.
    private func spawn(_ words: [String]) -> Int32 {
        // Ctrl-C is psql's: it cancels a query there.
        signal(SIGINT, SIG_IGN)
        let pointers = words.map { strdup($0) } + [nil]
        defer { for pointer in pointers { free(pointer) } }
        var child: pid_t = 0
        var attributes = posix_spawnattr_t()
        posix_spawnattr_init(&attributes)
        defer { posix_spawnattr_destroy(&attributes) }
        var defaults = sigset_t()
        sigemptyset(&defaults)
        sigaddset(&defaults, SIGINT)
        posix_spawnattr_setsigdefault(&attributes, &defaults)
        posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGDEF))
        let code = posix_spawnp(&child, "psql", nil, &attributes, pointers, environ)
        guard code == 0 else {
            Console.error(
                "psql cannot be run: \(String(cString: strerror(code)))",
                hint: "Install it: apt-get install postgresql-client")
            return 1
        }
        var status: Int32 = 0
        while waitpid(child, &status, 0) < 0 && errno == EINTR {}
        return status & 0x7F == 0 ? (status >> 8) & 0xFF : 128 + (status & 0x7F)
    }
}
