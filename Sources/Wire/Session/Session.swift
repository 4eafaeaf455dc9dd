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
    let server: ServerDescription
    var held = Held.nothing
    var ending = Ending.open
    /// The time of the last line.
    var now = Timestamp.earliest

    // What is small stands where the field before it leaves room: there are as many sessions as clients.
    var watch = Watch()
    /// Where the connection stands.
    public internal(set) var state = State.awaitingLogin
    /// Whether the shell must hand over no more lines for now.
    public internal(set) var isPaused = false
    /// Whether a request that runs alone is under way.
    var isRunningAlone = false
    var outputIsBlocked = false
    var replies = ReplyQueue()

    indirect enum Held: Sendable {
        case nothing
        case command(Command)
    }

    /// Whether the connection ends once everything accepted is answered, and with which words.
    indirect enum Ending: Sendable {
        case open
        case afterReplies
        case afterRepliesWithBye(WireError)

        var isOpen: Bool {
            if case .open = self { true } else { false }
        }
    }

    struct Watch: Sendable {
        /// Up to where the peer knows that there is something.
        var told: Revision = 0
        /// Up to where there is something.
        var latest: Revision = 0
        /// The cursor of the `WATCH` that is under way.
        var since: Revision = 0
        var isOn = false
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

    /// A line came that was longer than is read, which is `limit` bytes, or `maxLineBytes` when that is nil; its bytes are gone.
    public mutating func lineTooLong(limit: Int? = nil, into effects: inout Effects) {
        guard canReceive(into: &effects) else { return }
        reply(.lineTooLong(limit: limit ?? server.limits.maxLineBytes), &effects)
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
            answer(request, error, &effects)
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

    /// A device may sign in and not stay: a new one is told its token, which is told here or never, then it is hung up on.
    /// Nothing is done of what came behind its request.
    public mutating func turnedAway(
        _ request: RequestID, _ signIn: SignIn, for reason: WireError, into effects: inout Effects
    ) {
        guard finish(request, .signIn, &effects) else { return }
        if signIn.token != nil { replies.answer(request, to: &effects.output) { signIn.print(into: &$0) } }
        hangUp(reason, into: &effects)
    }

    /// A pairing code was made.
    public mutating func pairingCodeCreated(
        _ request: RequestID, _ offer: PairingOffer, into effects: inout Effects
    ) {
        guard finish(request, .pairingCode, &effects) else { return }
        replies.answer(request, to: &effects.output) { offer.print(into: &$0) }
        settle(&effects)
    }

    /// Something about the player's devices was changed.
    public mutating func accountChanged(_ request: RequestID, _ answer: Reply, into effects: inout Effects) {
        guard finish(request, .account, &effects) else { return }
        replies.answer(request, to: &effects.output) { answer.print(into: &$0) }
        settle(&effects)
    }

    /// A read is done; `lines` are whole lines, the last of them `END …`.
    public mutating func readFinished(_ request: RequestID, lines: [UInt8], into effects: inout Effects) {
        guard finish(request, .read, &effects) else { return }
        replies.answer(request, to: &effects.output) { $0.append(contentsOf: lines) }
        settle(&effects)
    }

    /// A part of an import was taken: `OK`, or more where it was the beginning or the end.
    public mutating func importAnswered(_ request: RequestID, _ answer: Reply, into effects: inout Effects) {
        let kind = replies.kind(of: request) == .staging ? ReplyQueue.Kind.staging : .importing
        guard finish(request, kind, &effects) else { return }
        replies.answer(request, to: &effects.output) { answer.print(into: &$0) }
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
        answer(request, error, &effects)
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
