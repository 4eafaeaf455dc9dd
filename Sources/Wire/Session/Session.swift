/// The server's side of one connection, without I/O: events in, bytes and actions out.
///
/// The shell hands over each line, and each result of an action, and carries out what is appended to the `Effects`. One
/// `Effects` may collect from many events before it is carried out; take it out of the way first (a shell may be entered
/// again while it acts).
///
/// - Replies come in the order of the commands. Pushes of a connection overlap one another; every other command that
///   needs the database runs alone, so that a pull sees the pushes before it.
/// - At most one parsed command is held until it can start; the session then pauses reading.
/// - A result for an unknown, answered or forgotten request is ignored.
///
/// An idle session owns no memory beyond its own bytes. Source: Documentation/protocol.md.
public struct Session: Sendable {
    /// Where the connection stands.
    public private(set) var state = State.awaitingLogin
    /// Whether the shell must hand over no more lines for now.
    public private(set) var isPaused = false

    private let server: ServerDescription
    private var replies = ReplyQueue()
    private var held = Held.nothing
    private var ending = Ending.open
    private var watch = Watch()
    /// Whether a request that runs alone is under way.
    private var isRunningAlone = false
    private var outputIsBlocked = false
    /// The time of the last line.
    private var now = Timestamp.earliest

    private indirect enum Held: Sendable {
        case nothing
        case command(Command)
    }

    /// Whether the connection ends once everything accepted is answered, and with which words.
    private indirect enum Ending: Sendable {
        case open
        case afterReplies
        case afterRepliesWithBye(WireError)

        var isOpen: Bool {
            if case .open = self { true } else { false }
        }
    }

    private struct Watch: Sendable {
        var isOn = false
        /// Up to where the peer knows that there is something.
        var told: Revision = 0
        /// Up to where there is something.
        var latest: Revision = 0
        /// The cursor of the `WATCH` that is under way.
        var since: Revision = 0
    }

    /// Creates the session of a new connection.
    public init(server: ServerDescription) {
        self.server = server
    }

    /// Whether anything that was accepted has no answer yet.
    public var hasWorkInFlight: Bool {
        if case .command = held { return true }
        return !replies.isEmpty
    }

    // MARK: The peer

    /// The connection is there: greets.
    public mutating func connectionOpened(at now: Timestamp, into effects: inout Effects) {
        guard state != .closed else { return }
        server.greeting(at: now).print(into: &effects.output)
    }

    /// A line came, without its line feed.
    ///
    /// A line that comes while the session is paused, which the shell must not let happen, ends the connection.
    public mutating func lineReceived(_ line: Span<UInt8>, at now: Timestamp, into effects: inout Effects) {
        guard canReceive(into: &effects) else { return }
        self.now = now
        do throws(WireError) {
            guard let command = try server.parser.parse(line) else { return }
            begin(command, &effects)
        } catch {
            reply(error, &effects)
        }
        settle(&effects)
    }

    /// A line came that was longer than `maxLineBytes`; its bytes are gone.
    public mutating func lineTooLong(into effects: inout Effects) {
        guard canReceive(into: &effects) else { return }
        reply(.lineTooLong(limit: server.limits.maxLineBytes), &effects)
        settle(&effects)
    }

    /// The peer sends no more, and all its lines were handed over: what is accepted is answered, then the session closes.
    public mutating func inputEnded(into effects: inout Effects) {
        guard state != .closed, ending.isOpen else { return }
        ending = .afterReplies
        settle(&effects)
    }

    /// Output has piled up: the peer does not read.
    public mutating func outputBlocked(into effects: inout Effects) {
        outputIsBlocked = true
        settle(&effects)
    }

    /// The output is gone.
    public mutating func outputDrained(into effects: inout Effects) {
        outputIsBlocked = false
        settle(&effects)
    }

    // MARK: Results

    /// A push was stored or refused.
    public mutating func pushFinished(
        _ request: RequestID, _ result: Result<PushReceipt, WireError>, into effects: inout Effects
    ) {
        guard finish(request, .push, &effects) else { return }
        switch result {
        case .success(let receipt):
            // A revision that the peer learns here, and next to what it knows, needs no notice.
            if receipt.revision == watch.told &+ 1 { watch.told = receipt.revision }
            replies.answer(request, to: &effects.output) { receipt.print(into: &$0) }
        case .failure(let error):
            replies.answer(request, to: &effects.output) { error.print(into: &$0) }
        }
        settle(&effects)
    }

    /// A device is signed in; a new one with its token.
    public mutating func signedIn(_ request: RequestID, as signIn: SignIn, into effects: inout Effects) {
        guard finish(request, .signIn, &effects) else { return }
        state = .ready(player: signIn.player, device: signIn.device)
        replies.answer(request, to: &effects.output) { signIn.print(into: &$0) }
        settle(&effects)
    }

