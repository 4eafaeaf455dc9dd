import Arguments
import IeumClient
import TerminalText
import Wire

private let base = OptionSpec(
    "base", "REVISION|none", help: "the revision of the game that was seen last (left out: what this home saw)")
private let saved = OptionSpec("saved", "TIME", help: "when it was saved, e.g. 2026-11-29T12:00:00Z (left out: now)")

private let baseNote = """
    Conflicts: with the revision of the game that was seen last (its base), the server tells whether this push carries on
    the head, or was made beside it. ieum remembers it for you: the head that push, get, pull --json or pull --output
    last gave here. A game that was never seen here is pushed with base 0, "I believe it is new": should it exist, the
    push loses, so that a fresh install never overwrites progress; a deletion of it claims nothing. --base none claims
    nothing: the later save wins.
    Whatever loses stays in the history.

    Retries: a push whose connection breaks is sent once more with the same time of saving, and stored once. A push that
    ended without an answer can be called again: the same state gets the same time.

    --json prints outcome, first (of a repeated push: its first outcome), revision, stamp, rival (the revision that it
    met), collection, id, saved, base, and head: null, or revision, saved, stamp, device, deviceName, schema, deleted,
    state of the version that stays the head.
    """

private let codes = [ExitCode.done, .refused, .usage, .lost, .unreachable, .notSignedIn].map(\.entry)

extension ProgramCommand {
    /// `ieum push`
    static let push = ProgramCommand(
        spec: CommandSpec(
            "ieum push", "store one game on the server", positionals: ["<collection>", "<id>"],
            options: [
                OptionSpec("file", "FILE|-", isRequired: true, help: "the state, one JSON value; - reads stdin"), base,
                saved,
                OptionSpec("schema", "NUMBER", default: "0", help: "the version of the state's shape, for the game"),
                .timeout, .json,
            ],
            examples: ["ieum push handle.game today --file game.json"], exitCodes: codes),
        notes: [
            """
            The state is stored byte for byte, but for line breaks: those around it go, those inside become blanks. A byte
            order mark before it goes.
            """, baseNote,
        ]
    ) { call in
        let schema = try call.arguments.integer("schema", in: 0...Int(Int32.max)) ?? 0
        var draft = try call.draft()
        draft.state = try StateFile.read(call.arguments.string("file") ?? "-")
        draft.schema = Int32(schema)
        return try call.push(draft)
    }

    /// `ieum delete`
    static let delete = ProgramCommand(
        spec: CommandSpec(
            "ieum delete", "delete one game on every device", positionals: ["<collection>", "<id>"],
            options: [base, saved, .timeout, .json], examples: ["ieum delete handle.game today"], exitCodes: codes),
        notes: ["A deleted game keeps its history, and a later push brings it back.", baseNote]
    ) { call in
        try call.push(call.draft())
    }
}

extension Call {
    /// A draft of what the arguments say, without a state.
    fileprivate func draft() throws -> SignedInDevice.Draft {
        var draft = SignedInDevice.Draft(game: try game(), state: nil)
        if arguments.string("base") == "none" {
            draft.base = .none
        } else if let revision = try revision("base") {
            draft.base = .revision(revision)
        }
        if let text = arguments.string("saved") {
            guard let time = Timestamp(text) else {
                throw UsageError("--saved takes a time in UTC like 2026-11-29T12:00:00.5Z, not \"\(text)\"")
            }
            draft.saved = time
        }
        return draft
    }

    fileprivate func push(_ draft: SignedInDevice.Draft) throws -> ExitCode {
        let device = try signIn()
        warnOfClock(device)
        let (push, receipt) = try device.push(draft) { reason in
            output.talk("ieum: \(reason.message.terminalSafe); sending it once more")
        }
        if wantsJSON {
            try printJSON(json(push, receipt, device.identity))
        } else {
            try output.line(summary(push, receipt, device.identity).terminalSafe)
            if receipt.settled == .lost { explainLoss(push, receipt) }
        }
        return receipt.settled == .lost ? .lost : .done
    }

    private func warnOfClock(_ device: SignedInDevice) {
        let offset = device.connection.clockOffset
        guard abs(offset.milliseconds) > 5_000 else { return }
        let word = offset > .zero ? "behind" : "ahead of"
        output.talk(
            "ieum: this device's clock is \(Duration.milliseconds(abs(offset.milliseconds)).readableText) \(word) the "
                + "server's; the later save wins a conflict, so set it right")
    }

    private func summary(_ push: Push, _ receipt: PushReceipt, _ identity: Identity) -> String {
        let verb = push.state == nil ? "deleted" : "stored"
        let repeated = receipt.outcome == .repeated ? " (it was sent before)" : ""
        let rival = receipt.rival.map { " \($0)" } ?? ""
        switch receipt.settled {
        case .lost:
            let head = receipt.head.map {
                ": saved \($0.saved.shortText) UTC by \(name(of: $0.device, here: identity))"
                    + ($0.state == nil ? ", deleted" : "")
            }
            return "lost: kept as revision \(receipt.revision), but revision"
                + "\(receipt.head.map { " \($0.revision)" } ?? rival) stays the head\(head ?? "")\(repeated)"
        case .won: return "\(verb) as revision \(receipt.revision): won over revision\(rival)\(repeated)"
        case .created, .advanced, .repeated:
            return "\(verb) as revision \(receipt.revision): \(receipt.settled.rawValue)\(repeated)"
        }
    }

    private func explainLoss(_ push: Push, _ receipt: PushReceipt) {
        output.talk("  See the head:        ieum get \(push.game.commandWords.terminalSafe)")
        output.talk("  See yours:           ieum show \(receipt.revision)")
        output.talk("  To put yours on top: ieum restore \(receipt.revision)")
    }

    private func json(
        _ push: Push, _ receipt: PushReceipt, _ identity: Identity
    ) -> [(key: String, value: JSONText)] {
        let head = receipt.head.map { head in
            JSONText.object(
                [
                    ("revision", .integer(head.revision)), ("saved", .time(head.saved)), ("stamp", .time(head.stamp)),
                ] + json(of: head.device, here: identity) + [
                    ("schema", .integer(Int64(head.schema))), ("deleted", .boolean(head.state == nil)),
                    ("state", .state(head.state)),
                ])
        }
        return [
            ("outcome", .string(receipt.outcome.rawValue)), ("first", .text(receipt.first?.rawValue)),
            ("revision", .integer(receipt.revision)), ("stamp", .time(receipt.stamp)),
            ("rival", .number(receipt.rival)), ("collection", .string(push.game.collection)),
            ("id", .string(push.game.id)), ("saved", .time(push.saved)), ("base", .number(push.base)),
            ("head", head ?? .null),
        ]
    }
}
