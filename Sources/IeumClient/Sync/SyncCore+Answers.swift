import Wire

/// Answers, and what is to be done next.
extension SyncCore {
    mutating func answered(_ id: ClientSession.RequestID, _ lines: [ServerLine], at now: SyncMoment) {
        guard let request = take(id, at: now) else { return }
        do throws(ClientError) {
            try answered(request, lines, at: now)
        } catch {
            connectionFailed(error, at: now)
        }
        advance(at: now)
    }

    private mutating func answered(
        _ request: Request, _ lines: [ServerLine], at now: SyncMoment
    ) throws(ClientError) {
        switch request {
        case .login: try signedIn(lines.value(SignIn.init), at: now)
        case .push(let push, _):
            let receipt = try lines.value(PushReceipt.init)
            guard receipt.settled != .lost || receipt.head != nil else {
                throw .protocolViolation("it does not tell what a push lost to")
            }
            guard receipt.settled != .won || receipt.rival != nil else {
                throw .protocolViolation("it does not tell what a push overtook")
            }
            acknowledged(PushAnswer(push: push, receipt: receipt))
        case .pull(let since, let number): try pulled(lines.page(since: since), since: since, number: number)
        case .watch:
            let revision = try lines.value { (fields) throws(MalformedLine) in try fields.revision("revision") }
            round.isWatching = true
            round.lastRevision = max(round.lastRevision, revision)
        case .heartbeat: break
        case .errand(let errand, _): try settle(errand, lines, at: now)
        case .query(let id): actions.append(.answer(id, .success(lines)))
        }
    }

    /// A command was refused.
    mutating func refused(_ id: ClientSession.RequestID, _ error: WireError, at now: SyncMoment) {
        guard let request = take(id, at: now) else { return }
        if case .query(let id) = request { return actions.append(.answer(id, .failure(.server(error)))) }
        if error.signOut != nil { return connectionFailed(.server(error), at: now) }
        if error.mayPass {
            guard phase == .ready else { return connectionFailed(.server(error), at: now) }
            return pause(error, at: now)
        }
        switch request {
        case .push(let push, _) where !error.isAboutConnection: store(.refuse(push, error))
        case .pull where error.code == .cursorAhead, .watch where error.code == .cursorAhead: startOver()
        case .errand(let errand, _) where error.code == .noSuchGame || error.code == .noSuchVersion:
            store(.settle(errand, .missing))
        case .login, .push, .pull, .watch, .heartbeat, .errand, .query:
            return connectionFailed(.server(error), at: now)
        }
        advance(at: now)
    }

    private mutating func take(_ id: ClientSession.RequestID, at now: SyncMoment) -> Request? {
        guard let request = requests.removeValue(forKey: id) else { return nil }
        round.quietSince = now.instant
        switch request {
        case .push(_, let bytes):
            round.pushes -= 1
            round.pushBytes -= bytes
        case .pull: round.isPulling = false
        case .watch: round.hasAskedToWatch = false
        case .errand: round.errands -= 1
        case .login, .heartbeat, .query: break
        }
        return request
    }

    private mutating func acknowledged(_ answer: PushAnswer) {
        backoff.reset()
        round.pushed += 1
        round.lastRevision = max(round.lastRevision, answer.receipt.revision, answer.receipt.head?.revision ?? 0)
        if answer.receipt.revision > point.cursor { round.ownAhead.insert(answer.receipt.revision) }
        // One transaction for what came together; what the app is told in between does not part it.
        let last = actions.lastIndex { !$0.isTold }
        if let last, case .acknowledge(let earlier) = actions[last] {
            actions[last] = .acknowledge(earlier + [answer])
        } else {
            store(.acknowledge([answer]))
        }
    }

    private mutating func pulled(_ page: ChangePage, since: Revision, number: Int) {
        round.lastRevision = max(round.lastRevision, page.cursor)
        store(.apply(page, since: since))
        guard !page.hasMore else { return round.mustPull = true }
        round.hasPulled = true
        (trouble, storageTrouble) = (nil, nil)
        for (id, pull) in waiters where pull <= number { waiters[id] = 0 }
    }

    private mutating func startOver() {
        guard let epoch = session?.greeting?.epoch else { return }
        round.hasPulled = false
        round.isWatching = false
        round.mustPull = true
        // What it was before is not what the server has.
        round.lastRevision = 0
        store(.startOver(epoch))
    }