    /// A pairing code was made.
    public mutating func pairingCodeCreated(
        _ request: RequestID, _ offer: PairingOffer, into effects: inout Effects
    ) {
        guard finish(request, .pairingCode, &effects) else { return }
        replies.answer(request, to: &effects.output) { offer.print(into: &$0) }
        settle(&effects)
    }

    /// A read is done; `lines` are whole lines, the last of them `END …`.
    public mutating func readFinished(_ request: RequestID, lines: [UInt8], into effects: inout Effects) {
        guard finish(request, .read, &effects) else { return }
        replies.answer(request, to: &effects.output) { $0.append(contentsOf: lines) }
        settle(&effects)
    }

    /// The subscription holds, and `revision` was the player's last when it did.
    public mutating func watchEstablished(
        _ request: RequestID, revision: Revision, into effects: inout Effects
    ) {
        guard finish(request, .watch, &effects) else { return }
        watch.isOn = true
        watch.told = watch.since
        watch.latest = max(watch.latest, revision)
        replies.answer(request, to: &effects.output) { Reply.watching(revision: revision).print(into: &$0) }
        settle(&effects)
    }

    /// A request other than a push failed.
    public mutating func requestFailed(_ request: RequestID, _ error: WireError, into effects: inout Effects) {
        guard let kind = replies.kind(of: request), finish(request, kind, &effects) else { return }
        if kind == .signIn { state = .awaitingLogin }
        replies.answer(request, to: &effects.output) { error.print(into: &$0) }
        settle(&effects)
    }

    // MARK: The server

    /// There is something up to `revision` in the player's feed.
    public mutating func changed(upTo revision: Revision, into effects: inout Effects) {
        watch.latest = max(watch.latest, revision)
        settle(&effects)
    }

    /// The server is stopping: what was started is answered, what was not is refused, then it says why and closes.
    public mutating func drain(_ reason: WireError, into effects: inout Effects) {
        guard state != .closed else { return }
        ending = .afterRepliesWithBye(reason)
        if case .command = held {
            held = .nothing
            reply(reason, &effects)
        }
        settle(&effects)
    }

    /// The connection ends at once, for a reason that the peer is told. Requests under way are forgotten.
    public mutating func hangUp(_ reason: WireError, into effects: inout Effects) {
        guard state != .closed else { return }
        reason.printBye(into: &effects.output)
        close(&effects)
    }

    /// The device was revoked: the connection ends at once.
    public mutating func revoked(into effects: inout Effects) {
        hangUp(.deviceRevoked, into: &effects)
    }

    /// The connection is gone: nothing more is sent, late results are ignored.
    public mutating func connectionLost() {
        state = .closed
        release()
    }
}

// MARK: - Commands

extension Session {
    /// Starts a command, answers it at once, or holds it. Every pair is spelled out: nothing is allowed by being forgotten.
    private mutating func begin(_ command: Command, _ effects: inout Effects) {
        switch (state, command) {
        case (.awaitingLogin, .hello), (.signingIn, .hello), (.ready, .hello):
            reply(.hello(server.greeting(at: now)), &effects)
        case (.awaitingLogin, .time), (.signingIn, .time), (.ready, .time):
            reply(.time(now), &effects)
        case (.awaitingLogin, .ping), (.signingIn, .ping), (.ready, .ping):
            reply(.done, &effects)
        case (.awaitingLogin, .help(let topic)), (.signingIn, .help(let topic)), (.ready, .help(let topic)):
            help(topic, &effects)
        case (.awaitingLogin, .quit), (.signingIn, .quit), (.ready, .quit):
            reply(.done, &effects)
            ending = .afterReplies

        case (.awaitingLogin, .register(let device)):
            let request = runAlone(.signIn)
            state = .signingIn
            effects.actions.append(.register(device: device, request))
        case (.awaitingLogin, .login(let token)):
            let request = runAlone(.signIn)
            state = .signingIn
            effects.actions.append(.signIn(token, request))
        case (.awaitingLogin, .link(let code, let device)):
            let request = runAlone(.signIn)
            state = .signingIn
            effects.actions.append(.redeem(code, device: device, request))

        case (.awaitingLogin, .pair), (.awaitingLogin, .push), (.awaitingLogin, .pull), (.awaitingLogin, .watch),
            (.awaitingLogin, .unwatch), (.awaitingLogin, .get), (.awaitingLogin, .history):
            reply(.notSignedIn(command.verb), &effects)

        case (.signingIn, .register), (.signingIn, .login), (.signingIn, .link), (.signingIn, .pair),
            (.signingIn, .push), (.signingIn, .pull), (.signingIn, .watch), (.signingIn, .unwatch),
            (.signingIn, .get), (.signingIn, .history):
            held = .command(command)

        case (.ready, .register), (.ready, .login), (.ready, .link):
            reply(.alreadySignedIn, &effects)

        case (.ready(let player, let device), .push(let push)):
            guard !isRunningAlone else { return held = .command(command) }
            effects.actions.append(.push(push, player: player, device: device, replies.wait(for: .push)))
        case (.ready, .unwatch):
            guard !isRunningAlone else { return held = .command(command) }
            if watch.isOn { effects.actions.append(.unwatch) }
            watch.isOn = false
            reply(.done, &effects)
        case (.ready(let player, let device), .pair):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            effects.actions.append(.createPairingCode(player: player, device: device, runAlone(.pairingCode)))
        case (.ready(let player, _), .watch(let since)):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            watch.since = since
            effects.actions.append(.watch(since: since, player: player, runAlone(.watch)))
        case (.ready(let player, _), .pull(let since, let limit)):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            let pull = ReadRequest.pull(since: since, limit: pageSize(limit))
            effects.actions.append(.read(pull, player: player, runAlone(.read)))
        case (.ready(let player, _), .get(let game, let revision)):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            effects.actions.append(.read(.get(game, revision: revision), player: player, runAlone(.read)))
        case (.ready(let player, _), .history(let game, let before, let limit)):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            let history = ReadRequest.history(game, before: before, limit: pageSize(limit))
            effects.actions.append(.read(history, player: player, runAlone(.read)))

        case (.closed, .hello), (.closed, .register), (.closed, .login), (.closed, .pair), (.closed, .link),
            (.closed, .push), (.closed, .pull), (.closed, .watch), (.closed, .unwatch), (.closed, .get),
            (.closed, .history), (.closed, .time), (.closed, .ping), (.closed, .help), (.closed, .quit):
            return
        }
    }

