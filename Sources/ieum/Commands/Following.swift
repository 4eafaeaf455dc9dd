import Arguments
import IeumClient
import TerminalText
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
            The home keeps a copy of the player's games (games.sqlite): a pull brings it up to date with the server, sends what
            was saved here by other programs of the home (ieum play), and then lists what is new in it.
            How far the list came is remembered after the output was written, page by page.
            With --output or --json the games count as seen: a push after it carries them on. The plain list gives no
            states, so it does not. --output replaces the file of a changed game, and removes that of a deleted one.
            --json prints a line for each game: \(keys);
            and at last: kind ("end"), cursor, games.
            """
        ]
    ) { call in
        let since = try call.revision("since")
        let folder = try call.arguments.string("output").map { try StateFolder(path: $0) }
        let sync = try call.sync()
        try sync.bringUpToDate()
        try call.tellSent(sync)
        var start = try since ?? sync.home.seen().cursor
        let (cursor, games) = try sync.handOut(
            since: since, givesStates: call.wantsJSON || folder != nil,
            restarting: { restart in
                start = since ?? 0
                call.tell(restart)
            }
        ) { page in
            if let folder { try page.forEach(folder.take) }
            try call.print(page, sync.identity)
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
            It shows at once what a pull would bring, then goes on; meanwhile the home's copy of the games is kept up to date,
            and what other programs of the home save is sent. It leaves the place of the next pull where it is, and nothing
            counts as seen. When the connection breaks, it comes back by itself. Ctrl-C ends it (in a shell: 130).
            --timeout ends it with 0; with --once, when nothing came, with 4.
            --json prints a line for each game: \(keys).
            """
        ]
    ) { call in
        let timeout = try call.arguments.seconds("timeout", in: 0...31_536_000)
        let isOnce = call.arguments.flag("once")
        let since = try call.revision("since")
        let sync = try call.sync(ServerConnection.Patience())
        let end = try sync.watch(
            since: since, isOnce: isOnce, deadline: timeout.map { .now + $0 }, tell: { call.tell($0, sync.identity) }
        ) { try call.print($0, sync.identity) }
        guard end == .timedOut, isOnce else { return .done }
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

    fileprivate func tell(_ event: HomeSync.WatchEvent, _ identity: Identity) {
        switch event {
        case .watching(let since): output.talk("Watching \(identity.server) since revision \(since).")
        case .startedOver: output.talk("ieum: the server was restored; showing everything anew")
        case .interrupted(let error, let wait):
            output.talk("ieum: \(error.message.terminalSafe); trying again in \(wait.readableText)")
        case .storageFailed(let error, let wait):
            output.talk("ieum: \(error.message.terminalSafe); trying again in \(wait.readableText)")
        }
    }

    fileprivate func tell(_ restart: HomeSync.Restart) {
        switch restart {
        case .newEpoch: output.talk("ieum: the server was restored; what it lost of the copy here was sent again")
        case .cursorAhead: output.talk("ieum: the server was restored; pulling everything anew")
        }
    }

    /// Says what became of saves that waited in the home.
    fileprivate func tellSent(_ sync: HomeSync) throws {
        let sent = try sync.sentGames()
        if sent > 0 { output.talk("Sent \(sent) \(sent == 1 ? "save" : "saves") made here.") }
        for event in try sync.events() {
            switch event.kind {
            case .conflict(let conflict):
                let game = conflict.mine.game
                let mine = conflict.mine.header.revision
                let words =
                    conflict.outcome == .won
                    ? "the save made here (revision \(mine)) won over revision \(conflict.otherRevision)"
                    : "the save made here lost to revision \(conflict.otherRevision); it is kept as revision \(mine)"
                output.talk("ieum: \(game.description.terminalSafe): \(words)")
                output.talk("  See both: ieum history \(game.commandWords)".terminalSafe)
            case .refused(let push, let error):
                output.talk(
                    "ieum: \(push.game.description.terminalSafe): the server does not take the save made here: "
                        + "\(error.message.terminalSafe) (\(error.code))")
            }
        }
    }
}
