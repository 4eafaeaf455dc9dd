import Foundation
import IeumClient
import TerminalText
import Wire

/// What `ieum status` finds out from the server, as far as it comes.
struct StatusAnswer {
    private(set) var isReachable = false
    private(set) var isSignedIn: Bool?
    private(set) var serverVersion: String?
    private(set) var epoch: UUID?
    private(set) var lastRevision: Revision?
    private(set) var clockOffset: Duration?
    private(set) var roundTrip: Duration?

    /// Asks; what was found out before an error stays.
    mutating func ask(_ identity: Identity, _ patience: ServerConnection.Patience) throws(ClientError) {
        let connection = try ServerConnection(to: identity.server, patience: patience)
        isReachable = true
        serverVersion = connection.greeting.server
        epoch = connection.greeting.epoch
        clockOffset = connection.clockOffset
        roundTrip = try connection.ping()
        do throws(ClientError) {
            lastRevision = try connection.logIn(identity.token).revision
            isSignedIn = true
        } catch {
            if case .server = error, !error.isRetryable { isSignedIn = false }
            throw error
        }
    }

    /// The keys of `--json`.
    func json(
        _ identity: Identity, home: DeviceHome, cursor: Revision, epoch known: UUID?, copy: CopyState?
    ) -> [(key: String, value: JSONText)] {
        [
            ("home", .string(home.path)), ("server", .string(identity.server.description)),
            ("player", .string(identity.player.description)), ("device", .string(identity.device.description)),
            ("deviceName", .string(identity.deviceName)), ("reachable", .boolean(isReachable)),
            ("signedIn", isSignedIn.map { .boolean($0) } ?? .null), ("serverVersion", .text(serverVersion)),
            ("epoch", .text((epoch ?? known)?.uuidString.lowercased())), ("cursor", .integer(cursor)),
            ("lastRevision", .number(lastRevision)), ("behind", .number(lastRevision.map { max(0, $0 - cursor) })),
            ("clockOffsetMs", clockOffset.map { .decimal($0.milliseconds) } ?? .null),
            ("roundTripMs", roundTrip.map { .decimal($0.milliseconds) } ?? .null),
            ("copyRevision", .number(copy.map { reached(by: $0) })),
            ("copyGames", .number(copy.map { Int64($0.games) })),
            ("unsent", .number(copy.map { Int64($0.unsent) })), ("refused", .number(copy.map { Int64($0.refused) })),
            ("conflicts", .number(copy.map { Int64($0.conflicts) })),
        ]
    }

    /// The lines for people.
    func lines(
        _ identity: Identity, home: DeviceHome, cursor: Revision, isNewEpoch: Bool, copy: CopyState?
    ) -> [String] {
        var lines: [(String, String)] = [
            ("server", "\(identity.server)" + (serverVersion.map { " (ieumd \($0))" } ?? "")),
            ("player", identity.player.description),
            ("device", "\(identity.deviceName) (\(identity.device))"),
            ("home", home.path),
            ("signed in", isSignedIn.map { $0 ? "yes" : "no" } ?? "unknown"),
        ]
        if let lastRevision {
            let behind = max(0, lastRevision - cursor)
            let note = behind == 0 ? "up to date" : "ieum pull brings what is later than revision \(cursor)"
            lines.append(("revision", "\(lastRevision) (\(note))"))
        } else {
            lines.append(("pulled", "up to revision \(cursor)"))
        }
        if let copy { lines += copyLines(copy) }
        if let epoch {
            lines.append(
                ("epoch", epoch.uuidString.lowercased() + (isNewEpoch ? " (new: the server was restored)" : "")))
        }
        if let clockOffset {
            let milliseconds = clockOffset.milliseconds
            let size = Duration.milliseconds(abs(milliseconds)).readableText
            let text =
                abs(milliseconds) < 50 ? "right" : "\(size) \(milliseconds > 0 ? "behind" : "ahead of") the server's"
            lines.append(("clock", text))
        }
        if let roundTrip { lines.append(("round trip", roundTrip.readableText)) }
        return lines.map { "\($0.0.padded(to: 12))\($0.1.terminalSafe)" }
    }

    /// Up to where the copy has the server's changes: nothing of it is sure once the server was restored.
    private func reached(by copy: CopyState) -> Revision {
        guard let epoch, let known = copy.epoch, known != epoch else { return copy.cursor }
        return 0
    }

    private func copyLines(_ copy: CopyState) -> [(String, String)] {
        func count(_ number: Int, _ one: String, _ many: String) -> String { "\(number) \(number == 1 ? one : many)" }
        let reached = reached(by: copy)
        let behind = lastRevision.map { $0 > reached } ?? false
        var lines = [
            (
                "copy",
                "\(count(copy.games, "game", "games")) here, \(behind ? "only " : "")up to revision \(reached)"
            )
        ]
        if copy.unsent > 0 {
            lines.append(("unsent", "\(count(copy.unsent, "game", "games")) saved here; ieum pull sends them"))
        }
        if copy.refused > 0 {
            lines.append(
                ("refused", "\(count(copy.refused, "game", "games")) saved here that the server does not take"))
        }
        if copy.conflicts > 0 {
            lines.append(("conflicts", "\(copy.conflicts) that nobody has looked at; both sides are in ieum history"))
        }
        return lines
    }
}
