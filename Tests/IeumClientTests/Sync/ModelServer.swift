import Foundation
import TestSupport
import Wire

/// A server in memory: the real protocol (``Session``) over the model of the rule, for one player's devices.
final class ModelServer {
    typealias LinkID = Int

    /// Everything that a backup holds.
    private(set) var rule = ModelRule()
    private(set) var epoch: UUID
    let player = PlayerID(UUID())
    private var tokens: [DeviceID: Token] = [:]
    private var revoked: Set<DeviceID> = []
    private var description: ServerDescription
    private var links: [LinkID: Link] = [:]
    /// Asked for every push and read; an error is answered instead of doing it.
    var trouble: () -> WireError? = { nil }
    /// What leaves: bytes for a link, or its end (nil).
    var send: (LinkID, [UInt8]?) -> Void = { _, _ in }
    private var random: SeededRandom

    private struct Link {
        var session: Session
        var input: [UInt8] = []
    }

    init(seed: UInt64) {
        random = SeededRandom(seed: seed)
        epoch = UUID.seeded(&random)
        description = ServerDescription(version: "model", epoch: epoch, limits: Self.limits)
    }

    private static let limits = Limits(maxLineBytes: 4_096, maxStateBytes: 2_048, maxPipelinedPushes: 8, maxPageSize: 3)

    /// The winning version of each game.
    private(set) var heads: [GameKey: ModelRule.Version] = [:]

    private func readHeads() -> [GameKey: ModelRule.Version] {
        guard let player = rule.players[player.uuid] else { return [:] }
        var heads: [GameKey: ModelRule.Version] = [:]
        for (key, revision) in player.heads {
            guard let game = try? GameKey(collection: key.collection, id: key.id) else { continue }
            heads[game] = player.version(revision)
        }
        return heads
    }

    var versions: [ModelRule.Version] { rule.players[player.uuid]?.versions ?? [] }

    func addDevice() -> Token {
        let device = DeviceID(UUID.seeded(&random))
        guard let token = Token(player: player, device: device, secret: Array(repeating: 7, count: 32)) else {
            preconditionFailure("32 bytes are a secret")
        }
        tokens[device] = token
        rule.register(player: player.uuid, devices: Set(tokens.keys.map(\.uuid)))
        return token
    }

    func revoke(_ device: DeviceID, at now: Timestamp) {
        revoked.insert(device)
        for (id, link) in links {
            guard case .ready(_, device) = link.session.state else { continue }
            act(id, at: now) { $0.revoked(into: &$1) }
        }
    }

    // MARK: Backups

    var backup: ModelRule { rule }

    /// Goes back in time: a new life of the database, and every connection learns so.
    func restore(_ backup: ModelRule, tellsEpoch: Bool = true, at now: Timestamp) {
        rule = backup
        heads = readHeads()
        if tellsEpoch {
            epoch = UUID.seeded(&random)
            description = ServerDescription(version: "model", epoch: epoch, limits: Self.limits)
        }
        for id in links.keys.sorted() { act(id, at: now) { $0.hangUp(.epochChanged, into: &$1) } }
    }

    // MARK: Links

    func open(_ id: LinkID, at now: Timestamp) {
        links[id] = Link(session: Session(server: description))
        act(id, at: now) { $0.connectionOpened(at: now, into: &$1) }
    }

    func close(_ id: LinkID) { links[id] = nil }

    func receive(_ id: LinkID, _ bytes: [UInt8], at now: Timestamp) {
        links[id]?.input += bytes
        readOn(id, at: now)
    }

    private func readOn(_ id: LinkID, at now: Timestamp) {
        while let link = links[id], !link.session.isPaused, let end = link.input.firstIndex(of: UInt8(ascii: "\n")) {
            let line = Array(link.input[..<end])
            links[id]?.input.removeSubrange(...end)
            act(id, at: now) { session, effects in
                line.count > Self.limits.maxLineBytes
                    ? session.lineTooLong(into: &effects)
                    : session.lineReceived(line.span, at: now, into: &effects)
            }
        }
    }

    private func act(_ id: LinkID, at now: Timestamp, _ body: (inout Session, inout Session.Effects) -> Void) {
        guard var session = links[id]?.session else { return }
        var effects = Session.Effects()
        body(&session, &effects)
        links[id]?.session = session
        if !effects.output.isEmpty { send(id, effects.output) }
        for action in effects.actions { perform(action, id, at: now) }
    }

    private func perform(_ action: Session.Action, _ id: LinkID, at now: Timestamp) {
        switch action {
        case .signIn(let token, let request):
            act(id, at: now) { session, effects in
                guard tokens[token.device] == token else {
                    return session.requestFailed(request, .loginFailed, into: &effects)
                }
                guard !revoked.contains(token.device) else {
                    return session.requestFailed(request, .deviceRevoked, into: &effects)
                }
                let signIn = SignIn(player: player, device: token.device, revision: lastRevision)
                session.signedIn(request, as: signIn, into: &effects)
            }
        case .push(let push, _, let device, let request):
            let result = trouble().map(Result.failure) ?? store(push, device, at: now)
            act(id, at: now) { $0.pushFinished(request, result, into: &$1) }
            for other in links.keys.sorted() where lastRevision > 0 {
                act(other, at: now) { $0.changed(upTo: lastRevision, into: &$1) }
            }
        case .read(let read, _, let request):
            act(id, at: now) { session, effects in
                if let error = trouble() { return session.requestFailed(request, error, into: &effects) }
                switch answer(read) {
                case .success(let lines): session.readFinished(request, lines: lines, into: &effects)
                case .failure(let error): session.requestFailed(request, error, into: &effects)
                }
            }
        case .watch(let since, _, let request):
            act(id, at: now) { session, effects in
                guard since <= lastRevision else {
                    return session.requestFailed(request, .cursorAhead(revision: lastRevision), into: &effects)
                }
                session.watchEstablished(request, revision: lastRevision, into: &effects)
            }
        case .resumeReading: readOn(id, at: now)
        case .close: send(id, nil)
        case .unwatch, .pauseReading, .register, .createPairingCode, .redeem, .importing, .changeAccount: break
        }
    }

