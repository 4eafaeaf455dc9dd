import Foundation
import Wire

/// The sync engine without I/O, clock and tasks: events in, actions out.
///
/// Each `mutating func` is an event; it appends to ``actions``, which the shell carries out in their order and answers
/// where an action says so. Afterwards the shell sets one timer to ``deadline``. Times are arguments, and the random numbers
/// come from a seed.
///
/// One connection goes through: greeting, login, ``SyncStorage/meet(_:epoch:clockOffset:offersRefused:)`` (a new epoch starts over there),
/// what was under way once more, pull to the end, watch; then pushes, pulls and heartbeats as they come.
struct SyncCore: Sendable {
    /// Where the talk with the server is.
    enum Phase: Hashable, Sendable {
        /// Not started, or stopped.
        case idle
        /// The server does not know the token, or another player's games are here; over until started again.
        case signedOut
        /// Offline; the next try is at a time.
        case waiting(until: ContinuousClock.Instant)
        /// Connected, or about to be; the greeting is awaited.
        case greeting
        /// The login is under way.
        case signingIn
        /// The storage takes note of the login.
        case meeting
        /// Signed in.
        case ready
    }

    /// By which the device signs in.
    var token: Token
    /// Whether another process may have replaced the token: then it is looked up before the device counts as signed out.
    var canRenewToken = false
    let settings: SyncSettings
    /// What the shell has to do; it takes them out.
    var actions: [Action] = []
    var phase = Phase.idle
    /// Where the storage stands.
    var point = SyncPoint()
    /// The last trouble of the connection's; nil once all is well.
    var trouble: ClientError?
    /// The last trouble of the storage's; nil once all is well.
    var storageTrouble: String?
    /// Why the device is signed out.
    var signOutReason: SyncSignOut?
    /// What the last server that let this device in takes. One that takes something else, and the first one after a start,
    /// is offered again what was refused.
    var limits: Limits?
    var status = SyncStatus.offline

    var session: ClientSession?
    var requests: [ClientSession.RequestID: Request] = [:]
    var round = Round()
    var backoff: Backoff
    /// The pause after the storage failed: what the server answers meanwhile does not shorten it.
    var storageBackoff: Backoff
    var random: SplitMix64
    var waiters: [WaiterID: Int] = [:]
    /// How many pulls were begun.
    var pullsBegun = 0
    /// How many actions for the storage have no answer. Until there is none, ``point`` is behind, and nothing is decided by
    /// it.
    var storing = 0

    /// Begins idle.
    /// - Parameter seed: of the random numbers.
    init(token: Token, settings: SyncSettings = SyncSettings(), seed: UInt64) {
        self.token = token
        self.settings = settings
        backoff = settings.backoff
        storageBackoff = settings.backoff
        random = SplitMix64(seed: seed)
    }

    /// How much a server takes.
    struct Limits: Hashable, Sendable {
        var stateBytes: Int
        var lineBytes: Int

        init(_ greeting: Greeting) { (stateBytes, lineBytes) = (greeting.maxStateBytes, greeting.maxLineBytes) }
    }

    /// What keeps the engine from its work, for people; nil: nothing.
    var problem: SyncError? {
        if phase == .signedOut, signOutReason == .otherPlayer { return .otherPlayer }
        return storageTrouble.map { .storage($0) } ?? trouble.map { SyncError($0) }
    }

    /// What belongs to one connection, once it is signed in.
    struct Round: Hashable, Sendable {
        /// Nothing is asked of the server before this time.
        var pausedUntil: ContinuousClock.Instant?
        /// When the server was last heard, or asked for something.
        var quietSince: ContinuousClock.Instant?
        /// What was under way is to be sent again.
        var mustResend = false
        /// A pull came to the end.
        var hasPulled = false
        /// A pull is wanted, whatever is known.
        var mustPull = false
        var isPulling = false
        var isWatching = false
        var hasAskedToWatch = false
        var errands = 0
        var pushes = 0
        var pushBytes = 0
        /// The server's clock minus this one, in microseconds.
        var clockOffset: Int64 = 0
        /// The last revision that the server was heard to have.
        var lastRevision: Revision = 0
        /// For the progress: acknowledged, and where the cursor was, since all was well.
        var pushed = 0
        var pulledFrom: Revision = 0
        /// Of this device's own versions, those that the cursor has not passed, and how many it has: they are no news.
        var ownAhead: Set<Revision> = []
        var ownPassed = 0
        /// What the app asked while the connection was made.
        var questions: [Question] = []
    }

