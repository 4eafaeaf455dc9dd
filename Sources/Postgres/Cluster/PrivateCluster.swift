import CLibPQ
import Glibc
import Synchronization

/// A real PostgreSQL of one's own in a folder: made at the first start, reached by a Unix socket only, ended with us.
///
/// In the folder: `data` (PostgreSQL's own), `socket`, `ieum.conf` (written anew at every start), `postgres.log`, and
/// two lock files. Started by root, PostgreSQL runs as the owner of the data, at first as `postgres` or `nobody`; that
/// user must be able to enter the folder's parents.
///
/// Who may connect: the server trusts whoever reaches its socket, and the kernel lets nobody reach it but that user and
/// root, since both the socket and its folder have mode 0700. There is no TCP. (Authentication by `peer` would add a
/// name map to keep for every role that someone switches to, and no safety.)
///
/// It ends with our process even by kill -9, see `SupervisedProcess`. All calls wait, and may come from any thread.
public final class PrivateCluster: Sendable {
    /// The folder, absolute.
    public let folder: String
    /// What the server is started with.
    public let settings: ClusterSettings
    /// Where `initdb` and `postgres` are, if they are not to be looked for.
    public let programsFolder: String?

    private struct Owned: ~Copyable {
        /// Ours while we use the folder, so that no other process starts a server there.
        var lock: FolderLock?
        var process: SupervisedProcess?
    }

    private struct Published {
        var socketFolder: String?
        var pid: Int32?
        var endDescriptor: Int32?
    }

    /// Held for as long as a start or stop takes.
    private let owned = Mutex(Owned())
    private let published = Mutex(Published())

    static let superuser = "postgres"
    static let port = 5432

    /// Names a cluster; nothing is started or created.
    ///
    /// - Parameters:
    ///   - folder: where it lives; made at the first start.
    ///   - settings: what the server is started with.
    ///   - programsFolder: where `initdb` and `postgres` are; nil looks in PATH and where packages put them.
    public init(folder: String, settings: ClusterSettings = .durable, programsFolder: String? = nil) {
        self.folder = AbsolutePath.of(folder)
        self.settings = settings
        self.programsFolder = programsFolder
    }

    deinit {
        stop()
    }

    /// How to connect to a database of the cluster as its superuser; nil before the first start.
    public func conninfo(database: String = "postgres") -> String? {
        published.withLock(\.socketFolder).map { socket in
            "host=\(ConnectionSettings.quote(socket)) port=\(Self.port) user=\(Self.superuser) "
                + "dbname=\(ConnectionSettings.quote(database))"
        }
    }

    /// The server's main process; nil when it was stopped or never started.
    public var pid: Int32? { published.withLock(\.pid) }

    /// A descriptor that becomes readable when the server has ended, for an event loop to watch; nil when it was
    /// stopped or never started. It stays this object's, and valid until the next start or stop.
    public var endDescriptor: Int32? { published.withLock(\.endDescriptor) }

    /// Whether the server was started, and is not stopped, and ended nevertheless.
    public var hasEnded: Bool {
        published.withLock { state in
            guard let descriptor = state.endDescriptor else { return false }
            var poller = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
            return poll(&poller, 1, 0) > 0
        }
    }

    /// The server's log file.
    public var logFile: String { "\(folder)/postgres.log" }

    /// Starts the server, making its data first if the folder is empty, and waits until it accepts connections.
    ///
    /// Does nothing if it runs and accepts connections. After an end that nobody asked for, it starts anew.
    /// - Parameter limit: how long to wait; a recovery after a crash replays up to `max_wal_size`.
    public func start(within limit: Duration = .seconds(300)) throws(ClusterError) {
        let deadline = ContinuousClock.now + limit
        let outcome: Result<Void, ClusterError> = owned.withLock { owned in
            if owned.process != nil && isAccepting(until: deadline) { return .success(()) }
            let wasOurs = owned.lock != nil
            forgetEnded(&owned)
            do throws(ClusterError) {
                try start(&owned, until: deadline)
                return .success(())
            } catch {
                // A later try of ours goes on from here; for others the folder is free unless we had it before.
                forgetEnded(&owned)
                if !wasOurs { owned.lock.take()?.unlock() }
                return .failure(error)
            }
        }
        try outcome.get()
    }

    /// Makes the data if there is none, and starts nothing.
    package func prepare() throws(ClusterError) {
        let outcome: Result<Void, ClusterError> = owned.withLock { owned in
            guard owned.lock == nil else { return .success(()) }
            do throws(ClusterError) {
                let deadline = ContinuousClock.now + .seconds(300)
                let preparation = try ClusterFolder(folder)
                owned.lock = try preparation.takeOwnerLock()
                defer { owned.lock.take()?.unlock() }
                let serverLock = try preparation.takeServerLock(until: deadline)
                _ = try preparation.prepareData(
                    for: preparation.user(), settings: settings, programsFolder: programsFolder, lock: serverLock,
                    until: deadline)
                return .success(())
            } catch {
                return .failure(error)
            }
        }
        try outcome.get()
    }

