import Arguments
import IeumClient
import Wire

private let codes = [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn, .noSuchGame].map(\.entry)

extension ProgramCommand {
    /// `ieum show`
    static let show = ProgramCommand(
        spec: CommandSpec(
            "ieum show", "show one version: where it came from, what became of it, its state",
            positionals: ["<revision>"], options: [.timeout, .json], examples: ["ieum show 4"], exitCodes: codes),
        notes: [
            """
            A revision alone names a version: they are numbered over all games. The state is laid out for people; byte for
            byte it is: ieum get COLLECTION ID --revision N
            --json prints collection, id, revision, outcome, saved, stamp, received, device, deviceName, base, rival, schema,
            size, head, deleted, state.
            """
        ]
    ) { call in
        let revision = try call.revisionArgument(0)
        let device = try call.signIn()
        let version = try device.connection.version(revision)
        let names = try DeviceNames(of: device)
        if call.wantsJSON {
            let game: [(key: String, value: JSONText)] = [
                ("collection", .string(version.game.collection)), ("id", .string(version.game.id)),
            ]
            try call.printJSON(game + call.json(version.detail, names) + [("state", .state(version.state))])
        } else {
            try call.show(version, names)
        }
        return .done
    }

    /// `ieum diff`
    static let diff = ProgramCommand(
        spec: CommandSpec(
            "ieum diff", "show in which keys two versions differ", positionals: ["<old revision>", "<new revision>"],
            options: [.timeout, .json], examples: ["ieum diff 3 4"], exitCodes: codes),
        notes: [
            """
            Objects and arrays are looked into: answerBoard[0][1].mark. The order of keys, blanks and the spelling of numbers
            make no difference. - stands where a version has no such key, (deleted) where it deletes the game.
            --json prints for each difference, on a line of its own, path, keys (the same as an array), kind (changed, added
            or removed), old, new (null where there is none).
            """
        ]
    ) { call in
        let (old, new) = (try call.revisionArgument(0), try call.revisionArgument(1))
        let device = try call.signIn()
        let one = try device.connection.version(old)
        let other = try device.connection.version(new)
        if one.game != other.game {
            call.output.talk(
                "These are two games: revision \(old) is of \(one.game), revision \(new) of \(other.game).")
        }
        let differences = StateDifference.all(
            from: try one.state.map { try RawJSON(checking: $0) }, to: try other.state.map { try RawJSON(checking: $0) }
        )
        if call.wantsJSON {
            for difference in differences { try call.printJSON(difference.json) }
        } else if differences.isEmpty {
            call.output.talk("Revisions \(old) and \(new) say the same.")
        } else {
            try call.output.table(call.table(differences, one, other))
        }
        return .done
    }

    /// `ieum restore`
    static let restore = ProgramCommand(
        spec: CommandSpec(
            "ieum restore", "make an older version of a game, or one that lost, its newest",
            positionals: ["<revision>"],
            options: [.timeout, .json], examples: ["ieum restore 4"],
            exitCodes: [ExitCode.done, .refused, .usage, .lost, .unreachable, .notSignedIn, .noSuchGame].map(\.entry)),
        notes: [
            """
            The state is pushed again, with the head as base: a new version, which all devices get. What was the head stays
            in the history, and the command to go back to it is printed. Restoring a version that deletes the game deletes it.
            --json prints outcome, revision, restored (the revision that was asked for), undo (the revision that undoes it;
            null where nothing was done, since that version is the head), collection, id.
            """
        ]
    ) { call in
        let revision = try call.revisionArgument(0)
        let device = try call.signIn()
        let version = try device.connection.version(revision)
        let head = try device.get(version.game)
        guard head.header.revision != revision else {
            try call.tellRestored(version, outcome: nil, as: revision, undo: nil)
            return .done
        }
        let draft = SignedInDevice.Draft(
            game: version.game, state: version.state, base: .revision(head.header.revision),
            schema: version.detail.schema)
        let (_, receipt) = try device.push(draft) { reason in
            call.output.talk("ieum: \(reason.message.terminalSafe); sending it once more")
        }
        let undo = receipt.settled == .lost ? nil : receipt.rival ?? head.header.revision
        try call.tellRestored(version, outcome: receipt.settled, as: receipt.revision, undo: undo)
        return receipt.settled == .lost ? .lost : .done
    }
}

