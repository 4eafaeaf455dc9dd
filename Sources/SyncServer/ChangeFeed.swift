import EventLoop
import Foundation
import Postgres
import Wire

/// Carries news of changed players between the daemons of one database, by LISTEN and NOTIFY.
///
/// A notification is a hint: what is in it is a player and a revision, and games are always pulled. After every connect
/// LISTEN goes first, then the counters of all watched players are read, so nothing that was said meanwhile is missed.
/// The same connection asks for the epoch now and then, which also finds a connection that is dead without a word; and
/// more rarely it looks the counters up, in case a daemon died between its commit and its notification.
///
/// It also carries a word that sessions are to end, see ``SessionEnds``; an older daemon passes it over.
final class ChangeFeed {
    static let channel = "ieum_changes"
    /// PostgreSQL takes payloads of fewer than 8,000 bytes.
    private static let maxPayloadBytes = 7_900
    /// What is told in place of a change where sessions are to end, see ``SessionEnds``.
    static let sessionEndsWord = "ends"
    private static let playersPerLookup = 1_000
    private static let probeInterval = Duration.seconds(5)
    private static let probesPerLookup = 6

    private static let readEpoch = Statement("read-epoch", "SELECT epoch FROM server")
    private static let notify = Statement(
        "notify", "SELECT pg_notify('\(channel)', payload) FROM unnest($1) AS payload", parameterTypes: [.textArray])
    private static let readCounters = Statement(
        "read-counters", "SELECT player_id, last_revision FROM last_revisions($1)",
        parameterTypes: [.uuidArray])

    // The server owns its feed and outlives it.
    private unowned let server: SyncServer
    private let link: DatabaseLink
    private var probe: EventLoop.Timer?
    private var probes = 0
    /// Changes that gather while a notification is under way: one revision a player.
    private var unsent: [PlayerID: Revision] = [:]
    /// What the notification under way says.
    private var underWay: [PlayerID: Revision] = [:]
    private var isNotifying = false
    /// Whether the others are to be told that sessions end, and whether the notification under way tells them.
    private var tellsSessionEnds = (unsent: false, underWay: false)

    init(server: SyncServer, link: DatabaseLink) {
        self.server = server
        self.link = link
        link.whenReady { [weak self] connection in self?.connected(connection) }
        link.onNotification = { [weak self] _, payload, pid in self?.heard(payload, from: pid) }
        probe = EventLoop.Timer(on: server.loop, after: Self.probeInterval, every: Self.probeInterval) { [weak self] in
            self?.look()
        }
        link.start()
    }

    /// What every session of the feed begins with.
    static let setup = ["LISTEN \(channel)"]

    /// Tells the other daemons; called with what one batch changed.
    func publish(_ changes: [(player: PlayerID, revision: Revision)]) {
        unsent.reserveCapacity(changes.count)
        for change in changes { unsent[change.player, default: 0].raise(to: change.revision) }
        sendUnsent()
    }

    /// Lets the other daemons look which sessions are to end.
    func publishSessionEnds() {
        tellsSessionEnds.unsent = true
        sendUnsent()
    }

    private func sendUnsent() {
        guard !isNotifying, !unsent.isEmpty || tellsSessionEnds.unsent, let connection = link.connection else { return }
        var payloads = BinaryArray(of: .text)
        var payload: [UInt8] = []
        for (player, revision) in unsent {
            if payload.count > Self.maxPayloadBytes - 64 {
                payloads.append(payload)
                payload.removeAll(keepingCapacity: true)
            }
            if !payload.isEmpty { payload.append(UInt8(ascii: " ")) }
            player.print(into: &payload)
            payload.append(UInt8(ascii: ":"))
            payload.append(decimal: revision)
        }
        if !payload.isEmpty { payloads.append(payload) }
        tellsSessionEnds = (false, tellsSessionEnds.unsent)
        if tellsSessionEnds.underWay { payloads.append(Self.sessionEndsWord) }
        swap(&underWay, &unsent)
        isNotifying = true
        var parameters = ParameterList()
        parameters.append(payloads)
        connection.execute(Self.notify, parameters) { [weak self] result in
            self?.notified(result)
        }
    }

    private func notified(_ result: Result<QueryResult, DatabaseError>) {
        if case .failure(let error) = result {
            server.log(.warning, "notify-failed", ["error": error])
            // Said again by the next connection: saying it twice does no harm.
            if error.isRetryable {
                unsent.merge(underWay) { max($0, $1) }
                tellsSessionEnds.unsent = tellsSessionEnds.unsent || tellsSessionEnds.underWay
            }
        }
        isNotifying = false
        tellsSessionEnds.underWay = false
        underWay.removeAll(keepingCapacity: true)
        sendUnsent()
    }

    private func heard(_ payload: String, from pid: Int32) {
        guard pid != link.connection?.backendPID else { return }
        if payload == Self.sessionEndsWord {
            server.sessionEnds?.look()
            return
        }
        for word in payload.split(separator: " ") {
            let parts = word.split(separator: ":")
            guard parts.count == 2, let player = PlayerID(String(parts[0])), let revision = Revision(parts[1]) else {
                continue
            }
            server.announce(player, revision: revision)
        }
    }

    /// LISTEN was the first statement of this connection; now what was missed is looked up.
    private func connected(_ connection: DatabaseConnection) {
        askEpoch(connection)
        lookUpCounters(connection)
        server.sessionEnds?.checkAll()
        sendUnsent()
    }

    private func look() {
        guard let connection = link.connection else { return }
        askEpoch(connection)
        probes += 1
        if probes.isMultiple(of: Self.probesPerLookup) { lookUpCounters(connection) }
    }

    private func lookUpCounters(_ connection: DatabaseConnection) {
        let players = Array(server.watchers.players)
        for start in stride(from: 0, to: players.count, by: Self.playersPerLookup) {
            var array = BinaryArray(of: .uuid)
            for player in players[start..<min(start + Self.playersPerLookup, players.count)] {
                array.append(player.uuid)
            }
            var parameters = ParameterList()
            parameters.append(array)
            connection.execute(Self.readCounters, parameters) { [weak self] result in
                if case .success(let rows) = result { self?.countersRead(rows) }
            }
        }
    }

    private func countersRead(_ rows: QueryResult) {
        do throws(DatabaseError) {
            for row in 0..<rows.rowCount {
                server.announce(PlayerID(try rows.uuid(row, 0)), revision: try rows.int8(row, 1))
            }
        } catch {
            server.log(.error, "counters-unreadable", ["error": error])
        }
    }

    private func askEpoch(_ connection: DatabaseConnection) {
        connection.execute(Self.readEpoch, ParameterList()) { [weak self] result in
            guard let self, case .success(let rows) = result else { return }
            do throws(DatabaseError) {
                guard rows.rowCount == 1 else { throw DatabaseError(.protocol, "the table server is empty") }
                server.epochRead(try rows.uuid(0, 0))
            } catch {
                server.log(.error, "epoch-unreadable", ["error": error])
            }
        }
    }
}

extension Revision {
    fileprivate mutating func raise(to least: Revision) { self = Swift.max(self, least) }
}