    /// Something that the app asks the server.
    struct Question: Hashable, Sendable {
        var command: Command
        var id: QueryID
    }

    /// What a command was sent for.
    enum Request: Sendable {
        case login
        case push(Push, bytes: Int)
        case pull(since: Revision, number: Int)
        case watch
        case heartbeat
        case errand(SyncErrand, before: Revision?)
        case query(QueryID)
    }

    /// Names a question of the app's.
    typealias QueryID = Int
    /// Names somebody who waits until all is synced.
    typealias WaiterID = Int

    /// When to tell ``timePassed(to:)``; nil: never.
    var deadline: ContinuousClock.Instant? {
        switch phase {
        case .idle, .signedOut: return nil
        case .waiting(let time): return time
        case .greeting, .signingIn, .meeting: return session?.deadline
        case .ready:
            let times = [
                session?.deadline, round.pausedUntil,
                requests.isEmpty ? round.quietSince.map { $0 + settings.heartbeat } : nil,
            ]
            return times.compactMap { $0 }.min()
        }
    }

    // MARK: The app

    /// Begins, or begins again after ``stop(at:)`` or a sign-out.
    mutating func start(_ point: SyncPoint, at now: SyncMoment) {
        guard phase == .idle || phase == .signedOut else { return }
        self.point = point
        (storageTrouble, signOutReason, limits) = (nil, nil, nil)
        backoff.reset()
        storageBackoff.reset()
        connect(at: now)
    }

    /// Ends the connection and does nothing more. What is under way is sent again after the next start.
    mutating func stop(at now: SyncMoment) {
        dropConnection()
        phase = .idle
        failWaiters(.stopped)
        publish()
    }

    /// Whether ``savedLocally(_:at:)`` would change anything now. While the storage is at work its answer brings a newer point,
    /// and a connection begins with one: offline, saves cost the engine nothing.
    var listensToSaves: Bool { phase == .ready && storing == 0 }

    /// The app saved something.
    mutating func savedLocally(_ point: SyncPoint, at now: SyncMoment) {
        guard storing == 0 else { return }
        self.point = point
        advance(at: now)
    }

    /// The network is back, or the player does not want to wait.
    mutating func retryNow(at now: SyncMoment) {
        switch phase {
        case .waiting:
            backoff.reset()
            storageBackoff.reset()
            connect(at: now)
        case .ready where round.pausedUntil != nil: resume(at: now)
        case .ready where requests.isEmpty:
            // The connection may be dead without our knowing.
            send(.ping, .heartbeat, patience: settings.patience / 2, at: now)
        case .idle, .signedOut, .greeting, .signingIn, .meeting, .ready: break
        }
    }

    /// Somebody waits until everything saved up to now is acknowledged and everything on the server is here.
    mutating func wait(_ id: WaiterID, at now: SyncMoment) {
        switch phase {
        case .idle: return actions.append(.finishWaiter(id, .stopped))
        case .signedOut: return actions.append(.finishWaiter(id, signOutFailure))
        case .waiting, .greeting, .signingIn, .meeting, .ready: break
        }
        waiters[id] = pullsBegun + 1
        round.mustPull = true
        advance(at: now)
    }

    /// Somebody does not wait any more.
    mutating func cancelWait(_ id: WaiterID) {
        waiters[id] = nil
    }

    /// Asks the server something for the app.
    mutating func ask(_ command: Command, for id: QueryID, at now: SyncMoment) {
        switch phase {
        case .ready: send(command, .query(id), patience: settings.patience, at: now)
        // A connection is being made, and has a deadline: an app may ask as soon as it has an engine.
        case .greeting, .signingIn, .meeting: round.questions.append(Question(command: command, id: id))
        case .idle, .waiting, .signedOut:
            actions.append(.answer(id, .failure(trouble ?? .unreachable("there is no connection now"))))
        }
    }

    // MARK: The connection

    /// A line came.
    mutating func lineReceived(_ line: Span<UInt8>, at now: SyncMoment) {
        let event = session?.lineReceived(line, at: now.instant)
        if let failure = session?.failure { return connectionFailed(failure, at: now) }
        switch event {
        case .greeted(let greeting): greeted(greeting, at: now)
        case .answered(let id, let lines): answered(id, lines, at: now)
        case .refused(let id, let error): refused(id, error, at: now)
        case .changed(let revision):
            round.lastRevision = max(round.lastRevision, revision)
            advance(at: now)
        case nil: break
        }
    }

