import Arguments
import IeumClient
import Wire

private let keys = """
    kind ("game"), collection, id, revision, saved, stamp, device, deviceName, schema, deleted, state
    """

extension ProgramCommand {
    /// `ieum pull`
    static let pull = ProgramCommand(
        spec: CommandSpec(
            "ieum pull", "list the games that changed since the last pull",
            options: [
                OptionSpec("since", "CURSOR", help: "start here instead; 0 lists all games"),
                OptionSpec("output", "FOLDER", help: "write the states there, as COLLECTION/ID.json"), .timeout, .json,
            ],
            examples: ["ieum pull", "ieum pull --since 0 --output games"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: [
            """
            How far it came is remembered in the home after the output was written, page by page.
            With --output or --json the games count as seen: a push after it carries them on. The plain list gives no
            states, so it does not. --output replaces the file of a changed game, and removes that of a deleted one.
            --json prints a line for each game: \(keys);
            and at last: kind ("end"), cursor, games.
            """
        ]
    ) { call in
        let since = try call.revision("since")
        let folder = try call.arguments.string("output").map { try StateFolder(path: $0) }
        let device = try call.signIn()
        let start = try since ?? device.home.seen().cursor
        let (cursor, games) = try device.pull(
            since: since, givesStates: call.wantsJSON || folder != nil,
            startingOver: { call.output.talk("ieum: the server was restored; pulling everything anew") }
        ) { page in
            if let folder { try page.forEach(folder.take) }
            try call.print(page, device.identity)
        }
        if call.wantsJSON {
            try call.printJSON([
                ("kind", .string("end")), ("cursor", .integer(cursor)), ("games", .integer(Int64(games))),
            ])
        } else if games == 0 {
            call.output.talk("Nothing new since revision \(start).")
        } else {
            call.output.talk("\(games) \(games == 1 ? "game" : "games"), up to revision \(cursor).")
        }
        return .done
    }

    /// `ieum watch`
    static let watch = ProgramCommand(
        spec: CommandSpec(
            "ieum watch", "print the games that change, as they change",
            options: [
                OptionSpec("since", "CURSOR", help: "start here instead of where the last pull ended"),
                OptionSpec("once", help: "end after the first change"),
                OptionSpec("timeout", "SECONDS", help: "end after this time (left out: never)"), .json,
            ],
            examples: ["ieum watch", "ieum watch --once --timeout 60 && ieum pull"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)
                + [(130, "interrupted")]),
        notes: [
            """
            It shows at once what a pull would bring, then goes on. It leaves the place of the next pull where it is, and
            nothing counts as seen. When the connection breaks, it comes back by itself. Ctrl-C ends it (in a shell: 130).
            --timeout ends it with 0; with --once, when nothing came, with 4.
            --json prints a line for each game: \(keys).
            """
        ]
    ) { call in
        let timeout = try call.arguments.seconds("timeout", in: 0...31_536_000)
        let home = try call.home()
        let identity = try home.identity()
        let watch = ChangeWatch(
            home: home, since: try call.revision("since"), isOnce: call.arguments.flag("once"),
            deadline: timeout.map { .now + $0 })
        let end = try watch.run(tell: { call.tell($0, identity) }) { try call.print($0, identity) }
        guard end == .timedOut, watch.isOnce else { return .done }
        throw Failure(
            .unreachable, code: "timed-out", "nothing changed within \(timeout?.readableText ?? "that time")",
            hint: "Watch longer: --timeout SECONDS")
    }
}

extension Call {
    /// Prints changed games, each line at once.
    fileprivate func print(_ games: [GameVersion], _ identity: Identity) throws {
        guard !wantsJSON else {
            for game in games { try printJSON([("kind", .string("game"))] + json(game, identity)) }
            return
        }
        for game in games {
            let words = [
                game.game.collection, game.game.id, "revision \(game.header.revision)",
                "\(game.header.saved.shortText) UTC", "by \(name(of: game.header.device, here: identity))",
                game.state?.count.sizeText ?? "deleted",
            ]
            try output.line(words.map(\.terminalSafe).joined(separator: "  "))
        }
    }

    fileprivate func tell(_ event: ChangeWatch.Event, _ identity: Identity) {
        switch event {
        case .watching(let since): output.talk("Watching \(identity.server) since revision \(since).")
        case .startedOver: output.talk("ieum: the server was restored; showing everything anew")
        case .interrupted(let error, let wait):
            output.talk("ieum: \(error.message.terminalSafe); trying again in \(wait.readableText)")
        }
    }
}
