import EventLoop
import Wire

/// One client: its connection, its session, and the way between both and the server's parts.
final class ClientSession {
    // The server keeps its sessions and outlives them.
    unowned let server: SyncServer
    let connection: Connection
    private let since: ContinuousClock.Instant

    // There are as many of these as clients, most of them idle: what is small stands where the field before it leaves room,
    // and what few need is an object of its own.

    /// Until when the signed-in device counts as valid without being looked up; nil before its first push.
    private(set) var deviceVerifiedUntil: ContinuousClock.Instant?
    /// The player whose connections, and watchers, this one counts with.
    private var countedPlayer: PlayerID?
    /// How many tokens and codes were wrong.
    var wrongTries: UInt32 = 0
    /// How many lines have come.
    private(set) var lines: UInt32 = 0
    /// How often the device's token had been replaced when this session signed in.
    private(set) var tokenGeneration: Int32 = 0
    /// A refusal that is not told yet.
    var slowRefusal: SlowRefusal?
    /// The line that was unfinished at the last look.
    private var unfinished: UnfinishedLine?
    /// Output that the peer has not read, as counted against the limit of memory.
    private var countedOutput = 0
    private(set) var session: Session
    /// Whether no lines are read for a while, because the peer sends more than it may.
    var isHeldBack = false
    /// Whether no lines are read until it is known whether a push may be taken.
    var isLookingUp = false
    /// Whether the server's table of watchers holds this session.
    private var isWatching = false
    /// Whether it did before the `WATCH` that is under way, which leaves it so if it fails.
    private var watchWasOn = false

    /// A line that had not ended at a look.
    private final class UnfinishedLine {
        /// Its number.
        let line: UInt32
        /// When it was seen first.
        let since: ContinuousClock.Instant
        /// What had come by then, in bytes.
        let received: Int

        init(line: UInt32, since: ContinuousClock.Instant, received: Int) {
            (self.line, self.since, self.received) = (line, since, received)
        }
    }

    init(server: SyncServer, connection: Connection) {
        self.server = server
        self.connection = connection
        since = server.loop.now
        // Nobody knows how many strangers there will be: players do not wait for them.
        connection.yieldsToOthers = true
        session = Session(server: server.description)
    }

    /// The player and the device that are signed in.
    var identity: (player: PlayerID, device: DeviceID)? {
        if case .ready(let player, let device) = session.state { (player, device) } else { nil }
    }

    /// Greets, with TLS once that is agreed on; called once.
    func open() {
        connection.start(delegate: self)
        if !connection.isHandshaking { greet() }
    }

    private func greet() {
        act { $0.connectionOpened(at: Clock.now(), into: &$1) }
    }

    /// Tells a watcher that there is something up to a revision.
    func changed(upTo revision: Revision) {
        act { $0.changed(upTo: revision, into: &$1) }
    }

    /// Lets the client finish what it began, then says why and closes.
    func drain(_ reason: WireError) {
        tellSlowRefusal()
        act { $0.drain(reason, into: &$1) }
        // One that is closing for another reason waits no longer either.
        if session.state == .closed { connection.closeAfterFlush(untilSilentFor: Self.silenceAtDrain) }
    }

    /// Says why and closes; results that are under way are forgotten.
    func hangUp(_ reason: WireError) {
        act { $0.hangUp(reason, into: &$1) }
    }

    // MARK: Time

    /// Bytes of a line that has not ended.
    var unfinishedBytes: Int { connection.unfinishedBytes }

    /// Ends the session if it has taken too long to sign in, or a line to end.
    /// - Returns: the bytes of a line that has not ended.
    func sweep(at now: ContinuousClock.Instant) -> Int {
        let limits = server.configuration.limits
        // One whose refusal waits has not signed in either; one that the database looks up may be about to.
        let isStranger = session.state == .awaitingLogin || session.state == .signingIn && slowRefusal != nil
        if isStranger, now - since > limits.loginTimeout {
            tellSlowRefusal()
            hangUp(.loginTimeout)
            return 0
        }
        // A line that waits because this side does not read is not the peer's doing.
        guard connection.isInsideLine, !connection.isReadingPaused, !connection.isOutputBlocked else {
            unfinished = nil
            return connection.unfinishedBytes
        }
        if let unfinished, unfinished.line == lines {
            let progress = connection.receivedBytes &- unfinished.received
            guard now - unfinished.since <= limits.patience(forLineWith: progress) else {
                hangUp(.lineTimeout)
                return 0
            }
        } else {
            unfinished = UnfinishedLine(line: lines, since: now, received: connection.receivedBytes)
        }
        return connection.unfinishedBytes
    }