    private mutating func help(_ topic: String?, _ effects: inout Effects) {
        guard let topic else { return replies.add(to: &effects.output) { Help.printOverview(into: &$0) } }
        guard let verb = Verb(topic) else { return reply(.unknownCommand(topic), &effects) }
        replies.add(to: &effects.output) { Help.print(verb, into: &$0) }
    }

    private mutating func runAlone(_ kind: ReplyQueue.Kind) -> RequestID {
        isRunningAlone = true
        return replies.wait(for: kind)
    }

    private func pageSize(_ limit: Int?) -> Int {
        min(max(limit ?? server.limits.defaultPageSize, 1), server.limits.maxPageSize)
    }

    private mutating func reply(_ error: WireError, _ effects: inout Effects) {
        replies.add(to: &effects.output) { error.print(into: &$0) }
    }

    private mutating func reply(_ reply: Reply, _ effects: inout Effects) {
        replies.add(to: &effects.output) { reply.print(into: &$0) }
    }
}

// MARK: - After an event

extension Session {
    private mutating func canReceive(into effects: inout Effects) -> Bool {
        guard state != .closed else { return false }
        guard isPaused else { return true }
        hangUp(.internalError("a line was read while reading was paused"), into: &effects)
        return false
    }

    /// Whether a result is for a request that waits for it. A result of another kind is a mistake of the shell's, and the
    /// request's answer then says so.
    private mutating func finish(_ request: RequestID, _ kind: ReplyQueue.Kind, _ effects: inout Effects) -> Bool {
        guard let expected = replies.kind(of: request) else { return false }
        if expected != .push { isRunningAlone = false }
        guard expected != kind else { return true }
        if expected == .signIn { state = .awaitingLogin }
        replies.answer(request, to: &effects.output) { WireError.internalError().print(into: &$0) }
        settle(&effects)
        return false
    }

    /// Goes on with what an event has made possible.
    private mutating func settle(_ effects: inout Effects) {
        guard state != .closed else { return }
        if case .command(let command) = held, !outputIsBlocked {
            held = .nothing
            begin(command, &effects)
        }
        if watch.isOn, !outputIsBlocked, watch.latest > watch.told {
            watch.told = watch.latest
            Reply.changed(revision: watch.latest).print(into: &effects.output)
        }
        if !ending.isOpen, !hasWorkInFlight {
            if case .afterRepliesWithBye(let reason) = ending { reason.printBye(into: &effects.output) }
            return close(&effects)
        }
        let wantsPause = mustPause
        guard wantsPause != isPaused else { return }
        isPaused = wantsPause
        effects.actions.append(wantsPause ? .pauseReading : .resumeReading)
    }

    /// A full pipeline is let run half empty before reading goes on, so that it does not stop and go with every push.
    private var mustPause: Bool {
        if case .command = held { return true }
        let most = max(server.limits.maxPipelinedPushes, 1)
        return outputIsBlocked || !ending.isOpen || replies.count > (isPaused ? most / 2 : most - 1)
    }

    private mutating func close(_ effects: inout Effects) {
        state = .closed
        release()
        effects.actions.append(.close)
    }

    private mutating func release() {
        replies.removeAll()
        held = .nothing
        ending = .open
        watch = Watch()
        isRunningAlone = false
    }
}
