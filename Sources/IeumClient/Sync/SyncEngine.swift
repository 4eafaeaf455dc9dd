import Foundation
import Wire

/// Keeps a store and its server in step: pushes what was saved, pulls what other devices saved, and comes back by itself
/// after every kind of trouble.
///
/// It works on a thread of its own; every member can be used from anywhere, inside callbacks too. A save never waits for it.
/// It ends with ``stop()`` or with its release; what is unsent then is sent after the next start.
/// A task that names the engine in a loop over its status or events keeps it from being released: give such a task the
/// sequence alone, which ends with the engine, or call ``stop()``.
public final class SyncEngine: Sendable {
    private let hub = SyncHub()
    private let storage: any SyncStorage
    private let thread: any ConnectionThread
    private let runner: SyncRunner
    /// Which device this is.
    let device: DeviceID

    /// Makes an engine and starts it.
    package convenience init(
        storage: any SyncStorage, server: String, token: String, trust: ServerTrust = .system,
        certificate: ClientCertificate? = nil
    ) throws(SyncError) {
        try self.init(
            storage: storage, address: try Self.address(server, trust, certificate), token: token,
            settings: SyncSettings())
    }

    /// Makes an engine for the device of a home, and starts it. A token that another process of the home replaced meanwhile
    /// is taken from there.
    convenience init(
        storage: any SyncStorage, home: DeviceHome, identity: Identity, settings: SyncSettings = SyncSettings(),
        report: (@Sendable (SyncReport) -> Void)? = nil
    ) throws(SyncError) {
        try self.init(
            storage: storage, address: identity.server, token: identity.token.text, settings: settings, report: report,
            renewedToken: { (try? home.identity())?.token })
    }

    convenience init(
        storage: any SyncStorage, server: String, token: String, settings: SyncSettings,
        seed: UInt64 = .random(in: .min ... .max)
    ) throws(SyncError) {
        try self.init(
            storage: storage, address: try Self.address(server, .system, nil), token: token, settings: settings,
            seed: seed)
    }

    init(
        storage: any SyncStorage, address: ServerAddress, token: String, settings: SyncSettings,
        seed: UInt64 = .random(in: .min ... .max), report: (@Sendable (SyncReport) -> Void)? = nil,
        renewedToken: (@Sendable () -> Token?)? = nil
    ) throws(SyncError) {
        guard let token = Token(token) else { throw .invalidToken }
        let thread: EventLoopThread
        do throws(ClientError) {
            thread = try EventLoopThread(name: "ieum-sync")
        } catch {
            throw SyncError(error)
        }
        self.thread = thread
        self.storage = storage
        let runner = SyncRunner(
            on: thread, server: address, storage: storage, hub: hub,
            core: SyncCore(token: token, settings: settings, seed: seed), report: report,
            renewedToken: renewedToken)
        self.runner = runner
        device = token.device
        storage.whenSaved(for: runner) { runner.announceSave() }
        start()
    }

    deinit {
        let runner = runner
        storage.whenSaved(for: runner, nil)
        thread.post { runner.end() }
        hub.end()
    }

    // MARK: Status

    /// The status now, and each later one. A slow reader gets the latest, not every one.
    public var status: AsyncStream<SyncStatus> { hub.statuses() }

    /// The status now.
    public var currentStatus: SyncStatus { hub.status }

    /// The last trouble, for people; nil once all is well.
    public var trouble: SyncError? { hub.trouble }

    /// Conflicts, refused saves and a sign-out: each once, and a conflict even if the app is killed before it could be told.
    public var events: SyncEvents { SyncEvents(hub: hub, storage: storage) }

    /// How one game stands with the server; nil when there is no such game.
    public func state(ofGame id: String, in collection: String) throws -> GameSyncState? {
        guard let game = try storage.heldGame(try key(collection, id)) else { return nil }
        return switch game.standing {
        case .synced: .synced
        case .edited, .unproven: .saved
        case .refused: .refused
        }
    }

    // MARK: Control

    /// Starts again after ``stop()``, or after a sign-out to try once more.
    public func start() {
        post { $0.start() }
    }

    /// Ends the connection. Saves gather until the next start.
    public func stop() {
        post { $0.stop() }
    }

    /// Tries to connect at once, whatever wait is under way: for an app that comes to the front, a network that is back, a
    /// button.
    public func retryNow() {
        post { $0.retryNow() }
    }

    /// Waits until the server has acknowledged, or refused, everything saved before the call, and everything that the server
    /// has at the time of the call is here. Offline it waits on.
    /// - Throws: ``SyncError/stopped``, ``SyncError/signedOut``, ``SyncError/otherPlayer``; ``SyncError/storage(_:)`` when the
    ///   store cannot be read or written, e.g. because the disk is full (the engine tries again all the same);
    ///   `CancellationError`.
    public func waitUntilSynced() async throws {
        let (thread, runner) = (thread, runner)
        try await hub.wait { id in
            thread.post { runner.wait(id) }
        } cancel: { id in
            thread.post { runner.cancelWait(id) }
        }
    }

    // MARK: History

    /// A game's versions on the server, newest first, the losers of conflicts among them.
    public func versions(ofGame id: String, in collection: String) async throws -> [SyncVersionInfo] {
        let key = try key(collection, id)
        var versions: [SyncVersionInfo] = []
        var before: Revision?
        repeat {
            let lines = try await ask(.history(key, before: before, limit: 500))
            for case .version(let entry) in lines { versions.append(SyncVersionInfo(entry)) }
            guard case .end(let end)? = lines.last else { break }
            if let next = end.before, let before, next >= before { break }
            before = end.before
        } while before != nil
        return versions
    }

