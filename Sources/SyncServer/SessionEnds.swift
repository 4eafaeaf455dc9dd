import EventLoop
import Foundation
import Postgres
import Wire

/// Which sessions are to end: a device was revoked, its token replaced, or its player forgotten; here, at another daemon or by
/// the operator.
struct SessionEnd: Hashable, Sendable {
    /// Why.
    enum Kind: Hashable, Sendable {
        case forgotten
        case revoked
        /// Sessions that an earlier token signed in end: those of a lower generation.
        case rotated(generation: Int32)
    }

    var player: PlayerID
    /// The device; nil: all of the player's.
    var device: DeviceID?
    var kind: Kind

    /// What a session that ends is told; nil: it does not end.
    func reason(device: DeviceID, tokenGeneration: Int32) -> WireError? {
        guard self.device == nil || self.device == device else { return nil }
        switch kind {
        case .forgotten: return .loginFailed
        case .revoked: return .deviceRevoked
        case .rotated(let generation): return tokenGeneration < generation ? .tokenRotated : nil
        }
    }
}

/// Reads from the table `session_ends` which sessions are to end, several times a second, and ends them.
///
/// A notification makes it look at once, and is not needed: the look is what counts, so a revoked device is out within a
/// second whatever becomes of notifications. A look reads some seconds back: a row may be committed a little after its
/// moment, and a login that was under way then is caught by the next look. Ends that are read again end nothing more. Looks
/// go over the feed's connection; while that does not answer, over those for requests.
final class SessionEnds {
    private static let interval = Duration.milliseconds(400)
    /// How far a look reads back behind the one before, in microseconds.
    private static let overlap: Int64 = 15_000_000
    /// Looks between two removals of old rows: about a minute.
    private static let looksPerSweep = 150
    private static let devicesPerCheck = 1_000

    private static let read = Statement(
        "read-session-ends",
        "SELECT moment, player_id, device_id, generation FROM recent_session_ends($1)", parameterTypes: [.timestamptz])
    private static let sweep = Statement("sweep-session-ends", "SELECT sweep_session_ends()")
    private static let check = Statement(
        "check-devices",
        "SELECT player_id, device_id, is_unknown, is_revoked, generation FROM check_devices($1, $2)",
        parameterTypes: [.uuidArray, .uuidArray])

    // The server owns it and outlives it.
    private unowned let server: SyncServer
    private let link: DatabaseLink
    private let pool: DatabasePool
    private var timer: EventLoop.Timer?
    private var looks = 0
    private var isFeedBusy = false
    private var isPoolBusy = false
    /// Something was written after the look that is under way had begun.
    private var mustLookAgain = false
    /// The database's clock at the last look.
    private var lastLook: Int64 = overlap

    init(server: SyncServer, link: DatabaseLink, pool: DatabasePool) {
        self.server = server
        self.link = link
        self.pool = pool
        timer = EventLoop.Timer(on: server.loop, after: Self.interval, every: Self.interval) { [weak self] in
            self?.tick()
        }
    }

    /// Looks at once, or as soon as the look that is under way is over.
    func look() {
        if isFeedBusy || isPoolBusy {
            mustLookAgain = true
        } else {
            begin()
        }
    }

    private func tick() {
        begin()
        looks += 1
        guard looks.isMultiple(of: Self.looksPerSweep) else { return }
        pool.execute(Self.sweep, ParameterList(), isRepeatable: true) { [server] result in
            if case .failure(let error) = result { server.log(.warning, "session-ends-not-swept", ["error": error]) }
        }
    }

    private func begin() {
        var parameters = ParameterList()
        parameters.append(microsecondsSince1970: lastLook - Self.overlap)
        if !isFeedBusy, let connection = link.connection {
            isFeedBusy = true
            connection.execute(Self.read, parameters) { [weak self] result in
                self?.isFeedBusy = false
                self?.finished(result)
            }
        } else if !isPoolBusy {
            isPoolBusy = true
            pool.execute(Self.read, parameters, isRepeatable: true) { [weak self] result in
                self?.isPoolBusy = false
                self?.finished(result)
            }
        }
    }

    private func finished(_ result: Result<QueryResult, DatabaseError>) {
        // While the database is away nothing is to be told: the next look reads what this one did not.
        if case .success(let rows) = result {
            do throws(DatabaseError) {
                var ends: [SessionEnd] = []
                for row in 0..<rows.rowCount {
                    lastLook = try rows.microsecondsSince1970(row, 0)
                    guard try !rows.isNull(row, 1) else { continue }
                    let device = try rows.isNull(row, 2) ? nil : DeviceID(rows.uuid(row, 2))
                    let generation = try rows.isNull(row, 3) ? nil : rows.int4(row, 3)
                    ends.append(
                        SessionEnd(
                            player: PlayerID(try rows.uuid(row, 1)), device: device,
                            kind: device == nil ? .forgotten : generation.map { .rotated(generation: $0) } ?? .revoked))
                }
                server.end(ends)
            } catch {
                server.log(.error, "session-ends-unreadable", ["error": error])
            }
        }
        if mustLookAgain, !isFeedBusy, !isPoolBusy {
            mustLookAgain = false
            begin()
        }
    }

    /// Looks every signed-in device up. After a reconnect the database may be another machine, whose clock is another, or that
    /// lacks what was written last.
    func checkAll() {
        lastLook = Self.overlap
        let devices = server.signedInDevices
        for start in stride(from: 0, to: devices.count, by: Self.devicesPerCheck) {
            var (playerIDs, deviceIDs) = (BinaryArray(of: .uuid), BinaryArray(of: .uuid))
            for identity in devices[start..<min(start + Self.devicesPerCheck, devices.count)] {
                playerIDs.append(identity.player.uuid)
                deviceIDs.append(identity.device.uuid)
            }
            var parameters = ParameterList()
            parameters.append(playerIDs)
            parameters.append(deviceIDs)
            pool.execute(Self.check, parameters, isRepeatable: true) { [weak self] result in
                if case .success(let rows) = result { self?.checked(rows) }
            }
        }
    }

    private func checked(_ rows: QueryResult) {
        do throws(DatabaseError) {
            var ends: [SessionEnd] = []
            for row in 0..<rows.rowCount {
                let kind: SessionEnd.Kind =
                    try rows.bool(row, 2)
                    ? .forgotten
                    : rows.bool(row, 3) ? .revoked : .rotated(generation: rows.int4(row, 4))
                ends.append(
                    SessionEnd(
                        player: PlayerID(try rows.uuid(row, 0)), device: DeviceID(try rows.uuid(row, 1)), kind: kind))
            }
            server.end(ends)
        } catch {
            server.log(.error, "devices-unreadable", ["error": error])
        }
    }
}