extension Call {
    /// The revision that a positional argument names.
    func revisionArgument(_ index: Int) throws -> Revision {
        let text = arguments.positional(index) ?? ""
        guard let number = Revision(text), number > 0 else {
            throw UsageError("\"\(text)\" is no revision: a whole number from 1")
        }
        return number
    }

    fileprivate func show(_ version: VersionEntry, _ names: DeviceNames) throws {
        let detail = version.detail
        try output.boldLine("\(version.game), revision \(detail.revision)\(detail.isHead ? ": the head" : "")")
        var table = Table([.left(""), .left("")])
        table.add(["device", "\(names[detail.device]) (\(detail.device))"])
        table.add(["saved", "\(detail.saved.longText) UTC"])
        table.add(["stamp", detail.stamp == detail.saved ? "the same" : "\(detail.stamp.longText) UTC"])
        table.add(["received", "\(detail.received.longText) UTC"])
        table.add([
            "outcome", detail.outcome.rawValue + (detail.rival.map { ", met revision \($0)" } ?? ""),
        ])
        table.add(["base", detail.base.map { $0 == 0 ? "0 (thought to be new)" : String($0) } ?? "none named"])
        table.add(["schema", String(detail.schema)])
        table.add(["state", detail.isTombstone ? "none: it deletes the game" : detail.size.sizeText])
        try output.table(table)
        if let state = version.state { try output.data(JSONText.terminalSafe(JSONText.indented(state)) + [0x0A]) }
    }

    fileprivate func table(_ differences: [StateDifference], _ one: VersionEntry, _ other: VersionEntry) -> Table {
        var table = Table([
            .left("KEY"), .left("REVISION \(one.detail.revision)"), .left("REVISION \(other.detail.revision)"),
        ])
        func text(_ value: RawJSON?, _ version: VersionEntry) -> String {
            value.map { String(decoding: $0.text, as: UTF8.self) } ?? (version.state == nil ? "(deleted)" : "-")
        }
        for difference in differences {
            table.add([
                StyledText(difference.pathText), StyledText(text(difference.old, one), .red),
                StyledText(text(difference.new, other), .green),
            ])
        }
        return table
    }

    fileprivate func tellRestored(
        _ version: VersionEntry, outcome: Outcome?, as revision: Revision, undo: Revision?
    ) throws {
        if wantsJSON {
            return try printJSON([
                ("outcome", .text(outcome?.rawValue)), ("revision", .integer(revision)),
                ("restored", .integer(version.detail.revision)), ("undo", .number(undo)),
                ("collection", .string(version.game.collection)), ("id", .string(version.game.id)),
            ])
        }
        switch outcome {
        case nil: try output.line("revision \(revision) is the head of \(version.game) already: nothing to do")
        case .lost:
            try output.line(
                "lost: another device went on with \(version.game) meanwhile; this is kept as revision \(revision)")
            output.talk("  Try again: ieum restore \(version.detail.revision)")
        default:
            try output.line(
                "restored revision \(version.detail.revision) of \(version.game) as revision \(revision)"
                    + (version.state == nil ? ": the game is deleted" : ""))
            if let undo { output.talk("  Undo: ieum restore \(undo)") }
        }
    }
}

extension StateDifference {
    fileprivate var json: [(key: String, value: JSONText)] {
        let keys = path.map { step -> JSONText in
            switch step {
            case .key(let key): .string(key)
            case .index(let index): .integer(Int64(index))
            }
        }
        return [
            ("path", .string(pathText)), ("keys", .array(keys)), ("kind", .string(kind)),
            ("old", .state(old.map { Array($0.text) })), ("new", .state(new.map { Array($0.text) })),
        ]
    }
}

extension Timestamp {
    /// `2026-11-29 12:00:00.120000`, UTC.
    var longText: String {
        let text = description
        return "\(text.prefix(10)) \(text.dropFirst(11).prefix(15))"
    }
}