    /// A version with its state.
    public func version(_ revision: Int64, ofGame id: String, in collection: String) async throws -> SyncVersion {
        let key = try key(collection, id)
        guard case .game(let version)? = try await ask(.get(key, revision: revision)).first, version.game == key else {
            throw SyncError(WireError.noSuchVersion)
        }
        return SyncVersion(version)
    }

    /// Makes an earlier version the game's state again: it is saved here, as the successor of what is shown now, and pushed like
    /// any save.
    /// - Throws: ``StoreError``, of kind `newerSchema` for a schema version that no store can hold.
    public func restore(_ version: SyncVersion) throws {
        guard let schema = Int32(exactly: version.schemaVersion) else {
            throw StoreError(
                .newerSchema,
                "\(version.collection) \(version.id), revision \(version.revision), has schema version \(version.schemaVersion)",
                hint: "Schema versions go up to \(Int32.max).")
        }
        try storage.restore(
            try key(version.collection, version.id), state: version.state.map { Array($0) }, schema: schema)
    }

    /// Makes the version that a line of the history names the game's state again.
    public func restore(_ version: SyncVersionInfo) async throws {
        try restore(try await self.version(version.revision, ofGame: version.id, in: version.collection))
    }

    // MARK: Other devices

    /// Makes a code by which another device joins this player: ten minutes, one use. See ``link(at:code:deviceName:trust:certificate:)``.
    public func pairingCode() async throws -> String {
        guard case .ok(let fields)? = try await ask(.pair).last, let offer = try? PairingOffer(fields) else {
            throw SyncError.offline("the server gave no code")
        }
        return offer.code.text
    }

    /// Makes a new player with this device as the first.
    /// - Parameters:
    ///   - server: its address, as for ``init(store:server:token:trust:certificate:)``.
    ///   - deviceName: what to call this device.
    ///   - invite: a code of the server's operator, where new players need one: it works once. Where the answer is lost on its
    ///     way, the code is used up, and the operator gives another.
    ///   - trust: what makes the server's certificate a good one.
    ///   - certificate: this device's own, for a server that wants one.
    /// - Returns: the token. Keep it in the keychain: who has it is the device.
    /// - Throws: ``SyncError``, ``SyncError/insecure(_:)`` when the server is not who it must be.
    public static func register(
        at server: String, deviceName: String, invite: String? = nil, trust: ServerTrust = .system,
        certificate: ClientCertificate? = nil
    ) async throws -> String {
        let code = try invite.map { (text) throws(SyncError) in
            guard let code = InviteCode(text) else { throw SyncError(WireError.inviteInvalid) }
            return code
        }
        return try await newToken(at: address(server, trust, certificate)) { (connection) throws(ClientError) in
            try connection.register(device: deviceName, invite: code)
        }
    }

    /// Joins the player who made a code.
    /// - Parameters:
    ///   - server: its address, as for ``init(store:server:token:trust:certificate:)``.
    ///   - code: from ``pairingCode()`` on another device.
    ///   - deviceName: what to call this device.
    ///   - trust: what makes the server's certificate a good one.
    ///   - certificate: this device's own, for a server that wants one.
    /// - Returns: the token. Keep it in the keychain: who has it is the device.
    /// - Throws: ``SyncError``, ``SyncError/insecure(_:)`` when the server is not who it must be.
    public static func link(
        at server: String, code: String, deviceName: String, trust: ServerTrust = .system,
        certificate: ClientCertificate? = nil
    ) async throws -> String {
        guard let code = PairingCode(code) else { throw SyncError(WireError.codeInvalid) }
        return try await newToken(at: address(server, trust, certificate)) { (connection) throws(ClientError) in
            try connection.link(code, device: deviceName)
        }
    }

    private static func newToken(
        at address: ServerAddress, _ get: @escaping @Sendable (ServerConnection) throws(ClientError) -> Token
    ) async throws -> String {
        try await withCheckedThrowingContinuation { continuation in
            // A blocking connection has no place on the threads that tasks share.
            Thread.detachNewThread {
                do throws(ClientError) {
                    continuation.resume(returning: try get(ServerConnection(to: address)).text)
                } catch {
                    continuation.resume(throwing: SyncError(error))
                }
            }
        }
    }

    private static func address(
        _ server: String, _ trust: ServerTrust, _ certificate: ClientCertificate?
    ) throws(SyncError) -> ServerAddress {
        guard var address = ServerAddress(server) else { throw .invalidAddress(server) }
        address.trust = trust
        address.certificate = certificate
        return address
    }

    private func post(_ work: @escaping @Sendable (SyncRunner) -> Void) {
        let runner = runner
        thread.post { work(runner) }
    }

    func ask(_ command: Command) async throws -> [ServerLine] {
        try await hub.ask { id in
            post { $0.ask(command, for: id) }
        }
    }

    /// Asks the server something, for who waits on a thread; the reply comes on the engine's.
    func ask(_ command: Command, reply: @escaping @Sendable (Result<[ServerLine], ClientError>) -> Void) {
        post { $0.ask(command, reply: reply) }
    }

    private func key(_ collection: String, _ id: String) throws(SyncError) -> GameKey {
        do throws(WireError) {
            return try GameKey(normalizing: collection, id)
        } catch {
            throw SyncError(error)
        }
    }
}