    // MARK: Results

    func signInFinished(
        _ request: RequestID, _ result: Result<SignIn, WireError>, tokenGeneration: Int32 = 0
    ) {
        switch result {
        case .success(let signIn):
            // The connection may have gone while PostgreSQL was asked.
            guard session.state == .signingIn else { return }
            guard server.playerLimits.enter(signIn.player) else {
                return act { $0.turnedAway(request, signIn, for: .tooManyConnections(of: "this player"), into: &$1) }
            }
            countedPlayer = signIn.player
            connection.yieldsToOthers = server.playerLimits.hasManyConnections(signIn.player)
            server.metrics.signIns += 1
            self.tokenGeneration = tokenGeneration
            act { $0.signedIn(request, as: signIn, into: &$1) }
        case .failure(let error): signInFailed(request, error)
        }
    }

    func pairingFinished(_ request: RequestID, _ result: Result<PairingOffer, WireError>) {
        switch result {
        case .success(let offer): act { $0.pairingCodeCreated(request, offer, into: &$1) }
        case .failure(let error): act { $0.requestFailed(request, error, into: &$1) }
        }
    }

    func accountChangeFinished(_ request: RequestID, _ result: Result<Reply, WireError>) {
        switch result {
        case .success(let answer): act { $0.accountChanged(request, answer, into: &$1) }
        case .failure(let error): act { $0.requestFailed(request, error, into: &$1) }
        }
    }

    func readFinished(_ request: RequestID, _ result: Result<[UInt8], WireError>) {
        switch result {
        case .success(let lines): act { $0.readFinished(request, lines: lines, into: &$1) }
        case .failure(let error): act { $0.requestFailed(request, error, into: &$1) }
        }
    }

    func importFinished(_ request: RequestID, _ result: Result<Reply, WireError>) {
        switch result {
        case .success(let answer): act { $0.importAnswered(request, answer, into: &$1) }
        case .failure(let error): act { $0.requestFailed(request, error, into: &$1) }
        }
    }

    func watchFinished(_ request: RequestID, since: Revision, _ result: Result<Revision, WireError>) {
        switch result {
        case .success(let revision) where since > revision:
            if !watchWasOn { endWatch() }
            act { $0.requestFailed(request, .cursorAhead(revision: revision), into: &$1) }
        case .success(let revision): act { $0.watchEstablished(request, revision: revision, into: &$1) }
        case .failure(let error):
            if !watchWasOn { endWatch() }
            act { $0.requestFailed(request, error, into: &$1) }
        }
    }

    // MARK: The session's machine

    /// Hands an event to the session and carries out what follows.
    func act(_ event: (inout Session, inout Session.Effects) -> Void) {
        var effects = server.takeEffects()
        event(&session, &effects)
        carryOut(&effects)
    }

    private func carryOut(_ effects: inout Session.Effects) {
        server.metrics.errors += effects.errorCount
        if !effects.output.isEmpty {
            connection.write(effects.output)
            if connection.isOutputBlocked {
                countOutput(connection.pendingOutputBytes)
                session.outputBlocked(into: &effects)
            }
        }
        for action in effects.actions { carryOut(action) }
        server.giveBack(effects)
    }

