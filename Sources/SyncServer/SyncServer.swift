import EventLoop
import Foundation
import Postgres
import Wire

/// The sync server: listens, keeps sessions, and ties them to PostgreSQL. One thread, one loop.
///
/// Everything here is confined to the loop's thread. Source: Documentation/protocol.md for what it says to clients,
/// Documentation/operations.md for what it does for operators.
public final class SyncServer {
    let configuration: ServerConfiguration
    let loop: EventLoop
    let log: Log
    let metrics: Metrics
    var watchers = Watchers()
    /// Bytes of accepted pushes and of replies that peers do not read.
    var pendingBytes = 0

    private let laneMap: LaneMap
    private var lanes: [Lane] = []
    private let pool: DatabasePool
    private let importPool: DatabasePool
    private let usagePool: DatabasePool
    private(set) var description: ServerDescription
    let tls: ServerTLS?
    private var certificateTimer: EventLoop.Timer?
    /// Connections over the limit that are shaking hands, to be told so.
    private var strangers = 0
    private(set) var sessions: [ObjectIdentifier: ClientSession] = [:]
    /// Connections of balancers that have not said yet whose they are.
    var prefaces: [Int: ProxyPreface] = [:]
    var nextPreface = 0
    /// Bytes of lines that have not ended, at the last look.
    var unfinishedBytes = 0
    private var sweepTimer: EventLoop.Timer?
    private(set) lazy var playerLimits = PlayerLimits(
        configuration.limits, pool: pool, usagePool: usagePool, loop: loop)
    var addressLimits: AddressLimits
    var deviceChangeLimits: DeviceChangeLimits
    let shortWaits: ShortWaits
    private var spareEffects: [Session.Effects] = []
    private var listener: Listener?
    private var responder: HTTPResponder?
    private(set) var feed: ChangeFeed?
    private(set) var sessionEnds: SessionEnds?
    private let feedLink: DatabaseLink
    private var drainTimers: [EventLoop.Timer] = []
    /// Whether the server has begun to stop.
    public private(set) var isDraining = false
    private var whenDrained: (() -> Void)?

    private(set) lazy var accounts = Accounts(server: self, pool: pool)
    private(set) lazy var reader = Reader(server: self, pool: pool)
    private(set) lazy var importer = Importer(server: self, pool: importPool)

    /// Prepares a server; nothing is opened yet.
    ///
    /// - Parameters:
    ///   - configuration: what an operator has chosen.
    ///   - epoch: the epoch of the database, read beforehand.
    ///   - loop: the loop that everything is on.
    ///   - log: takes one line an event.
    ///   - tls: the certificate; nil for plain TCP.
    public init(
        configuration: ServerConfiguration, epoch: UUID, loop: EventLoop, log: Log, tls: ServerTLS? = nil
    ) throws(DatabaseError) {
        self.tls = tls
        addressLimits = AddressLimits(configuration.limits, at: loop.now)
        deviceChangeLimits = DeviceChangeLimits(configuration.limits, at: loop.now)
        shortWaits = ShortWaits(loop: loop)
        self.configuration = configuration
        self.loop = loop
        self.log = log
        let limits = configuration.limits
        description = Self.describe(configuration, epoch)
        laneMap = LaneMap(count: limits.lanes)
        let metrics = Metrics()
        self.metrics = metrics
        let links = LinkMaker(
            database: configuration.database, loop: loop, log: log, metrics: metrics,
            silenceLimit: limits.requestTimeout, setup: configuration.sessionSetup)
        pool = DatabasePool(
            loop: loop,
            links: try links.make("reader", count: limits.readers, sessionSettings: DatabasePool.sessionSettings),
            timeout: limits.requestTimeout, log: log)
        // The end of a great import takes its time, and so does counting what there is of a player who has much: nobody else
        // waits for them. Their connections are opened by the first.
        let patientLinks = LinkMaker(
            database: configuration.database, loop: loop, log: log, metrics: metrics, silenceLimit: .seconds(900),
            setup: configuration.sessionSetup)
        importPool = DatabasePool(
            loop: loop, links: try patientLinks.make("importer", count: 1), timeout: limits.requestTimeout, log: log)
        usagePool = DatabasePool(
            loop: loop,
            links: try patientLinks.make("usage", count: 1, sessionSettings: DatabasePool.sessionSettings),
            timeout: limits.requestTimeout, log: log)
        // A notification is a hint: it may be lost with the machine, and need not wait for the disk.
        feedLink = try links.make(
            "changes", sessionSettings: ["synchronous_commit": "off"], setup: ChangeFeed.setup)
        for link in try links.make("lane", count: limits.lanes, sessionSettings: ["synchronous_commit": "on"]) {
            lanes.append(Lane(loop: loop, link: link, limits: limits, owner: self))
        }
    }