    /// Stops the server and waits for it: SIGINT, by which sessions end and data is written; SIGQUIT after `limit`, by
    /// which the next start recovers from the log.
    public func stop(within limit: Duration = .seconds(60)) {
        owned.withLock { owned in
            if let process = owned.process.take() {
                published.withLock { $0 = Published(socketFolder: $0.socketFolder) }
                process.send("INT")
                if !process.hasEnded(within: limit) {
                    process.send("QUIT")
                    if !process.hasEnded(within: .seconds(10)) { process.send("KILL") }
                }
                _ = process.reap()
            }
            if let socket = published.withLock(\.socketFolder) { SocketFolder.remove(socket, of: folder) }
            owned.lock.take()?.unlock()
        }
    }

    /// Whether the server accepts connections, or else has ended: one that was killed a moment ago is not known to have
    /// ended yet, and one that a crash of a session has sent into recovery will accept again.
    private func isAccepting(until deadline: ContinuousClock.Instant) -> Bool {
        while !hasEnded, ContinuousClock.now < deadline, let conninfo = conninfo() {
            do throws(DatabaseError) {
                _ = try BlockingConnection(conninfo)
                return true
            } catch {
                // A server that refuses for any other reason than that it is not ready is there: too many connections.
                if let sqlState = error.sqlState, sqlState != .cannotConnectNow { return true }
                usleep(5000)
            }
        }
        return false
    }

    /// Takes leave of a process that has ended, if there is one.
    private func forgetEnded(_ owned: inout Owned) {
        published.withLock { $0 = Published(socketFolder: $0.socketFolder) }
        if let process = owned.process.take() { _ = process.reap() }
    }

    private func start(_ owned: inout Owned, until deadline: ContinuousClock.Instant) throws(ClusterError) {
        let preparation = try ClusterFolder(folder)
        if owned.lock == nil { owned.lock = try preparation.takeOwnerLock() }
        let user = try preparation.user()
        while true {
            let serverLock = try preparation.takeServerLock(until: deadline)
            let programs = try preparation.prepareData(
                for: user, settings: settings, programsFolder: programsFolder, lock: serverLock, until: deadline)
            let socket = try SocketFolder.prepare(in: folder, for: user)
            published.withLock { $0.socketFolder = socket }
            preparation.removeStalePIDFile()
            try SmallFile.replace(
                preparation.configuration, with: settings.file(including: "\(preparation.data)/postgresql.conf"),
                owner: user)
            let log = try ServerLog(logFile)
            let process = try SupervisedProcess(
                command(programs, preparation, socket), as: user, log: log.descriptor, lock: serverLock)
            published.withLock {
                $0 = Published(socketFolder: socket, pid: process.pid, endDescriptor: process.endDescriptor)
            }
            let failure = waitUntilReady(process, preparation, until: deadline)
            let hasTime = ContinuousClock.now < deadline
            owned.process = consume process
            guard let failure else { return }
            // The memory of a server that was killed is in use until the last of its processes has gone.
            if hasTime && log.newText.contains("is still in use") {
                forgetEnded(&owned)
                usleep(100_000)
                continue
            }
            throw log.failure(failure)
        }
    }

    private func command(_ programs: ServerPrograms, _ folder: ClusterFolder, _ socket: String) -> [String] {
        let quotedSocket =
            "\"" + socket.split(separator: "\"", omittingEmptySubsequences: false).joined(separator: "\"\"") + "\""
        let fixed = [
            "config_file=\(folder.configuration)", "listen_addresses=", "port=\(Self.port)",
            "unix_socket_directories=\(quotedSocket)", "unix_socket_permissions=0700",
            "logging_collector=off", "log_destination=stderr",
        ]
        return [programs.postgres, "-D", folder.data] + fixed.flatMap { ["-c", $0] }
    }

    /// Waits for the server's own word in its pid file, and then for a connection; says what went wrong, if anything.
    private func waitUntilReady(
        _ process: borrowing SupervisedProcess, _ folder: ClusterFolder, until deadline: ContinuousClock.Instant
    ) -> String? {
        var refusal: DatabaseError?
        while ContinuousClock.now < deadline {
            if process.hasEnded(within: .milliseconds(10)) { return "PostgreSQL did not start" }
            guard folder.isReady(pid: process.pid), let conninfo = conninfo() else { continue }
            do throws(DatabaseError) {
                _ = try BlockingConnection(conninfo)
                return nil
            } catch {
                refusal = error
            }
        }
        return "PostgreSQL did not become ready in time" + (refusal.map { " (\($0))" } ?? "")
    }
}
