import Wire

/// Coming and going of connections.
extension SyncCore {
    mutating func connect(at now: SyncMoment) {
        dropConnection()
        session = ClientSession(patience: settings.connecting, at: now.instant)
        phase = .greeting
        actions.append(.connect)
        publish()
    }

    mutating func greeted(_ greeting: Greeting, at now: SyncMoment) {
        // A reply holds a state and some words. More than the cap is taken from no server.
        actions.append(.setMaxLineBytes(min(max(greeting.maxStateBytes, greeting.maxLineBytes), 64 << 20) + 4_096))
        phase = .signingIn
        let (offset, overflow) = greeting.time.microseconds.subtractingReportingOverflow(now.wall.microseconds)
        round.clockOffset = overflow || Duration.microseconds(abs(offset)) <= settings.clockTolerance ? 0 : offset
        send(.login(token), .login, patience: settings.patience, at: now)
    }

    mutating func signedIn(_ signIn: SignIn, at now: SyncMoment) throws(ClientError) {
        guard signIn.player == token.player, signIn.device == token.device else {
            throw .protocolViolation("it signed in somebody else")
        }
        guard let epoch = session?.greeting?.epoch else { return }
        round.lastRevision = max(round.lastRevision, signIn.revision)
        phase = .meeting
        store(
            .meet(
                signIn, epoch: epoch, clockOffset: round.clockOffset,
                offersRefused: limits != session?.greeting.map(Limits.init)))
    }

    mutating func connectionFailed(_ error: ClientError, at now: SyncMoment) {
        trouble = error
        if let signOut = error.signOut {
            guard canRenewToken else { return self.signOut(signOut) }
            dropConnection()
            phase = .waiting(until: now.instant)
            return actions.append(.readToken(signOut))
        }
        goOffline(retryAfter: error.retryAfter ?? error.leastWait, at: now)
    }

    mutating func goOffline(retryAfter: Duration?, at now: SyncMoment) {
        dropConnection()
        phase = .waiting(until: now.instant + backoff.next(atLeast: retryAfter, using: &random))
        publish()
    }

    /// The answer to ``Action/readToken(_:)``: the device's token now, if it can be read.
    mutating func tokenRead(_ read: Token?, _ reason: SyncSignOut, at now: SyncMoment) {
        guard phase != .idle, phase != .signedOut else { return }
        guard let read, read != token, read.player == token.player, read.device == token.device else {
            return signOut(reason)
        }
        token = read
        connect(at: now)
    }

    /// Once, and for good: nothing is tried with this token any more.
    mutating func signOut(_ reason: SyncSignOut) {
        dropConnection()
        phase = .signedOut
        signOutReason = reason
        publish()
        actions.append(.tellSignedOut(reason))
        failWaiters(signOutFailure)
    }

    var signOutFailure: WaitFailure { signOutReason == .otherPlayer ? .otherPlayer : .signedOut }

    mutating func failWaiters(_ failure: WaitFailure) {
        for id in waiters.keys.sorted() { actions.append(.finishWaiter(id, failure)) }
        waiters = [:]
    }

    mutating func dropConnection() {
        guard session != nil else { return }
        session = nil
        actions.append(.disconnect)
        let unanswered = requests.sorted { $0.key < $1.key }
        let questions = round.questions
        requests = [:]
        round = Round()
        round.mustPull = !waiters.isEmpty
        for case (_, .query(let id)) in unanswered {
            actions.append(.answer(id, .failure(trouble ?? .connectionClosed(nil))))
        }
        for question in questions {
            actions.append(.answer(question.id, .failure(trouble ?? .connectionClosed(nil))))
        }
    }

    /// Nothing is asked for a while: the server is there and cannot do it now.
    mutating func pause(_ error: WireError, at now: SyncMoment) {
        trouble = .server(error)
        round.mustResend = true
        guard round.pausedUntil == nil else { return }
        round.pausedUntil = now.instant + backoff.next(atLeast: error.retryAfter, using: &random)
        publish()
    }

    mutating func resume(at now: SyncMoment) {
        round.pausedUntil = nil
        round.quietSince = now.instant
        advance(at: now)
    }

    /// Asks the storage for something.
    mutating func store(_ action: Action) {
        storing += 1
        actions.append(action)
    }

    // MARK: Sending

    mutating func send(_ command: Command, _ request: Request, patience: Duration, at now: SyncMoment) {
        var bytes: [UInt8] = []
        guard let id = session?.send(command, patience: patience, at: now.instant, into: &bytes) else { return }
        requests[id] = request
        round.quietSince = now.instant
        if case .send(let earlier)? = actions.last {
            // One write for what leaves together.
            actions[actions.count - 1] = .send(earlier + bytes)
        } else {
            actions.append(.send(bytes))
        }
    }

    mutating func send(_ push: Push, at now: SyncMoment) {
        guard let greeting = session?.greeting else { return }
        let size = push.state?.count ?? 0
        guard size <= greeting.maxStateBytes else {
            return store(.refuse(push, .stateTooLarge(limit: greeting.maxStateBytes)))
        }
        guard size + Self.longestWords <= greeting.maxLineBytes else {
            return store(.refuse(push, .lineTooLong(limit: greeting.maxLineBytes)))
        }
        round.pushes += 1
        round.pushBytes += size
        // A slow way up takes its time; with it the answer.
        let patience = settings.patience + .milliseconds(round.pushBytes / 16)
        send(.push(push), .push(push, bytes: size), patience: patience, at: now)
    }

    /// What a line of a push may hold beside the state.
    private static let longestWords = 512

    mutating func send(_ errand: SyncErrand, before: Revision?, at now: SyncMoment) {
        round.errands += 1
        let command: Command =
            switch errand {
            case .fetch(let game, let revision): .get(game, revision: revision)
            case .replace(let game): .get(game, revision: nil)
            case .lookUp(let game, _, _): .history(game, before: before, limit: settings.pageSize)
            }
        send(command, .errand(errand, before: before), patience: settings.patience, at: now)
    }
}

extension SyncCore.Request {
    /// The game of a push.
    var pushedGame: GameKey? {
        guard case .push(let push, _) = self else { return nil }
        return push.game
    }
}

extension ClientError {
    /// A server that is not who it must be stays so until somebody does something.
    fileprivate var leastWait: Duration? {
        if case .insecure(let failure) = self, !failure.isRetryable { .seconds(15) } else { nil }
    }

    /// Whether, and why, the device is signed out.
    fileprivate var signOut: SyncSignOut? {
        switch self {
        case .server(let error), .connectionClosed(let error?): error.signOut
        default: nil
        }
    }
}

extension WireError {
    /// Whether, and why, the device is signed out.
    var signOut: SyncSignOut? {
        switch code {
        case .loginFailed: .unknownToken
        case .deviceRevoked: .revoked
        default: nil
        }
    }

    /// Whether it says that the connection is not what this side takes it for, rather than something about a command.
    var isAboutConnection: Bool { code == .notSignedIn || code == .alreadySignedIn || code == .unknownCommand }

    /// Whether the same command may succeed later. What an unknown code means is told by `retry-after` alone.
    var mayPass: Bool { isRetryable || isPassing || code == .internalError }
}