    /// The port that clients connect to, once the server has started.
    public var port: Int { listener.map { Int($0.port) } ?? 0 }

    /// The port of `/metrics`, once the server has started; nil where there is none.
    public var metricsPort: Int? { responder.map { Int($0.port) } }

    var sessionCount: Int { sessions.count }

    /// Whether a connection for requests is there.
    var isDatabaseReady: Bool { pool.isReady }

    /// Opens the ports and the database connections.
    public func start() throws(EventLoopError) {
        // The ports first: where one is taken, nothing else was begun. Nobody is accepted before the loop runs.
        var options = Listener.Options()
        options.backlog = 4096
        let (host, port) = (configuration.host, configuration.port)
        do throws(EventLoopError) {
            listener = try Listener(on: loop, host: host, port: UInt16(port), options: options) { [weak self] socket in
                self?.accepted(socket)
            }
        } catch {
            throw error.listening(on: host, port)
        }
        if let metrics = configuration.metrics {
            do throws(EventLoopError) {
                responder = try openMonitoring(host: metrics.host, port: metrics.port)
            } catch {
                throw error.listening(on: metrics.host, metrics.port)
            }
        }
        pool.start()
        for lane in lanes { lane.start() }
        sessionEnds = SessionEnds(server: self, link: feedLink, pool: pool)
        feed = ChangeFeed(server: self, link: feedLink)
        certificateTimer = tls.map { watchCertificate($0) }
        sweepTimer = EventLoop.Timer(on: loop, after: sweepInterval, every: sweepInterval) { [weak self] in
            self?.sweepSessions()
        }
        listener?.failed = { [log] error in log(.warning, "accept-failed", ["error": error]) }
    }

    /// Stops taking connections and commands, answers what was accepted, then calls back; at most the drain timeout.
    public func drain(then finished: @escaping () -> Void) {
        guard !isDraining else { return }
        isDraining = true
        whenDrained = finished
        listener?.close()
        listener = nil
        prefaces = [:]
        for session in sessions.values { session.drain(.shuttingDown()) }
        drainTimers = [
            EventLoop.Timer(on: loop, after: configuration.limits.drainTimeout) { [weak self] in
                guard let self else { return }
                log(.warning, "drain-timed-out", ["sessions": sessions.count, "pushes": pushesUnderWay])
                finishDrain()
            }
        ]
        checkDrained()
    }

    // MARK: For sessions

    func push(_ push: Push, of player: PlayerID, device: DeviceID, _ request: RequestID, _ origin: ClientSession) {
        let pending = PendingPush(
            push: push, saved: push.saved ?? Clock.now(), player: player, device: device,
            verifiedUntil: origin.deviceVerifiedUntil, request: request, origin: origin,
            deadline: loop.now + configuration.limits.requestTimeout)
        guard pendingBytes + pending.bytes <= configuration.limits.maxPendingBytes, !importer.isFinishing(player) else {
            return origin.pushFinished(request, .failure(.busy()))
        }
        let (now, peer, size) = (loop.now, origin.connection.peer, push.state?.count ?? 0)
        if let refusal = addressLimits.refusal(ofPushWith: size, from: peer, at: now) {
            metrics.limitedPushes += 1
            return origin.pushRefused(request, refusal)
        }
        let verdict = playerLimits.verdict(on: push, of: player)
        if case .refused(let refusal) = verdict {
            metrics.limitedPushes += 1
            return origin.pushRefused(request, refusal)
        }
        addressLimits.took(pushes: 1, bytes: size, from: peer, at: now)
        pendingBytes += pending.bytes
        guard case .takenIfGameIsThere = verdict else { return lanes[laneMap.lane(of: player)].add(pending) }
        // What the peer sends behind it waits, so that its pushes stay in their order.
        origin.waitForLookUp()
        playerLimits.lookForGame(push.game, of: player) { [self] refusal in
            if let refusal {
                metrics.limitedPushes += 1
                pendingBytes -= pending.bytes
                origin.pushFinished(request, .failure(refusal))
            } else {
                lanes[laneMap.lane(of: player)].add(pending)
            }
            origin.lookUpFinished()
        }
    }

    func takeEffects() -> Session.Effects { spareEffects.popLast() ?? Session.Effects() }

    func giveBack(_ effects: consuming Session.Effects) {
        guard spareEffects.count < 4, effects.output.capacity <= 65_536 else { return }
        effects.removeAll()
        spareEffects.append(effects)
    }

    func sessionEnded(_ session: ClientSession) {
        sessions[ObjectIdentifier(session)] = nil
        if isDraining { checkDrained() }
    }

    // MARK: For the change feed

    /// Tells watchers of players that changed, here or at another daemon.
    func announce(_ player: PlayerID, revision: Revision) {
        for watcher in watchers.sessions(of: player) {
            metrics.notices += 1
            watcher.changed(upTo: revision)
        }
    }

