import EventLoop
import Foundation
import Postgres

/// The daemon's own PostgreSQL under its data directory: started with it, watched, started again when it dies, stopped
/// with it.
public final class PrivateDatabase {
    /// The name of the database in it.
    public static let databaseName = "ieum"

    private let cluster: PrivateCluster
    private var watch: DescriptorWatch?
    private var retry: EventLoop.Timer?
    private var isStopping = false
    private var attempts = 0

    /// Names a private PostgreSQL; nothing is started.
    public init(directory: String) {
        cluster = PrivateCluster(folder: directory + "/postgres")
    }

    /// Starts PostgreSQL, making it and the database first where they are missing. Blocks. Where it runs already, waits until it
    /// takes connections.
    /// - Returns: how to connect to the database.
    public func start() throws(PrivateDatabaseError) -> String {
        do throws(ClusterError) {
            try cluster.start()
        } catch {
            throw PrivateDatabaseError(message: error.message, hint: error.hint, isFolderUnfit: error.isFolderUnfit)
        }
        guard let maintenance = cluster.conninfo(), let conninfo = cluster.conninfo(database: Self.databaseName) else {
            throw PrivateDatabaseError(message: "the private PostgreSQL has no address", hint: nil)
        }
        do throws(DatabaseError) {
            let connection = try BlockingConnection(maintenance, applicationName: "ieumd")
            var name = ParameterList()
            name.append(Self.databaseName)
            if try connection.query("SELECT FROM pg_database WHERE datname = $1", name).rowCount == 0 {
                _ = try connection.execute("CREATE DATABASE \(Self.databaseName)")
            }
        } catch {
            throw PrivateDatabaseError(message: error.message, hint: error.hint, mayPass: error.isPassing)
        }
        return conninfo
    }

    /// How to connect to the database of a PostgreSQL that another process runs in the directory; nil if none answers.
    public static func running(in directory: String) -> String? {
        let place = directory + "/postgres/socket"
        // Where the path is too long for a socket, it is a link to a shorter one.
        let socket = (try? FileManager.default.destinationOfSymbolicLink(atPath: place)) ?? place
        let conninfo = "host=\(ConnectionSettings.quote(socket)) port=5432 user=postgres dbname=\(databaseName)"
        return (try? BlockingConnection(conninfo, applicationName: "ieumd")) == nil ? nil : conninfo
    }

    /// Watches PostgreSQL from a loop, and starts it again when it has ended without being told to.
    public func supervise(on loop: EventLoop, log: Log) {
        guard let descriptor = cluster.endDescriptor else { return }
        do throws(EventLoopError) {
            watch = try DescriptorWatch(on: loop, descriptor: descriptor, interest: .read) { [weak self] _ in
                self?.ended(loop, log)
            }
        } catch {
            log(.error, "postgres-unwatched", ["error": error])
        }
    }

    /// Stops PostgreSQL and waits for its end.
    public func stop() {
        isStopping = true
        watch = nil
        retry = nil
        cluster.stop()
    }

    private func ended(_ loop: EventLoop, _ log: Log) {
        watch = nil
        guard !isStopping else { return }
        log(.error, "postgres-ended", ["log": cluster.logFile])
        restart(loop, log)
    }

    /// Recovery may take its time, so the start waits on a thread of its own.
    private func restart(_ loop: EventLoop, _ log: Log) {
        let reply = Reply(to: self, loop: loop, log: log)
        let remote = loop.remote
        let cluster = cluster
        DispatchQueue.global().async {
            let result = Result { () throws(ClusterError) in try cluster.start() }
            remote.post { reply.deliver(result) }
        }
    }

    private func restarted(_ result: Result<Void, ClusterError>, _ loop: EventLoop, _ log: Log) {
        guard !isStopping else { return }
        switch result {
        case .success:
            attempts = 0
            log(.warning, "postgres-restarted", ["pid": cluster.pid ?? 0])
            supervise(on: loop, log: log)
        case .failure(let error):
            attempts += 1
            log(.error, "postgres-restart-failed", ["error": error.message, "attempt": attempts])
            retry = EventLoop.Timer(on: loop, after: .seconds(min(1 << attempts, 30))) { [weak self] in
                self?.restart(loop, log)
            }
        }
    }

    /// Brings the starting thread's answer back. `@unchecked`: that thread only carries it; what it holds is used on the
    /// loop's thread alone.
    private final class Reply: @unchecked Sendable {
        private weak var database: PrivateDatabase?
        private let loop: EventLoop
        private let log: Log

        init(to database: PrivateDatabase, loop: EventLoop, log: Log) {
            self.database = database
            self.loop = loop
            self.log = log
        }

        func deliver(_ result: Result<Void, ClusterError>) {
            database?.restarted(result, loop, log)
        }
    }
}

extension DatabaseError {
    /// Whether a database of our own may do it in a moment: a session was lost, or PostgreSQL recovers from the loss of one of its
    /// processes and takes none (57P03).
    package var isPassing: Bool { kind == .connection && isRetryable }
}

/// The private PostgreSQL could not be started or prepared.
public struct PrivateDatabaseError: Error, Equatable, Sendable {
    /// One line: what is wrong.
    public var message: String
    /// What to do.
    public var hint: String?
    /// Whether the folder that was chosen cannot be used, or is used by another.
    public var isFolderUnfit = false
    /// Whether it may be otherwise in a moment: PostgreSQL recovers.
    public var mayPass = false

    /// What a program that cannot go on without the database exits with: 2 for a setting to mend, 4 otherwise.
    public var exitCode: Int32 { isFolderUnfit ? 2 : 4 }
}