    /// A line came that was too long; it was dropped.
    mutating func lineTooLong(at now: SyncMoment) {
        session?.lineTooLong()
        if let failure = session?.failure { connectionFailed(failure, at: now) }
    }

    /// The connection is over, or did not come about.
    mutating func connectionEnded(_ end: TransportEnd, at now: SyncMoment) {
        session?.ended(end)
        if let failure = session?.failure { connectionFailed(failure, at: now) }
    }

    /// Time went by.
    /// - Parameter movedBytes: how many bytes moved on the connection so far.
    mutating func timePassed(to now: SyncMoment, movedBytes: Int = 0) {
        switch phase {
        case .idle, .signedOut: return
        case .waiting(let time):
            if now.instant >= time { connect(at: now) }
        case .greeting, .signingIn, .meeting, .ready:
            session?.timePassed(to: now.instant, movedBytes: movedBytes)
            if let failure = session?.failure { return connectionFailed(failure, at: now) }
            guard phase == .ready else { return }
            if let pause = round.pausedUntil, now.instant >= pause { return resume(at: now) }
            // Elsewhere the silence is the answer's deadline.
            if requests.isEmpty, let quiet = round.quietSince, now.instant >= quiet + settings.heartbeat {
                send(.ping, .heartbeat, patience: settings.patience, at: now)
            }
        }
    }

    // MARK: The storage

    /// The answer to an action that changes what is stored.
    mutating func stored(_ point: SyncPoint, at now: SyncMoment) {
        storing -= 1
        self.point = point
        if !round.ownAhead.isEmpty {
            let ahead = round.ownAhead.filter { $0 > point.cursor }
            round.ownPassed += round.ownAhead.count - ahead.count
            round.ownAhead = ahead
        }
        advance(at: now)
    }

    /// The answer to ``Action/meet(_:epoch:clockOffset:offersRefused:)``.
    mutating func met(_ result: Result<SyncPoint, SyncStorageError>, at now: SyncMoment) {
        storing -= 1
        guard phase == .meeting else { return }
        switch result {
        case .success(let point):
            self.point = point
            limits = session?.greeting.map(Limits.init)
            phase = .ready
            round.mustResend = true
            round.pulledFrom = point.cursor
            round.quietSince = now.instant
            let questions = round.questions
            round.questions = []
            for question in questions { ask(question.command, for: question.id, at: now) }
            advance(at: now)
        case .failure(.otherPlayer):
            signOut(.otherPlayer)
        }
    }

    /// The answer to ``Action/readUnanswered``: to be sent again, as they were.
    mutating func unanswered(_ pushes: [Push], at now: SyncMoment) {
        storing -= 1
        guard phase == .ready else { return }
        let underWay = Set(requests.values.compactMap(\.pushedGame))
        for push in pushes where !underWay.contains(push.game) { send(push, at: now) }
        advance(at: now)
    }

    /// The answer to ``Action/takeOutgoing(limit:bytes:)``.
    mutating func taken(_ pushes: [Push], _ point: SyncPoint, at now: SyncMoment) {
        storing -= 1
        self.point = point
        guard phase == .ready else { return }
        // Somebody else took them; not to be asked for again and again.
        if pushes.isEmpty { self.point.waiting = 0 }
        for push in pushes { send(push, at: now) }
        advance(at: now)
    }

    /// The answer to ``Action/readErrands``.
    mutating func errandsRead(_ errands: [SyncErrand], at now: SyncMoment) {
        storing -= 1
        guard phase == .ready else { return }
        for errand in errands { send(errand, before: nil, at: now) }
        advance(at: now)
    }

    /// The storage could not do what it was asked to: the disk is full, or another process holds it. What was not written is
    /// asked for again on another connection; who waits is told. The answer to any of the storage's actions.
    mutating func storageFailed(_ reason: String, at now: SyncMoment) {
        storing -= 1
        guard phase != .idle, phase != .signedOut else { return }
        storageTrouble = reason
        failWaiters(.storage(reason))
        dropConnection()
        phase = .waiting(until: now.instant + storageBackoff.next(atLeast: nil, using: &random))
        publish()
    }
}
