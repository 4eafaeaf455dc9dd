import EventLoop
import Foundation
import Postgres
import Wire

/// Brings histories into empty players: stages what arrives, in batches, and has it become the player's at the end.
///
/// It has one database connection of its own, opened when it is first needed, so that an end which takes long keeps nobody
/// waiting but other imports. An import belongs to the connection that began it; what is staged goes with it, unless the end
/// was reached.
final class Importer {
    /// An import that a session has begun.
    private final class Run {
        let id: UUID
        let player: PlayerID
        var last: Revision = 0
        var devices: [ImportedDevice] = []
        var versions: [VersionEntry] = []
        /// The lines that wait for their answer, and what they hold of the memory.
        var requests: [RequestID] = []
        var bytes = 0
        var isUnderWay = false
        /// What all that came would take.
        var storedBytes = 0
        /// Holds lines back that came faster than the player's rate.
        var pause: EventLoop.Timer?
        /// Why it cannot be ended any more: a line of it was refused.
        var failure: WireError?

        init(id: UUID, player: PlayerID) {
            self.id = id
            self.player = player
        }
    }

    // The server owns its importer and outlives it.
    private unowned let server: SyncServer
    private let pool: DatabasePool
    private var runs: [ObjectIdentifier: Run] = [:]
    private var finishing: [PlayerID: Int] = [:]

    init(server: SyncServer, pool: DatabasePool) {
        self.server = server
        self.pool = pool
    }

    /// Whether a history is just becoming the player's: a push would hold its lane up until then.
    func isFinishing(_ player: PlayerID) -> Bool { finishing[player] != nil }

    /// Takes one part; the session hears once.
    func take(_ part: ImportPart, of player: PlayerID, _ request: RequestID, _ session: ClientSession) {
        pool.start()
        switch part {
        case .begin: begin(player, request, session)
        case .device(let device):
            let bytes = Storage.bytesOfDevice
            stage(request, session, bytes: bytes) { [server] run in
                run.storedBytes += bytes
                if let refusal = server.playerLimits.refusal(ofHistoryWith: run.storedBytes) { return refusal }
                run.devices.append(device)
                return nil
            }
        case .version(let version):
            let bytes = Storage.bytesOfVersion + (version.state?.count ?? 0)
            stage(request, session, bytes: bytes) { [server] run in
                guard version.detail.revision > run.last else {
                    return .importRefused(
                        rule: "order", revision: version.detail.revision, "the revisions do not ascend")
                }
                run.last = version.detail.revision
                run.storedBytes += bytes
                if let refusal = server.playerLimits.refusal(ofHistoryWith: run.storedBytes) { return refusal }
                run.versions.append(version)
                return nil
            }
        case .end(let totals): end(totals, player, request, session)
        case .cancel:
            cancel(runs.removeValue(forKey: ObjectIdentifier(session)))
            session.importFinished(request, .success(.done))
        }
    }

    /// The session is over, and with it what it has not brought to its end.
    func sessionEnded(_ session: ClientSession) {
        cancel(runs.removeValue(forKey: ObjectIdentifier(session)))
    }

    private func begin(_ player: PlayerID, _ request: RequestID, _ session: ClientSession) {
        let run = Run(id: UUID(), player: player)
        runs[ObjectIdentifier(session)] = nil
        pool.execute(ImportArguments.cancelAbandoned, ParameterList(), isRepeatable: true) { [server] result in
            if case .failure(let error) = result { server.log(.warning, "imports-not-tidied", ["error": error]) }
        }
        let arguments = ImportArguments(player: player, id: run.id)
        pool.execute(ImportArguments.begin, arguments.list, isRepeatable: true) { [weak self] result in
            let answer: Result<Reply, WireError> = result.answer { rows throws(DatabaseError) in
                switch try rows.text(0, 0) {
                case "begun": .success(.importBegun(run.id))
                case "not-empty": .failure(.playerNotEmpty)
                default: .failure(.deviceRevoked)
                }
            }
            if case .success = answer, session.identity != nil { self?.runs[ObjectIdentifier(session)] = run }
            session.importFinished(request, answer)
        }
    }

    // MARK: Staging

    private func stage(
        _ request: RequestID, _ session: ClientSession, bytes: Int, _ add: (Run) -> WireError?
    ) {
        guard let run = runs[ObjectIdentifier(session)] else {
            return session.importFinished(request, .failure(.noImport))
        }
        if run.failure == nil {
            let hasRoom = server.pendingBytes + bytes <= server.configuration.limits.maxPendingBytes
            run.failure = hasRoom ? add(run) : .busy()
        }
        if let failure = run.failure { return session.importFinished(request, .failure(failure)) }
        run.requests.append(request)
        run.bytes += bytes
        server.pendingBytes += bytes
        guard !run.isUnderWay else { return }
        run.isUnderWay = true
        // The lines that are due in this turn of the loop go together.
        server.loop.enqueue { [weak self] in self?.send(run, session) }
    }