    private func carryOut(_ action: Session.Action) {
        switch action {
        case .signIn(let token, let request):
            guard isAdmitted(request, isNew: false) else { return }
            server.accounts.signIn(token, request, self)
        case .register(let device, let invite, let request):
            guard isAdmitted(request, isNew: true) else { return }
            server.accounts.register(device: device, invite: invite, request, self)
        case .createPairingCode(let player, let device, let request):
            guard mayChange(.pairingCode, of: player, request) else { return }
            server.accounts.createPairingCode(of: player, device: device, request, self)
        case .changeAccount(let change, let player, let device, let request):
            guard mayChange(.init(change), of: player, request) else { return }
            server.accounts.change(change, of: player, by: device, request, self)
        case .redeem(let code, let device, let request):
            guard isAdmitted(request, isNew: false) else { return }
            server.accounts.redeem(code, device: device, request, self)
        case .push(let push, let player, let device, let request):
            server.push(push, of: player, device: device, request, self)
        case .read(let read, let player, let request): server.reader.read(read, of: player, request, self)
        case .importing(let part, let player, _, let request): server.importer.take(part, of: player, request, self)
        case .watch(let since, let player, let request):
            // The subscription comes first: what is pushed while the counter is read is told, too.
            watchWasOn = isWatching
            beginWatch(player)
            server.reader.lastRevision(of: player, since: since, request, self)
        case .unwatch: endWatch()
        case .pauseReading: connection.pauseReading()
        case .resumeReading: resumeReading()
        case .close:
            endWatch()
            connection.closeAfterFlush(untilSilentFor: server.isDraining ? Self.silenceAtDrain : nil)
        }
    }

    /// A daemon that stops does not wait for clients who have their goodbye and say nothing.
    private static let silenceAtDrain = Duration.milliseconds(200)

    private func beginWatch(_ player: PlayerID) {
        guard !isWatching else { return }
        isWatching = true
        server.watchers.add(self, of: player)
    }

    private func endWatch() {
        guard isWatching, let player = countedPlayer else { return }
        isWatching = false
        server.watchers.remove(self, of: player)
    }

    /// Counts what a peer that does not read leaves in memory.
    private func countOutput(_ bytes: Int) {
        server.pendingBytes += bytes - countedOutput
        countedOutput = bytes
    }
}

extension ClientSession: ConnectionDelegate {
    func handshakeFinished(on connection: Connection) {
        server.metrics.handshakes += 1
        greet()
    }

    func lineReceived(_ line: Span<UInt8>, on connection: Connection) {
        server.metrics.commands += 1
        lines &+= 1
        var effects = server.takeEffects()
        session.lineReceived(line, at: Clock.now(), into: &effects)
        carryOut(&effects)
        heard()
    }

    func lineTooLong(on connection: Connection) {
        // What follows up to the line's end counts as a line of its own.
        lines &+= 1
        let limit = connection.maxLineBytes
        act { $0.lineTooLong(limit: limit, into: &$1) }
        heard()
    }

    func outputDrained(on connection: Connection) {
        countOutput(0)
        act { $0.outputDrained(into: &$1) }
    }

    func inputEnded(on connection: Connection, unterminatedBytes: Int) {
        act { $0.inputEnded(into: &$1) }
    }

    func idleTimeoutPassed(on connection: Connection) {
        hangUp(.idleTimeout)
    }

    func ended(_ reason: Connection.EndReason, on connection: Connection) {
        if case .insecure(let error) = reason {
            server.metrics.tlsFailures[error.kind.label, default: 0] += 1
            server.log(.debug, "tls-failed", ["peer": connection.peer, "error": error])
        }
        session.connectionLost()
        endWatch()
        countOutput(0)
        server.importer.sessionEnded(self)
        server.addressLimits.leave(connection.peer)
        if let countedPlayer { server.playerLimits.leave(countedPlayer) }
        countedPlayer = nil
        server.sessionEnded(self)
    }
}

extension ClientSession: PushOrigin {
    /// How long a look-up of the device holds. A device that is revoked may push for so long.
    private static let verificationPeriod = Duration.milliseconds(800)

    func deviceVerified(at moment: ContinuousClock.Instant) {
        deviceVerifiedUntil = moment + Self.verificationPeriod
    }

    func pushFinished(_ request: RequestID, _ result: PushResult) {
        act { $0.pushFinished(request, result, into: &$1) }
        if case .failure(let error) = result, error.code == .deviceRevoked { hangUp(error) }
    }
}
