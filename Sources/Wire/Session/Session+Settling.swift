/// What follows every event.
extension Session {
    mutating func canReceive(into effects: inout Effects) -> Bool {
        guard state != .closed else { return false }
        guard isPaused else { return true }
        hangUp(.internalError("a line was read while reading was paused"), into: &effects)
        return false
    }

    /// Whether a result is for a request that waits for it. A result of another kind is a mistake of the shell's, and the
    /// request's answer then says so.
    mutating func finish(_ request: RequestID, _ kind: ReplyQueue.Kind, _ effects: inout Effects) -> Bool {
        guard let expected = replies.kind(of: request) else { return false }
        if !expected.overlaps { isRunningAlone = false }
        guard expected != kind else { return true }
        if expected == .signIn { state = .awaitingLogin }
        answer(request, .internalError(), &effects)
        settle(&effects)
        return false
    }

    /// Answers a request that waits with an error.
    mutating func answer(_ request: RequestID, _ error: WireError, _ effects: inout Effects) {
        effects.errorCount += 1
        replies.answer(request, to: &effects.output) { error.print(into: &$0) }
    }

    /// Goes on with what an event has made possible.
    mutating func settle(_ effects: inout Effects) {
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
        // Before the requests of this event: a shell may get a result while it carries them out, and what follows from that
        // (to read on, say) is newer.
        let last = effects.actions.lastIndex { $0 == .pauseReading || $0 == .resumeReading }
        effects.actions.insert(wantsPause ? .pauseReading : .resumeReading, at: last.map { $0 + 1 } ?? 0)
    }

    /// A full pipeline is let run half empty before reading goes on, so that it does not stop and go with every push.
    private var mustPause: Bool {
        if case .command = held { return true }
        let most = max(server.limits.maxPipelinedPushes, 1)
        return outputIsBlocked || !ending.isOpen || replies.count > (isPaused ? most / 2 : most - 1)
    }

    mutating func close(_ effects: inout Effects) {
        state = .closed
        release()
        effects.actions.append(.close)
    }

    mutating func release() {
        replies.removeAll()
        held = .nothing
        ending = .open
        watch = Watch()
        isRunningAlone = false
    }
}