    // MARK: The games

    private var lastRevision: Revision { rule.players[player.uuid]?.lastRevision ?? 0 }

    private func store(_ push: Push, _ device: DeviceID, at now: Timestamp) -> Result<PushReceipt, WireError> {
        let key = ModelRule.GameKey(player: player.uuid, collection: push.game.collection, id: push.game.id)
        let saved = push.saved ?? now
        let answer = rule.push(
            [
                ModelRule.Push(
                    game: key, device: device.uuid, saved: saved.microseconds, base: push.base, schema: push.schema,
                    state: push.state)
            ], arrived: now.microseconds)[0]
        heads[push.game] = rule.players[player.uuid].flatMap { player in
            player.heads[key].flatMap { player.version($0) }
        }
        switch answer.outcome {
        case .baseMismatch: return .failure(.baseMismatch(base: push.base ?? 0))
        case .savedReused: return .failure(.savedReused(revision: answer.revision ?? 0))
        case .created, .advanced, .won, .lost, .repeated: break
        default: return .failure(.internalError(answer.outcome.rawValue))
        }
        let head = answer.head.map {
            PushReceipt.Head(
                revision: $0.revision, saved: Timestamp(clamping: $0.push.saved), stamp: Timestamp(clamping: $0.stamp),
                device: DeviceID($0.push.device), schema: $0.push.schema, state: $0.push.state)
        }
        return .success(
            PushReceipt(
                outcome: Outcome(rawValue: answer.outcome.rawValue) ?? .created,
                first: answer.first.flatMap { Outcome(rawValue: $0.rawValue) }, revision: answer.revision ?? 0,
                stamp: Timestamp(clamping: answer.stamp ?? 0), rival: answer.rival, head: head))
    }

    private func answer(_ read: Session.ReadRequest) -> Result<[UInt8], WireError> {
        var bytes: [UInt8] = []
        switch read {
        case .pull(let since, let limit):
            guard since <= lastRevision else { return .failure(.cursorAhead(revision: lastRevision)) }
            let later = heads.values.filter { $0.revision > since }.sorted { $0.revision < $1.revision }
            let page = later.prefix(limit)
            for version in page { gameVersion(version).print(into: &bytes) }
            let hasMore = later.count > page.count
            PageEnd(cursor: hasMore ? page.last?.revision ?? since : lastRevision, more: hasMore).print(into: &bytes)
        case .get(let game, let revision):
            let found = revision.map { number in versions.first { $0.revision == number } } ?? heads[game]
            guard let found, found.push.game.id == game.id else { return .failure(.noSuchVersion) }
            gameVersion(found).print(into: &bytes)
            PageEnd().print(into: &bytes)
        case .history(let game, let before, let limit):
            let all = versions.filter {
                $0.push.game.id == game.id && $0.push.game.collection == game.collection
                    && $0.revision < before ?? .max
            }
            guard !all.isEmpty || before != nil else { return .failure(.noSuchGame) }
            let page = all.suffix(limit)
            for version in page.reversed() { entry(version, game).print(into: &bytes) }
            PageEnd(before: all.count > page.count ? page.first?.revision : nil).print(into: &bytes)
        case .versions, .devices: return .failure(.internalError("no game asks for that"))
        }
        return .success(bytes)
    }

    private func gameVersion(_ version: ModelRule.Version) -> GameVersion {
        guard let game = try? GameKey(collection: version.push.game.collection, id: version.push.game.id) else {
            preconditionFailure("a game was stored under a bad name")
        }
        return GameVersion(
            game: game,
            header: GameHeader(
                revision: version.revision, saved: Timestamp(clamping: version.push.saved),
                stamp: Timestamp(clamping: version.stamp), device: DeviceID(version.push.device),
                schema: version.push.schema, outcome: Outcome(rawValue: version.outcome.rawValue),
                base: version.push.base, rival: version.rival),
            state: version.push.state)
    }

    private func entry(_ version: ModelRule.Version, _ game: GameKey) -> VersionEntry {
        VersionEntry(
            game: game,
            detail: VersionDetail(
                revision: version.revision, outcome: Outcome(rawValue: version.outcome.rawValue) ?? .created,
                saved: Timestamp(clamping: version.push.saved), stamp: Timestamp(clamping: version.stamp),
                received: Timestamp(clamping: version.stamp), device: DeviceID(version.push.device),
                base: version.push.base, rival: version.rival, schema: version.push.schema,
                size: version.push.state?.count ?? 0, isHead: heads[game]?.revision == version.revision,
                isTombstone: version.push.state == nil))
    }
}

extension UUID {
    /// A random one that comes again for the same seed.
    static func seeded(_ random: inout SeededRandom) -> UUID {
        var bytes: [UInt8] = []
        for _ in 0..<16 { bytes.append(.random(in: 0...255, using: &random)) }
        return UUID(bytes: bytes) ?? UUID()
    }
}
