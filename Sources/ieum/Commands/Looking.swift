import Arguments
import IeumClient
import TerminalText
import Wire

extension ProgramCommand {
    /// `ieum status`
    static let status = ProgramCommand(
        spec: CommandSpec(
            "ieum status", "show who this device is, and how it stands with its server", options: [.timeout, .json],
            examples: ["ieum status"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: [
            """
            --json prints home, server, player, device, deviceName, reachable, signedIn (null when unknown), serverVersion,
            epoch, cursor, lastRevision, behind (changes not pulled yet), clockOffsetMs (the server's clock minus this
            one's), roundTripMs; and of the home's copy of the games copyRevision (up to where it has the server's changes),
            copyGames, unsent (games with a save that the server does not have), refused (games with a save that it does not
            take), conflicts (that no program was told of yet); null where it is not known, or there is none.
            """
        ]
    ) { call in
        let home = try call.home()
        let identity = try home.identity()
        let seen = try home.seen()
        var answer = StatusAnswer()
        var failure: Failure?
        do {
            try answer.ask(identity, call.patience())
        } catch {
            failure = Failure(error)
        }
        var copy: CopyState?
        var isToldByAnswer = true
        do {
            let store = try home.openStoreIfThere(of: identity, busyMilliseconds: 2_000)
            store.map(call.tellDamage)
            copy = try store?.copyState()
        } catch {
            // What the server says goes before.
            isToldByAnswer = failure != nil
            failure = failure ?? Failure(error)
        }
        let isNewEpoch = answer.epoch.map { seen.epoch != nil && seen.epoch != $0 } ?? false
        let cursor = isNewEpoch ? 0 : seen.cursor
        if call.wantsJSON {
            try call.printJSON(answer.json(identity, home: home, cursor: cursor, epoch: seen.epoch, copy: copy))
        } else {
            for line in answer.lines(identity, home: home, cursor: cursor, isNewEpoch: isNewEpoch, copy: copy) {
                try call.output.line(line)
            }
        }
        if let failure {
            // The answer itself says it, too; stderr says what to do.
            if !call.wantsJSON {
                for line in failure.lines { call.output.talk(line) }
            } else if !isToldByAnswer {
                call.output.talk(failure.json)
            }
            return failure.exitCode
        }
        return .done
    }

    /// `ieum ping`
    static let ping = ProgramCommand(
        spec: CommandSpec(
            "ieum ping", "see whether the server answers, and how fast",
            options: [
                OptionSpec(
                    "server", "HOST:PORT", environment: "IEUM_SERVER", help: "which (left out: this device's own)")
            ] + OptionSpec.security + [.timeout, .json],
            examples: ["ieum ping", "ieum ping --server games.example.org:4386"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: ["Needs no identity with --server. --json prints server, serverVersion, milliseconds."]
    ) { call in
        let server = try call.arguments.string("server") == nil ? call.home().identity().server : call.server()
        let connection = try ServerConnection(to: server, patience: call.patience())
        let time = try connection.ping()
        if call.wantsJSON {
            try call.printJSON([
                ("server", .string(server.description)), ("serverVersion", .string(connection.greeting.server)),
                ("milliseconds", .decimal(time.milliseconds)),
            ])
        } else {
            try call.output.line(
                "\(server) answered in \(time.readableText) (ieumd \(connection.greeting.server.terminalSafe))")
        }
        return .done
    }

    /// `ieum version`
    static let version = ProgramCommand(
        spec: CommandSpec(
            "ieum version", "print this program's version", options: [.json], examples: ["ieum version"],
            exitCodes: [ExitCode.done.entry, ExitCode.usage.entry]),
        notes: ["--json prints version, protocol."]
    ) { call in
        if call.wantsJSON {
            try call.printJSON([
                ("version", .string(ieumVersion)), ("protocol", .integer(Int64(Greeting.currentVersion))),
            ])
        } else {
            try call.output.line("ieum \(ieumVersion) (protocol \(Greeting.currentVersion))")
        }
        return .done
    }
}
