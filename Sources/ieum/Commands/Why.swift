import Arguments
import IeumClient
import Wire

extension ProgramCommand {
    /// `ieum why`
    static let why = ProgramCommand(
        spec: CommandSpec(
            "ieum why", "tell in plain words why a game is as it is: whose version won, by which rule, what lost",
            positionals: ["<collection>", "<id>"], options: [.timeout, .json], examples: ["ieum why handle.game today"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn, .noSuchGame].map(\.entry)),
        notes: [
            """
            The rules are those of Documentation/conflicts.md. A device's clock is judged by its pushes: one saved later than
            it arrived proves a clock that runs ahead.
            --json prints collection, id, revision (the head), outcome, rule, device, deviceName, clockOffsetMs, saved, stamp,
            stampReason (same, held-down, raised), received, base, rival, deleted, losers (revisions that lost to it).
            """
        ]
    ) { call in
        let key = try call.game()
        let device = try call.signIn()
        let reader = ConflictReader(device.connection)
        let history = try reader.history(of: key, downTo: 1)
        guard let head = history.first(where: \.isHead) else {
            throw Failure(.refused, code: "no-head", "the server names no head of this game")
        }
        let explanation = Explanation(key: key, head: head, history: history, names: try DeviceNames(of: device))
        if call.wantsJSON {
            try call.printJSON(explanation.json)
        } else {
            for line in explanation.lines { try call.output.line(line) }
        }
        return .done
    }
}

/// Why a game's head is its head.
private struct Explanation {
    let key: GameKey
    let head: VersionDetail
    /// Newest first.
    let history: [VersionDetail]
    let names: DeviceNames

    /// How the stamp came to differ from saved.
    private enum StampReason: String {
        case same, heldDown = "held-down", raised
    }

    private var stampReason: StampReason {
        head.stamp == head.saved ? .same : head.stamp < head.saved ? .heldDown : .raised
    }

    private var losers: [VersionDetail] {
        history.filter { version in
            (version.outcome == .lost && version.rival == head.revision)
                || (head.outcome == .won && version.revision == head.rival)
        }
    }

    /// The version that the head won over, where it was pruned since.
    private var prunedLoser: Revision? {
        guard head.outcome == .won, let rival = head.rival else { return nil }
        return history.contains { $0.revision == rival } ? nil : rival
    }

    /// The row of the table in Documentation/conflicts.md.
    private var rule: String {
        switch head.outcome {
        case .created: "the game was new"
        case .advanced:
            "its device had seen the head of then, revision \(head.base.map { String($0) } ?? "?"): whoever has seen it "
                + "advances it, whatever the clocks say"
        case .won, .lost, .repeated:
            "\(concurrency), so the greater of (stamp, saved, device) won: this one, over revision "
                + "\(head.rival.map { String($0) } ?? "?")"
        }
    }

    private var concurrency: String {
        switch head.base {
        case nil: "its device did not say what it had seen"
        case let base? where base >= head.revision:
            "its device had seen a revision \(base), which the server had lost"
        case let base?: "its device had seen revision \(base) and not the head of then"
        }
    }

    var lines: [[StyledText]] {
        let state = head.isTombstone ? " It deletes the game." : ""
        var lines: [[StyledText]] = [
            [
                StyledText("\(key) is at revision \(head.revision), saved by ", .bold),
                StyledText(names[head.device], .bold), StyledText(".\(state)", .bold),
            ]
        ]
        func add(_ title: String, _ text: String, _ style: Style? = nil) {
            for (index, line) in text.wrapped(to: 66).enumerated() {
                lines.append([StyledText((index == 0 ? title : "").padded(to: 10)), StyledText(line, style)])
            }
        }
        add("device", "\(names[head.device]) (\(head.device)); \(clock)")
        add("saved", "\(head.saved.longText) UTC, by the device's clock")
        add("received", "\(head.received.longText) UTC, by the server's clock\(distance)")
        add("stamp", stamp)
        add("base", base)
        add("rule", "\(head.outcome.rawValue): \(rule)")
        if let prunedLoser { add("lost", "revision \(prunedLoser), which was pruned since", .red) }
        if losers.isEmpty {
            if prunedLoser == nil {
                add("lost", "nothing lost to it" + earlier)
            } else if !earlier.isEmpty {
                add("", String(earlier.dropFirst(2)))
            }
        } else {
            for loser in losers {
                let how =
                    loser.outcome == .lost && loser.base == 0 ? "its device thought the game new" : compared(loser)
                add(
                    "lost",
                    "revision \(loser.revision) by \(names[loser.device]), saved \(loser.saved.shortText) UTC: \(how)",
                    .red)
                add("", "get it back: ieum restore \(loser.revision)")
            }
            if !earlier.isEmpty { add("", String(earlier.dropFirst(2))) }
        }
        return lines
    }

