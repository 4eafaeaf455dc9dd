import EventLoop
import Wire

/// Refusing what is too much, so that it costs less than it cost whoever sent it.
///
/// A sign-in that is refused, and what is beyond a rate of its own, is answered late: who guesses or does not wait comes no
/// faster, by as many connections as they like, than connections may be. Beyond the rate of pushes the answer comes at once,
/// behind those before it, and then no further line is read for a while; so it is behind each line of strangers who say much.
extension ClientSession {
    /// An answer that waits for its time. An object, so that a session without one has no room for it.
    final class SlowRefusal {
        let request: RequestID
        let error: WireError

        init(request: RequestID, error: WireError) {
            (self.request, self.error) = (request, error)
        }
    }

    /// How late a refusal is told, at most.
    private static let longestDelay = Duration.milliseconds(500)

    // MARK: Sign-ins

    /// Whether the peer's address may sign in now; else the request is answered.
    func isAdmitted(_ request: RequestID, isNew: Bool) -> Bool {
        let now = server.loop.now
        let refusal =
            isNew
            ? server.addressLimits.refusal(ofRegistrationFrom: connection.peer, at: now)
            : server.addressLimits.refusal(ofSignInFrom: connection.peer, at: now)
        guard let refusal else {
            // What comes right behind the sign-in may be as long as all lines.
            connection.maxLineBytes = server.configuration.limits.maxLineBytes
            return true
        }
        server.metrics.limitedSignIns += 1
        refuseSlowly(request, refusal)
        return false
    }

    /// A sign-in came to nothing.
    func signInFailed(_ request: RequestID, _ error: WireError) {
        connection.maxLineBytes = server.maxLineBytesOfStrangers
        switch error.code {
        case .loginFailed, .codeInvalid, .inviteInvalid:
            // Counted now, and not when it is told: the address may be trying on other connections.
            server.metrics.failedSignIns += 1
            wrongTries += 1
            server.addressLimits.triedWrongly(connection.peer, at: server.loop.now)
            refuseSlowly(request, error)
        case .busy, .unavailable, .internalError:
            act { $0.requestFailed(request, error, into: &$1) }
        default:
            refuseSlowly(request, error)
        }
    }

    // MARK: Rates

    /// Whether the player may do that now; else the request is answered.
    func mayChange(_ change: DeviceChangeLimits.Change, of player: PlayerID, _ request: RequestID) -> Bool {
        guard let refusal = server.deviceChangeLimits.refusal(of: change, by: player, at: server.loop.now) else {
            return true
        }
        server.metrics.limitedDeviceChanges += 1
        refuseSlowly(request, refusal)
        return false
    }

    /// A push is beyond the player's rate. Lines that wait cost less than lines that are refused, so those behind it wait
    /// until it may come again.
    func pushRefused(_ request: RequestID, _ refusal: WireError) {
        if let wait = refusal.retryAfter { holdBack(for: wait) }
        pushFinished(request, .failure(refusal))
    }

    // MARK: Strangers

    /// A greeting and a sign-in, again after every wrong try, and some pings: more than that no client has to say before it is
    /// signed in.
    private static let linesOfStranger: UInt32 = 32
    /// The rest after each further line of a stranger's.
    private static let strangersRest = Duration.milliseconds(100)

    /// Somebody said something: strangers who say much are heard slowly, so that a crowd of them costs little.
    func heard() {
        guard identity == nil, lines >= Self.linesOfStranger, !session.isPaused else { return }
        holdBack(for: Self.strangersRest)
    }

    /// Reads no further line for a while.
    private func holdBack(for wait: Duration) {
        guard !isHeldBack else { return }
        isHeldBack = true
        connection.pauseReading()
        server.shortWaits.after(wait) { [weak self] in
            guard let self else { return }
            isHeldBack = false
            resumeReading()
        }
    }

    /// Reads on, unless something else keeps it from that.
    func resumeReading() {
        if !isHeldBack, !isLookingUp, !session.isPaused { connection.resumeReading() }
    }

    // MARK: Quotas

    /// Reads no further line while it is looked up whether a push may be taken.
    func waitForLookUp() {
        isLookingUp = true
        connection.pauseReading()
    }

    func lookUpFinished() {
        isLookingUp = false
        resumeReading()
    }

    // MARK: Late answers

    /// Answers a request that runs alone with an error, after a while.
    ///
    /// Who waits as long as the answer says loses nothing: it says what is left by then.
    private func refuseSlowly(_ request: RequestID, _ error: WireError) {
        var error = error
        let delay = min(error.retryAfter ?? Self.longestDelay, Self.longestDelay)
        if let wait = error.retryAfter { error.retryAfter = max(wait - delay, .milliseconds(1)) }
        slowRefusal = SlowRefusal(request: request, error: error)
        guard !server.isDraining else { return tellSlowRefusal() }
        server.shortWaits.after(delay) { [weak self] in
            // It may have been told already, and another wait now.
            if self?.slowRefusal?.request == request { self?.tellSlowRefusal() }
        }
    }

    /// Gives a late answer now.
    func tellSlowRefusal() {
        guard let refusal = slowRefusal else { return }
        slowRefusal = nil
        act { $0.requestFailed(refusal.request, refusal.error, into: &$1) }
        if identity == nil, Int(wrongTries) >= server.configuration.limits.maxWrongTries {
            hangUp(.tooManyTries(retryAfter: .seconds(10)))
        }
    }
}