    /// A history became a player's.
    func imported(_ player: PlayerID, versions: Int64, revision: Revision) {
        metrics.imports += 1
        log(.info, "imported", ["player": player, "versions": versions, "revision": revision])
        announce(player, revision: revision)
        feed?.publish([(player, revision)])
    }

    /// The database told its epoch, at the start and after every reconnect.
    func epochRead(_ epoch: UUID) {
        guard epoch != description.epoch else { return }
        log(.warning, "epoch-changed", ["epoch": epoch.uuidString.lowercased(), "sessions": sessions.count])
        description = Self.describe(configuration, epoch)
        for session in sessions.values { session.hangUp(.epochChanged) }
    }

    // MARK: Private

    /// Begins with a client that was let in.
    func begin(_ session: ClientSession) {
        sessions[ObjectIdentifier(session)] = session
        session.open()
    }

    /// The clients that are there.
    var allSessions: some Sequence<ClientSession> { sessions.values }

    /// Tells a connection over the limit so. With TLS that takes a handshake, which is given to a few at a time.
    func refuse(_ connection: Connection, _ reason: WireError) {
        metrics.refusedConnections += 1
        if tls != nil {
            guard strangers < Stranger.limit else { return connection.close() }
            strangers += 1
            connection.start(delegate: Stranger { [weak self] in self?.strangers -= 1 })
        }
        var bytes: [UInt8] = []
        Reply.bye(reason).print(into: &bytes)
        connection.write(bytes)
        connection.closeAfterFlush()
    }

    /// Hears a connection that is told to come again.
    private final class Stranger: ConnectionDelegate {
        static let limit = 64
        private let gone: () -> Void

        init(gone: @escaping () -> Void) { self.gone = gone }

        func lineReceived(_ line: Span<UInt8>, on connection: Connection) {}
        func lineTooLong(on connection: Connection) {}
        func outputDrained(on connection: Connection) {}
        func inputEnded(on connection: Connection, unterminatedBytes: Int) {}
        func ended(_ reason: Connection.EndReason, on connection: Connection) { gone() }
    }

    /// Pushes that were accepted and not answered.
    var pushesUnderWay: Int { lanes.reduce(0) { $0 + $1.count } }

    private func checkDrained() {
        if sessions.isEmpty, pushesUnderWay == 0 { finishDrain() }
    }

    private func finishDrain() {
        guard let finished = whenDrained else { return }
        whenDrained = nil
        drainTimers = []
        finished()
    }

    private static func describe(_ configuration: ServerConfiguration, _ epoch: UUID) -> ServerDescription {
        let limits = configuration.limits
        return ServerDescription(
            version: configuration.version, epoch: epoch,
            limits: Limits(
                maxLineBytes: limits.maxLineBytes, maxStateBytes: max(1, limits.maxLineBytes - 1024),
                maxPipelinedPushes: limits.maxPipelinedPushes, maxPageSize: limits.maxPageRows))
    }
}

extension EventLoopError {
    /// The same failure with the address that it is about.
    fileprivate func listening(on host: String, _ port: Int) -> EventLoopError {
        EventLoopError(call: "listen on \(host):\(port)", number: number, message: message)
    }
}

extension SyncServer: Lane.Owner {
    func laneCommitted(_ batch: [PendingPush], _ answers: [PushResult], took: Duration) {
        metrics.batches += 1
        metrics.batchRows += batch.count
        metrics.batchSeconds += took / .seconds(1)
        var changes: [(player: PlayerID, revision: Revision)] = []
        changes.reserveCapacity(batch.count)
        var advanced = 0  // by far the most: counted apart
        for (pending, answer) in zip(batch, answers) {
            pendingBytes -= pending.bytes
            guard case .success(let receipt) = answer else {
                metrics.refusedPushes += 1
                continue
            }
            if receipt.outcome == .advanced { advanced += 1 } else { metrics.pushes[receipt.outcome, default: 0] += 1 }
            guard receipt.outcome != .repeated else { continue }
            // The batch is sorted by player, and a player's revisions rise in it.
            if changes.last?.player == pending.player {
                changes[changes.count - 1].revision = receipt.revision
            } else {
                changes.append((pending.player, receipt.revision))
            }
        }
        metrics.pushes[.advanced, default: 0] += advanced
        for change in changes { announce(change.player, revision: change.revision) }
        feed?.publish(changes)
        if isDraining { checkDrained() }
    }

    func laneRetries(_ error: DatabaseError) {
        metrics.batchRetries += 1
        log(.warning, "batch-retried", ["error": error])
    }

    func laneGaveUp(_ push: PendingPush, _ error: DatabaseError?) {
        pendingBytes -= push.bytes
        metrics.refusedPushes += 1
        guard let error else { return }
        log(.error, "push-failed", ["player": push.player, "game": push.push.game, "error": error])
    }
}
