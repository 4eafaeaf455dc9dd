/// What each command leads to in each state.
extension Session {
    /// Starts a command, answers it at once, or holds it. Every pair is spelled out: nothing is allowed by being forgotten.
    mutating func begin(_ command: Command, _ effects: inout Effects) {
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

        case (.awaitingLogin, .register(let device, let invite)):
            let request = runAlone(.signIn)
            state = .signingIn
            effects.actions.append(.register(device: device, invite: invite, request))
        case (.awaitingLogin, .login(let token)):
            let request = runAlone(.signIn)
            state = .signingIn
            effects.actions.append(.signIn(token, request))
        case (.awaitingLogin, .link(let code, let device)):
            let request = runAlone(.signIn)
            state = .signingIn
            effects.actions.append(.redeem(code, device: device, request))

        case (.awaitingLogin, .pair), (.awaitingLogin, .push), (.awaitingLogin, .pull), (.awaitingLogin, .watch),
            (.awaitingLogin, .unwatch), (.awaitingLogin, .get), (.awaitingLogin, .history),
            (.awaitingLogin, .versions), (.awaitingLogin, .devices), (.awaitingLogin, .rename),
            (.awaitingLogin, .revoke),
            (.awaitingLogin, .rotate), (.awaitingLogin, .importing):
            reply(.notSignedIn(command.verb), &effects)

        case (.signingIn, .register), (.signingIn, .login), (.signingIn, .link), (.signingIn, .pair),
            (.signingIn, .push), (.signingIn, .pull), (.signingIn, .watch), (.signingIn, .unwatch),
            (.signingIn, .get), (.signingIn, .history), (.signingIn, .versions), (.signingIn, .devices),
            (.signingIn, .rename), (.signingIn, .revoke), (.signingIn, .rotate), (.signingIn, .importing):
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
        case (.ready(let player, let device), .rename(let named, let name)):
            changeAccount(command, .rename(named ?? device, name: name), player, device, &effects)
        case (.ready(let player, let device), .revoke(let ended)):
            changeAccount(command, .revoke(ended), player, device, &effects)
        case (.ready(let player, let device), .rotate):
            changeAccount(command, .rotate, player, device, &effects)
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

        case (.ready(let player, _), .versions(let query)):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            let versions = ReadRequest.versions(query, limit: pageSize(query.limit))
            effects.actions.append(.read(versions, player: player, runAlone(.read)))
        case (.ready(let player, _), .devices(let after, let limit)):
            guard replies.waitingCount == 0 else { return held = .command(command) }
            let devices = ReadRequest.devices(after: after, limit: pageSize(limit))
            effects.actions.append(.read(devices, player: player, runAlone(.read)))
        case (.ready(let player, let device), .importing(let part)):
            guard part.isStaged ? !isRunningAlone : replies.waitingCount == 0 else { return held = .command(command) }
            let request = part.isStaged ? replies.wait(for: .staging) : runAlone(.importing)
            effects.actions.append(.importing(part, player: player, device: device, request))

        case (.closed, .hello), (.closed, .register), (.closed, .login), (.closed, .pair), (.closed, .link),
            (.closed, .push), (.closed, .pull), (.closed, .watch), (.closed, .unwatch), (.closed, .get),
            (.closed, .history), (.closed, .versions), (.closed, .devices), (.closed, .rename), (.closed, .revoke),
            (.closed, .rotate), (.closed, .importing), (.closed, .time), (.closed, .ping), (.closed, .help),
            (.closed, .quit):
            return
        }
    }

    private mutating func help(_ topic: String?, _ effects: inout Effects) {
        guard let topic else { return replies.add(to: &effects.output) { Help.printOverview(into: &$0) } }
        guard let verb = Verb(topic) else { return reply(.unknownCommand(topic), &effects) }
        replies.add(to: &effects.output) { Help.print(verb, into: &$0) }
    }

    private mutating func changeAccount(
        _ command: Command, _ change: AccountChange, _ player: PlayerID, _ device: DeviceID, _ effects: inout Effects
    ) {
        guard replies.waitingCount == 0 else { return held = .command(command) }
        effects.actions.append(.changeAccount(change, player: player, device: device, runAlone(.account)))
    }

    private mutating func runAlone(_ kind: ReplyQueue.Kind) -> RequestID {
        isRunningAlone = true
        return replies.wait(for: kind)
    }

    private func pageSize(_ limit: Int?) -> Int {
        min(max(limit ?? server.limits.defaultPageSize, 1), server.limits.maxPageSize)
    }

    mutating func reply(_ error: WireError, _ effects: inout Effects) {
        effects.errorCount += 1
        replies.add(to: &effects.output) { error.print(into: &$0) }
    }

    mutating func reply(_ reply: Reply, _ effects: inout Effects) {
        replies.add(to: &effects.output) { reply.print(into: &$0) }
    }
}