    private mutating func settle(
        _ errand: SyncErrand, _ lines: [ServerLine], at now: SyncMoment
    ) throws(ClientError) {
        switch errand {
        case .fetch(let game, _), .replace(let game):
            guard case .game(let version)? = lines.first, version.game == game else {
                throw .protocolViolation("it answers with another game than was asked for")
            }
            store(.settle(errand, .found(version)))
        case .lookUp(_, let device, let saved):
            for case .version(let entry) in lines where entry.detail.device == device && entry.detail.saved == saved {
                return store(.settle(errand, .found(nil)))
            }
            guard case .end(let end)? = lines.last, let before = end.before else {
                return store(.settle(errand, .missing))
            }
            send(errand, before: before, at: now)
        }
    }

    // MARK: What next

    /// Asks for what there is to ask for now.
    mutating func advance(at now: SyncMoment) {
        guard phase == .ready else { return }
        defer { publish() }
        guard round.pausedUntil == nil, storing == 0 else { return }
        if round.mustResend {
            round.mustResend = false
            return store(.readUnanswered)
        }
        if !round.isPulling, !round.hasPulled || round.mustPull || round.lastRevision > point.cursor {
            pull(at: now)
        }
        guard round.hasPulled else { return }
        if !round.isWatching, !round.hasAskedToWatch {
            round.hasAskedToWatch = true
            send(.watch(since: point.cursor), .watch, patience: settings.patience, at: now)
        }
        if point.hasErrands, round.errands == 0 { return store(.readErrands(limit: settings.maxPushes)) }
        guard point.waiting > 0, round.pushes * 2 <= settings.maxPushes, round.pushBytes * 2 <= settings.maxPushBytes
        else { return }
        store(.takeOutgoing(limit: settings.maxPushes - round.pushes, bytes: settings.maxPushBytes - round.pushBytes))
    }

    private mutating func pull(at now: SyncMoment) {
        pullsBegun += 1
        round.isPulling = true
        round.mustPull = false
        send(
            .pull(since: point.cursor, limit: settings.pageSize), .pull(since: point.cursor, number: pullsBegun),
            patience: settings.patience, at: now)
    }

    // MARK: Status

    /// Tells the status when it is another than before, and lets those go who waited for it.
    mutating func publish() {
        let status = currentStatus
        // While the storage is at work, what is known of what is left is behind.
        if case .syncing = status, case .syncing = self.status, storing > 0 { return }
        if status != self.status {
            self.status = status
            if case .tell(.syncing)? = actions.last, case .syncing = status {
                // Nobody has been told the older number yet.
                actions[actions.count - 1] = .tell(status)
            } else {
                actions.append(.tell(status))
            }
        }
        guard status == .upToDate else { return }
        backoff.reset()
        storageBackoff.reset()
        (round.pushed, round.ownPassed, round.ownAhead) = (0, 0, [])
        round.pulledFrom = point.cursor
        for id in waiters.filter({ $0.value == 0 }).keys.sorted() {
            waiters[id] = nil
            actions.append(.finishWaiter(id, nil))
        }
    }

    private var currentStatus: SyncStatus {
        switch phase {
        case .idle, .waiting: return .offline
        case .signedOut: return .signedOut
        case .greeting, .signingIn, .meeting: return .connecting
        case .ready:
            guard round.pausedUntil == nil else { return .offline }
            let leftToPull = max(0, round.lastRevision - point.cursor)
            let own = Int64(round.ownAhead.count { $0 <= round.lastRevision })
            let passed = point.cursor - round.pulledFrom - Int64(round.ownPassed)
            let isDone =
                storing == 0 && round.hasPulled && round.isWatching && !round.isPulling && !round.mustPull
                && !round.mustResend
                && leftToPull == 0 && point.waiting == 0 && point.unanswered == 0 && !point.hasErrands
            guard !isDone else { return .upToDate }
            return .syncing(
                SyncProgress(
                    pushed: round.pushed, leftToPush: point.waiting + point.unanswered,
                    pulled: max(0, passed), leftToPull: max(0, leftToPull - own)))
        }
    }
}

extension [ServerLine] {
    /// The value of an answer that is one `OK` line.
    func value<Value>(_ read: (ReplyFields) throws(MalformedLine) -> Value) throws(ClientError) -> Value {
        guard case .ok(let fields)? = last else { throw .protocolViolation("its reply lacks something") }
        do throws(MalformedLine) {
            return try read(fields)
        } catch {
            throw .protocolViolation(error.description)
        }
    }

    /// The page that answers a pull.
    func page(since: Revision) throws(ClientError) -> ChangePage {
        guard case .end(let end)? = last, let cursor = end.cursor, let hasMore = end.more else {
            throw .protocolViolation("its reply to PULL lacks something")
        }
        guard cursor >= since, !hasMore || cursor > since else {
            throw .protocolViolation("a pull since \(since) leads to cursor \(cursor)")
        }
        var games: [GameVersion] = []
        games.reserveCapacity(count)
        for case .game(let version) in self { games.append(version) }
        return ChangePage(games: games, cursor: cursor, hasMore: hasMore)
    }
}
