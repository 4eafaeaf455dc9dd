import Arguments
import IeumClient
import Wire

extension ProgramCommand {
    /// `ieum conflicts`
    static let conflicts = ProgramCommand(
        spec: CommandSpec(
            "ieum conflicts", "list the conflicts of all games or of one, newest first: who won, what lost",
            positionals: ["[collection]", "[id]"],
            options: [
                OptionSpec("limit", "NUMBER", default: "20", help: "how many at most"),
                OptionSpec("before", "REVISION", help: "only those met before this version came"), .timeout, .json,
            ],
            examples: ["ieum conflicts", "ieum conflicts handle.game today"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn, .noSuchGame].map(\.entry)),
        notes: [
            """
            A conflict is a version that met another which its device had not seen. The greater of (stamp, saved, device)
            won; a device that thought the game new lost. DIFFERS names the top-level keys whose values differ. A loser
            counts as restored when a later version of the game that became its head has the same state.
            --json prints for each, on a line of its own, collection, id, met (when), incoming (won or lost: how the later
            of the two fared), winner and loser (revision, device, deviceName, saved, stamp, size, deleted, state; null where
            it was pruned), differingKeys (null where one is no object), head, restored (the revision, or null).
            """
        ]
    ) { call in
        let limit = try call.arguments.integer("limit", in: 1...10_000) ?? 20
        let before = try call.versionNumber("before") ?? .max
        if call.arguments.positionals.count == 1 { throw UsageError("a game is named by its collection and its id") }
        let key = call.arguments.positionals.isEmpty ? nil : try call.game()
        let device = try call.signIn()
        let reader = ConflictReader(device.connection)
        var (meetings, next) = try reader.meetings(of: key, before: before, limit: limit)
        let names = try DeviceNames(of: device)
        if !call.wantsJSON, meetings.isEmpty { call.output.talk("No conflicts.") }
        var isFirst = true
        while !meetings.isEmpty {
            // Some at a time: each has two states.
            for conflict in try reader.conflicts(meetings.prefix(20)) {
                if call.wantsJSON {
                    try call.printJSON(call.json(conflict, names))
                } else {
                    if !isFirst { try call.output.line("") }
                    try call.show(conflict, names)
                }
                isFirst = false
            }
            meetings.removeFirst(min(20, meetings.count))
        }
        if !call.wantsJSON, let next { call.output.talk("Older ones: add --before \(next)") }
        return .done
    }
}

/// Two versions that met.
struct Conflict {
    /// The later of the two, which says that they met.
    var meeting: VersionEntry
    /// Which won; nil: it was pruned.
    var winner: VersionEntry?
    /// Which lost; nil: it was pruned.
    var loser: VersionEntry?
    /// The game's head now.
    var head: Revision?
    /// The later head that has the loser's state again.
    var restored: Revision?

    /// The revision that lost.
    var losing: Revision { meeting.detail.outcome == .lost ? meeting.detail.revision : meeting.detail.rival ?? 0 }
    /// The revision that won.
    var winning: Revision { meeting.detail.outcome == .won ? meeting.detail.revision : meeting.detail.rival ?? 0 }
}

/// Reads conflicts with both their sides.
final class ConflictReader {
    private let connection: ServerConnection
    /// Each game's versions as far down as they were needed, newest first.
    private var histories: [GameKey: [VersionDetail]] = [:]

    init(_ connection: ServerConnection) {
        self.connection = connection
    }

    /// The newest versions before a revision that met another, and where older ones begin.
    func meetings(
        of key: GameKey?, before: Revision, limit: Int
    ) throws(ClientError) -> (meetings: [VersionEntry], next: Revision?) {
        if let key { return try newest(of: key, before, limit) }
        return try newest(before, limit)
    }

    /// Both sides of some meetings, and what became of the loser.
    func conflicts(_ meetings: some Collection<VersionEntry>) throws(ClientError) -> [Conflict] {
        let sides = Set(meetings.map(\.detail.revision) + meetings.compactMap(\.detail.rival))
        let versions = try connection.versions(sides.sorted())
        var conflicts: [Conflict] = []
        for meeting in meetings {
            var conflict = Conflict(meeting: meeting)
            conflict.winner = versions[conflict.winning]
            conflict.loser = versions[conflict.losing]
            let later = try history(of: meeting.game, downTo: meeting.detail.revision)
            conflict.head = later.first { $0.isHead }?.revision
            if let loser = conflict.loser {
                conflict.restored = try restoration(of: loser, in: later, after: meeting.detail.revision)
            }
            conflicts.append(conflict)
        }
        return conflicts
    }

    private func newest(
        _ before: Revision, _ limit: Int
    ) throws(ClientError) -> (meetings: [VersionEntry], next: Revision?) {
        var meetings: [VersionEntry] = []
        var next: Revision? = before
        while let start = next, meetings.count < limit {
            let page = try connection.versions(
                VersionsQuery(.before(start), limit: min(limit - meetings.count, 1_000), onlyConflicts: true))
            meetings += page.versions
            next = page.next
        }
        return (meetings, next)
    }