    private func compared(_ loser: VersionDetail) -> String {
        if loser.stamp != head.stamp {
            return "its stamp is \((head.stamp.microseconds - loser.stamp.microseconds).timeText) less"
        }
        if loser.saved != head.saved { return "the stamps are the same, and it was saved earlier" }
        return "the times are the same, and its device comes first in order"
    }

    private var earlier: String {
        let known = losers.count + (prunedLoser == nil ? 0 : 1)
        let number = history.count { $0.outcome == .lost || $0.outcome == .won } - known
        guard number > 0 else { return "" }
        return "; conflicts met before: \(number), see ieum conflicts \(key.commandWords)"
    }

    private var clock: String {
        guard let offset = names.entries[head.device]?.clockOffset else { return "its clock cannot be judged" }
        if offset > 0 { return "its clock runs ahead by \(offset.timeText) at least" }
        return "its clock does not run ahead (its quickest push came \((-offset).timeText) after it was saved)"
    }

    private var distance: String {
        let difference = head.received.microseconds - head.saved.microseconds
        if difference >= 0 { return ", \(difference.timeText) later" }
        return ", \((-difference).timeText) before it was saved"
    }

    private var stamp: String {
        switch stampReason {
        case .same: return "the same as saved"
        case .heldDown:
            return
                "\(head.stamp.longText) UTC: held down to 5 seconds after it arrived, since the device's clock ran ahead"
        case .raised:
            let plain = min(head.saved.microseconds, head.received.microseconds + 5_000_000)
            let held = plain < head.saved.microseconds ? "held down first, then " : ""
            return
                "\(head.stamp.longText) UTC: \(held)raised to 1 µs after the stamp of its base, since who has seen a "
                + "version comes after it"
        }
    }

    private var base: String {
        switch head.base {
        case nil: "none: the device did not say what it had seen"
        case 0?: "0: the device thought the game new"
        case let base?: "revision \(base)"
        }
    }

    var json: [(key: String, value: JSONText)] {
        let offset = names.entries[head.device]?.clockOffset
        return [
            ("collection", .string(key.collection)), ("id", .string(key.id)), ("revision", .integer(head.revision)),
            ("outcome", .string(head.outcome.rawValue)), ("rule", .string(rule)),
        ] + names.json(head.device) + [
            ("clockOffsetMs", offset.map { .decimal(Double($0) / 1_000) } ?? .null), ("saved", .time(head.saved)),
            ("stamp", .time(head.stamp)), ("stampReason", .string(stampReason.rawValue)),
            ("received", .time(head.received)), ("base", .number(head.base)), ("rival", .number(head.rival)),
            ("deleted", .boolean(head.isTombstone)), ("losers", .array(losers.map { .integer($0.revision) })),
        ]
    }
}

extension Int64 {
    /// Microseconds as `12 µs`, `3.5 ms`, `2.5 s`, `5 minutes`, `3 hours`, `2 days`.
    fileprivate var timeText: String {
        magnitude < 1_000 ? "\(self) µs" : Duration.microseconds(self).readableText
    }
}

extension String {
    /// The text in lines of at most so many columns, broken between words.
    fileprivate func wrapped(to width: Int) -> [String] {
        var lines: [String] = []
        for word in split(separator: " ").map(String.init) {
            if let last = lines.last, last.terminalWidth + 1 + word.terminalWidth <= width {
                lines[lines.count - 1] = "\(last) \(word)"
            } else {
                lines.append(word)
            }
        }
        return lines
    }
}
