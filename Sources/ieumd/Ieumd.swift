import Arguments
import Foundation
import SyncServer

/// The daemon's program: finds the command and runs it.
@main
struct Ieumd {
    static func main() {
        StandardStreams.holdClosed()
        // A launcher may have left signals blocked; programs that we start would inherit that, too.
        var none = sigset_t()
        sigemptyset(&none)
        sigprocmask(SIG_SETMASK, &none, nil)
        let arguments = Array(CommandLine.arguments.dropFirst())
        let code = run(arguments, environment: ProcessInfo.processInfo.environment)
        // A daemon that served is not judged by its one line; of any other command the data is what was asked for.
        guard code == 0, arguments.first != "serve", let number = Console.outputFailure else { exit(code) }
        if number == EPIPE { exit(141) }
        Console.error("stdout cannot be written: \(String(cString: strerror(number)))", hint: nil)
        exit(1)
    }

    private static let overview = """
        ieumd: the sync server of Ieum

        Usage: ieumd <command> [options]
        Example: ieumd serve                      a server on its own private PostgreSQL
                 ieumd serve --database 'host=db1 dbname=ieum user=ieum'

        Commands:
          serve           run the server
          migrate         bring a database's schema up to date, or look at it: ieumd migrate help
          psql            open psql on the database
          grant-reader    let a database role read the views
          grant-daemon    let a database role do what a daemon does, and no more
          cert            make a certificate for trying TLS out
          invite          make codes that let new players in; list and cancel them
          players         list players, and what there is of each
          devices         list a player's devices
          pair            make a code for a player who has lost every device
          revoke          end a player's device
          export          write a player's whole history, as ieum export does
          forget          remove a player with everything
          prune           remove old versions from the history
          restore-epoch   begin a new epoch, after a backup was restored
          version         print the version
          help COMMAND    print a command's help

        """
    private static let commands = [
        "serve", "migrate", "psql", "grant-reader", "grant-daemon", "cert", "invite", "players", "devices", "pair",
        "revoke", "export", "forget", "prune", "restore-epoch", "version", "help",
    ]

    private static func run(_ arguments: [String], environment: [String: String]) -> Int32 {
        guard let command = arguments.first else {
            Console.output(overview)
            return 2
        }
        let rest = Array(arguments.dropFirst())
        if rest.contains("--help"), command != "migrate" { return help(command) }
        do throws(UsageError) {
            switch command {
            case "serve": return try ServeCommand(rest, environment: environment).run()
            case "migrate": return Migrations.run(rest, environment: environment)
            case "psql": return try PsqlCommand(rest, environment: environment).run()
            case "grant-reader": return try GrantCommand(GrantCommand.reader, rest, environment: environment).run()
            case "grant-daemon": return try GrantCommand(GrantCommand.daemon, rest, environment: environment).run()
            case "cert": return try CertCommand(rest, environment: environment).run()
            case "invite": return try InviteCommand(rest, environment: environment).run()
            case "players": return try PlayersCommand(rest, environment: environment).run()
            case "devices": return try DevicesCommand(rest, environment: environment).run()
            case "pair": return try PairCommand(rest, environment: environment).run()
            case "revoke": return try RevokeCommand(rest, environment: environment).run()
            case "export": return try ExportCommand(rest, environment: environment).run()
            case "forget": return try ForgetCommand(rest, environment: environment).run()
            case "prune": return try PruneCommand(rest, environment: environment).run()
            case "restore-epoch": return try RestoreEpochCommand(rest, environment: environment).run()
            case "version", "--version":
                Console.output("ieumd \(SyncServerVersion.current)\n")
                return 0
            case "help", "--help", "-h": return help(rest.first)
            default:
                let near = nearest(to: command, in: commands).map { " Did you mean \($0)?" } ?? ""
                throw UsageError("there is no command \(command).\(near)", usage: "ieumd <command> [options]")
            }
        } catch {
            Console.error(error.message, hint: error.usage.map { "Usage: \($0)" })
            return 2
        }
    }

    private static func help(_ command: String?) -> Int32 {
        switch command {
        case "serve": Console.output(ServeOptions.spec.help)
        case "psql": Console.output(PsqlCommand.spec.help)
        case "grant-reader": Console.output(GrantCommand.reader.spec.help)
        case "grant-daemon": Console.output(GrantCommand.daemon.spec.help)
        case "cert": Console.output(CertCommand.spec.help)
        case "invite": Console.output(InviteCommand.spec.help)
        case "players": Console.output(PlayersCommand.spec.help)
        case "devices": Console.output(DevicesCommand.spec.help)
        case "pair": Console.output(PairCommand.spec.help)
        case "revoke": Console.output(RevokeCommand.spec.help)
        case "export": Console.output(ExportCommand.spec.help)
        case "forget": Console.output(ForgetCommand.spec.help)
        case "prune": Console.output(PruneCommand.spec.help)
        case "restore-epoch": Console.output(RestoreEpochCommand.spec.help)
        case "migrate": return Migrations.run(["help"], environment: [:])
        default: Console.output(overview)
        }
        return 0
    }
}