    private func send(_ run: Run, _ session: ClientSession) {
        // The session may have ended since.
        guard !run.requests.isEmpty else { return }
        // Nothing is refused for the rate: the answers wait, and with them what the client may send.
        let (now, peer) = (server.loop.now, session.connection.peer)
        if let delay = server.addressLimits.delay(ofHistoryWith: run.bytes, from: peer, at: now)
            ?? server.playerLimits.delay(ofHistoryWith: run.bytes, run.player)
        {
            run.pause = EventLoop.Timer(on: server.loop, after: delay) { [weak self, weak run, weak session] in
                guard let self, let run, let session else { return }
                send(run, session)
            }
            return
        }
        server.addressLimits.took(bytes: run.bytes, from: peer, at: now)
        let requests = run.requests
        let bytes = run.bytes
        var arguments = ImportArguments(player: run.player, id: run.id)
        arguments.append(run.devices, run.versions)
        (run.requests, run.bytes, run.devices, run.versions) = ([], 0, [], [])
        // Not repeated when its answer is lost: the import is begun again then.
        pool.execute(ImportArguments.stage, arguments.list, isRepeatable: false) { [weak self] result in
            self?.server.pendingBytes -= bytes
            let answer: Result<Reply, WireError> = result.answer { rows throws(DatabaseError) in
                try rows.text(0, 0) == "staged" ? .success(.done) : .failure(.noImport)
            }
            if case .failure(let error) = answer { run.failure = run.failure ?? error }
            for request in requests { session.importFinished(request, answer) }
            if run.requests.isEmpty {
                run.isUnderWay = false
            } else {
                self?.send(run, session)
            }
        }
    }

    // MARK: The end

    private func end(_ totals: ImportTotals, _ player: PlayerID, _ request: RequestID, _ session: ClientSession) {
        let run = runs.removeValue(forKey: ObjectIdentifier(session))
        if let failure = run?.failure {
            cancel(run)
            return session.importFinished(request, .failure(failure))
        }
        guard let id = totals.id ?? run?.id else { return session.importFinished(request, .failure(.noImport)) }
        var arguments = ImportArguments(player: player, id: id)
        arguments.append(totals, mostGames: server.configuration.limits.maxGamesPerPlayer)
        finishing[player, default: 0] += 1
        pool.execute(ImportArguments.finish, arguments.list, isRepeatable: true) { [weak self, server] result in
            self?.finished(player)
            let answer: Result<Reply, WireError> = result.answer { rows throws(DatabaseError) in
                switch try rows.text(0, 0) {
                case "imported", "repeated": .success(.imported(revision: totals.lastRevision))
                case "not-empty": .failure(.playerNotEmpty)
                case "superseded": .failure(.noImport)
                case "too-many-games":
                    .failure(.quotaExceeded("games", limit: server.configuration.limits.maxGamesPerPlayer ?? 0))
                default:
                    .failure(Self.refusal(try rows.text(0, 1), try rows.isNull(0, 2) ? nil : rows.int8(0, 2)))
                }
            }
            if case .success = answer {
                self?.server.playerLimits.imported(player)
                self?.server.imported(player, versions: totals.versions, revision: totals.lastRevision)
            }
            session.importFinished(request, answer)
        }
    }

    private func finished(_ player: PlayerID) {
        let others = (finishing[player] ?? 1) - 1
        finishing[player] = others > 0 ? others : nil
    }

    private func cancel(_ run: Run?) {
        guard let run else { return }
        server.pendingBytes -= run.bytes
        (run.requests, run.bytes, run.devices, run.versions, run.pause) = ([], 0, [], [], nil)
        let arguments = ImportArguments(player: run.player, id: run.id)
        pool.execute(ImportArguments.cancel, arguments.list, isRepeatable: true) { _ in }
    }

    private static func refusal(_ rule: String, _ revision: Revision?) -> WireError {
        let version = revision.map { "revision \($0)" } ?? "a revision"
        let message =
            switch rule {
            case "incomplete": "there are fewer versions or devices than its end says, or more"
            case "gap": "revisions are missing that were not pruned"
            case "head": "the game of \(version) has no head"
            case "device": "\(version) is of a device that is not named"
            case "saved": "\(version) has the device, the game and the saved of another one"
            case "last": "no server has given out so many revisions"
            case "future": "\(version) is of a day that has not come"
            case "outcome": "\(version) cannot have this outcome"
            case "base": "\(version) cannot have this base"
            case "rival": "\(version) cannot have this rival and this outcome"
            default: "the stamp of \(version) is not what follows from saved, received and base"
            }
        return .importRefused(rule: rule, revision: revision, message)
    }
}
