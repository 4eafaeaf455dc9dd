import Arguments
import IeumClient
import TerminalText
import Wire

extension ProgramCommand {
    /// `ieum get`
    static let get = ProgramCommand(
        spec: CommandSpec(
            "ieum get", "print one game's state, byte for byte", positionals: ["<collection>", "<id>"],
            options: [OptionSpec("revision", "REVISION", help: "this version instead of the head"), .timeout, .json],
            examples: ["ieum get handle.game today > game.json"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn, .noSuchGame].map(\.entry)),
        notes: [
            """
            Nothing is added to the state, no line break either; on a terminal alone, characters that would steer it are
            shown as JSON escapes. The head counts as seen: a push after it carries it on.
            --json prints collection, id, revision, saved, stamp, device, deviceName, schema, deleted, state.
            """
        ]
    ) { call in
        let key = try call.game()
        let revision = try call.versionNumber("revision")
        let device = try call.signIn()
        let version = try device.get(key, revision: revision) { version in
            if call.wantsJSON {
                try call.printJSON(call.json(version, device.identity))
            } else if let state = version.state {
                try call.output.data(call.output.isTerminal ? JSONText.terminalSafe(state) : state)
            }
        }
        guard version.state == nil else { return .done }
        let name = call.name(of: version.header.device, here: device.identity)
        if call.wantsJSON { return .noSuchGame }
        throw Failure(
            .noSuchGame, code: "deleted",
            "the game was deleted on \(version.header.saved.shortText) UTC by \(name) (revision \(version.header.revision))",
            hint: "Its versions are kept: ieum history \(key.commandWords)")
    }

    /// `ieum history`
    static let history = ProgramCommand(
        spec: CommandSpec(
            "ieum history", "list one game's versions, newest first, the losers of conflicts too",
            positionals: ["<collection>", "<id>"],
            options: [
                OptionSpec("limit", "NUMBER", default: "20", help: "how many at most"),
                OptionSpec("before", "REVISION", help: "only versions before this one"), .timeout, .json,
            ],
            examples: ["ieum history handle.game today"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn, .noSuchGame].map(\.entry)),
        notes: [
            """
            The head is marked with *. BASE is the revision that the device had seen, RIVAL the one that it met.
            Print one version: ieum get COLLECTION ID --revision N
            --json prints collection, id, versions (revision, outcome, saved, stamp, received, device, deviceName, base,
            rival, schema, size, head, deleted), before (where to go on with --before, or null).
            """
        ]
    ) { call in
        let key = try call.game()
        let limit = try call.arguments.integer("limit", in: 1...1_000_000) ?? 20
        var before = try call.versionNumber("before")
        let device = try call.signIn()
        let names = try DeviceNames(of: device, isOptional: true)
        var versions: [VersionEntry] = []
        repeat {
            let page = try device.connection.history(key, before: before, limit: min(limit - versions.count, 1_000))
            versions += page.versions
            before = page.before
        } while before != nil && versions.count < limit
        if call.wantsJSON {
            try call.printJSON([
                ("collection", .string(key.collection)), ("id", .string(key.id)),
                ("versions", .array(versions.map { .object(call.json($0.detail, names)) })),
                ("before", .number(before)),
            ])
        } else {
            try call.output.table(call.table(versions, names))
            if let before { call.output.talk("Older ones: add --before \(before)") }
        }
        return .done
    }
}

extension Call {
    /// What a version is in JSON.
    func json(_ version: GameVersion, _ identity: Identity) -> [(key: String, value: JSONText)] {
        [
            ("collection", .string(version.game.collection)), ("id", .string(version.game.id)),
            ("revision", .integer(version.header.revision)), ("saved", .time(version.header.saved)),
            ("stamp", .time(version.header.stamp)),
        ] + json(of: version.header.device, here: identity) + [
            ("schema", .integer(Int64(version.header.schema))), ("deleted", .boolean(version.state == nil)),
            ("state", .state(version.state)),
        ]
    }

    /// What a version is in JSON, without its game and state.
    func json(_ version: VersionDetail, _ names: DeviceNames) -> [(key: String, value: JSONText)] {
        [
            ("revision", .integer(version.revision)), ("outcome", .string(version.outcome.rawValue)),
            ("saved", .time(version.saved)), ("stamp", .time(version.stamp)), ("received", .time(version.received)),
        ] + names.json(version.device) + [
            ("base", .number(version.base)), ("rival", .number(version.rival)),
            ("schema", .integer(Int64(version.schema))), ("size", .integer(Int64(version.size))),
            ("head", .boolean(version.isHead)), ("deleted", .boolean(version.isTombstone)),
        ]
    }

    fileprivate func table(_ versions: [VersionEntry], _ names: DeviceNames) -> Table {
        var table = Table([
            .left(" "), .right("REVISION"), .left("SAVED (UTC)"), .left("DEVICE"), .left("OUTCOME"), .right("BASE"),
            .right("RIVAL"), .right("SIZE"),
        ])
        for version in versions.map(\.detail) {
            let style: Style? = version.isHead ? .green : version.outcome == .lost ? .red : nil
            table.add([
                StyledText(version.isHead ? "*" : " ", .green), StyledText(String(version.revision), style),
                StyledText(version.saved.shortText), StyledText(names[version.device]),
                StyledText(version.outcome.rawValue, style), StyledText(version.base.map { String($0) } ?? "-"),
                StyledText(version.rival.map { String($0) } ?? "-"),
                StyledText(version.isTombstone ? "deleted" : version.size.sizeText),
            ])
        }
        return table
    }
}