    private func newest(
        of key: GameKey, _ before: Revision, _ limit: Int
    ) throws(ClientError) -> (meetings: [VersionEntry], next: Revision?) {
        let all = try history(of: key, downTo: 1)
            .filter { $0.revision < before && ($0.outcome == .won || $0.outcome == .lost) }
        let shown = all.prefix(limit)
        return (
            shown.map { VersionEntry(game: key, detail: $0) }, all.count > shown.count ? shown.last?.revision : nil
        )
    }

    /// A game's versions, newest first, down to a revision at least.
    func history(of key: GameKey, downTo revision: Revision) throws(ClientError) -> [VersionDetail] {
        var versions = histories[key] ?? []
        while versions.last.map({ $0.revision > revision }) ?? true {
            let page = try connection.history(key, before: versions.last?.revision, limit: 1_000)
            versions += page.versions.map(\.detail)
            if page.before == nil { break }
        }
        histories[key] = versions
        return versions
    }

    /// The first head after a conflict that says what the loser says, byte for byte.
    private func restoration(
        of loser: VersionEntry, in history: [VersionDetail], after revision: Revision
    ) throws(ClientError) -> Revision? {
        let candidates = history.reversed().filter {
            $0.revision > revision && $0.outcome != .lost && $0.size == loser.detail.size
                && $0.isTombstone == loser.detail.isTombstone
        }.map(\.revision)
        guard !loser.detail.isTombstone else { return candidates.first }
        var rest = candidates[...]
        while !rest.isEmpty {
            let some = rest.prefix(16)
            rest = rest.dropFirst(16)
            let versions = try connection.versions(some)
            if let match = some.first(where: { versions[$0]?.state == loser.state }) { return match }
        }
        return nil
    }
}

extension Call {
    fileprivate func show(_ conflict: Conflict, _ names: DeviceNames) throws {
        let meeting = conflict.meeting
        try output.boldLine("\(meeting.game), met \(meeting.detail.received.shortText) UTC")
        var table = Table([.left(""), .left("WINNER"), .left("LOSER")])
        func row(_ title: String, _ value: (VersionDetail) -> String) {
            table.add([
                StyledText(title), StyledText(conflict.winner.map { value($0.detail) } ?? "pruned", .green),
                StyledText(conflict.loser.map { value($0.detail) } ?? "pruned", .red),
            ])
        }
        table.add([
            StyledText("revision"), StyledText(String(conflict.winning), .green),
            StyledText(String(conflict.losing), .red),
        ])
        row("device") { names[$0.device] }
        // Where the seconds do not show which is the later one, the fractions do.
        let stamps = [conflict.winner, conflict.loser].map { $0?.detail.stamp.shortText }
        row("saved") { stamps[0] == stamps[1] ? $0.saved.longText : $0.saved.shortText }
        row("stamp") { $0.stamp == $0.saved ? "the same" : $0.stamp.longText }
        row("state") { $0.isTombstone ? "deleted" : $0.size.sizeText }
        try output.table(table)
        try output.line("differs   \(differing(conflict))")
        switch conflict.restored {
        case let revision?: try output.line("restored  as revision \(revision)")
        case nil where conflict.loser != nil:
            try output.line("restored  no; take it after all: ieum restore \(conflict.losing)")
        case nil: break
        }
    }

    private func differing(_ conflict: Conflict) -> String {
        guard let winner = conflict.winner, let loser = conflict.loser else { return "cannot be told: one was pruned" }
        if winner.state == nil || loser.state == nil { return "one of them deletes the game" }
        guard let keys = StateDifference.topLevelKeys(winner.state, loser.state) else {
            return winner.state == loser.state ? "in nothing" : "as a whole: they are no objects"
        }
        return keys.isEmpty ? "in nothing" : keys.joined(separator: ", ")
    }

    fileprivate func json(_ conflict: Conflict, _ names: DeviceNames) -> [(key: String, value: JSONText)] {
        func side(_ version: VersionEntry?) -> JSONText {
            guard let version else { return .null }
            let detail = version.detail
            return .object(
                [("revision", .integer(detail.revision))] + names.json(detail.device) + [
                    ("saved", .time(detail.saved)), ("stamp", .time(detail.stamp)),
                    ("size", .integer(Int64(detail.size))), ("deleted", .boolean(detail.isTombstone)),
                    ("state", .state(version.state)),
                ])
        }
        let keys = StateDifference.topLevelKeys(conflict.winner?.state, conflict.loser?.state)
        return [
            ("collection", .string(conflict.meeting.game.collection)), ("id", .string(conflict.meeting.game.id)),
            ("met", .time(conflict.meeting.detail.received)),
            ("incoming", .string(conflict.meeting.detail.outcome.rawValue)), ("winner", side(conflict.winner)),
            ("loser", side(conflict.loser)),
            ("differingKeys", keys.map { .array($0.map { .string($0) }) } ?? .null),
            ("head", .number(conflict.head)), ("restored", .number(conflict.restored)),
        ]
    }
}
