import Arguments
import EventLoop
import Foundation
import Migrator
import Postgres
import SyncServer

/// `ieumd serve`: brings database, schema check, loop and server together, and takes them down again.
struct ServeCommand {
    private let configuration: ServerConfiguration
    private let choice: DatabaseChoice
    private let log: Log

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: ServeOptions.spec, environment: environment)
        configuration = try ServeOptions.configuration(parsed)
        choice = try DatabaseChoice(parsed, environment: environment)
        guard let level = Log.Level(name: parsed.string("log") ?? "") else {
            throw UsageError("--log is debug, info, warning or error, not \"\(parsed.string("log") ?? "")\"")
        }
        log = Log(level: level)
    }

    /// Serves until a signal; gives the exit code.
    func run() -> Int32 {
        raiseDescriptorLimit()
        let tls: ServerTLS?
        do throws(TLSError) {
            // First of all: what is wrong with a file is known at once.
            tls = try configuration.tls.map { (files) throws(TLSError) in try ServerTLS(files: files) }
        } catch {
            Console.error(error.message, hint: "See --tls-cert, --tls-key and --tls-client-ca.")
            return 2
        }
        let database = choice.conninfo == nil ? PrivateDatabase(directory: choice.directory) : nil
        defer { database?.stop() }
        do {
            let (login, epoch, access) = try open(database)
            return try serve(login, epoch, access, database, tls)
        } catch let failure as StartFailure {
            Console.error(failure.message, hint: failure.hint)
            return failure.exitCode
        } catch {
            Console.error("\(error)", hint: nil)
            return 1
        }
    }

    /// Brings the database to where the daemon can use it.
    ///
    /// A PostgreSQL of ours recovers by itself when one of its processes is killed, and takes no session meanwhile: that is waited
    /// for, as long as a command may wait. One of the operator's that is not there is for who started the daemon too early.
    private func open(_ database: PrivateDatabase?) throws -> (login: String, UUID, DaemonAccess) {
        let deadline = ContinuousClock.now + configuration.limits.requestTimeout
        while true {
            do {
                let conninfo = try choice.conninfo ?? start(database)
                try prepareSchema(conninfo, isPrivate: database != nil)
                let login = database == nil ? conninfo : try daemonLogin(conninfo)
                let (epoch, access) = try look(login)
                return (login, epoch, access)
            } catch let failure as StartFailure
                where failure.mayPass && database != nil && ContinuousClock.now < deadline
            {
                log(.warning, "database-lost", ["error": failure.message])
                usleep(50_000)
            }
        }
    }

    private func start(_ database: PrivateDatabase?) throws -> String {
        guard let database else { return "" }
        log(.info, "postgres-starting", ["directory": choice.directory])
        do throws(PrivateDatabaseError) {
            return try database.start()
        } catch {
            throw StartFailure(
                exitCode: error.exitCode, message: error.message, hint: error.hint, mayPass: error.mayPass)
        }
    }

    /// A private database is brought up to date; a database of the operator's is only looked at.
    private func prepareSchema(_ conninfo: String, isPrivate: Bool) throws {
        do throws(MigrationError) {
            let migrator = try Migrations.migrator(conninfo) { event in
                if case .waiting(let holder, _) = event {
                    log(.warning, "migration-waits", ["for": holder.description])
                }
            }
            let plan = try migrator.status()
            guard plan.conflicts.isEmpty, !plan.isAhead else {
                throw MigrationError(.conflict, plan.conflicts)
            }
            guard plan.pendingCount > 0 else { return }
            guard isPrivate else {
                throw MigrationError(
                    .conflict, "the database is behind: \(plan.pendingCount) migrations are pending",
                    hint: "Run: ieumd migrate up, with the same --database.")
            }
            let result = try migrator.up()
            for file in result.applied { log(.info, "migrated", ["file": file.name, "ms": file.milliseconds]) }
        } catch {
            throw StartFailure(
                exitCode: error.exitCode, message: "\(error)", hint: nil, mayPass: error.kind == .connection)
        }
    }

    /// The login of a daemon to its private database, where nobody but us reaches the server.
    private func daemonLogin(_ conninfo: String) throws -> String {
        do throws(DatabaseError) {
            return try GroupRole.daemon.login(over: BlockingConnection(conninfo, applicationName: "ieumd"), conninfo)
        } catch {
            throw StartFailure(exitCode: 4, message: "\(error)", hint: error.hint, mayPass: error.isPassing)
        }
    }

    /// Reads the epoch, and as whom the daemon may work.
    private func look(_ conninfo: String) throws -> (UUID, DaemonAccess) {
        do throws(DatabaseError) {
            let connection = try BlockingConnection(conninfo, applicationName: "ieumd")
            guard let access = try DaemonAccess.find(over: connection) else {
                throw DatabaseError(
                    .server, "this login is not a daemon's", hint: "Run: ieumd grant-daemon ROLE, as the owner.")
            }
            if access.kind == .owner {
                log(.warning, "daemon-is-owner", ["user": access.user, "run": "ieumd grant-daemon \(access.user)"])
            }
            if access.isOpenToAll {
                log(.warning, "database-open-to-all-logins", ["run": "ieumd grant-daemon"])
            }
            let rows = try connection.query("SELECT epoch FROM server")
            guard rows.rowCount == 1 else { throw DatabaseError(.protocol, "the table server is empty") }
            return (try rows.uuid(0, 0), access)
        } catch {
            throw StartFailure(exitCode: 4, message: "\(error)", hint: error.hint, mayPass: error.isPassing)
        }
    }

    private func serve(
        _ conninfo: String, _ epoch: UUID, _ access: DaemonAccess, _ database: PrivateDatabase?, _ tls: ServerTLS?
    ) throws -> Int32 {
        let loop = try EventLoop()
        var configuration = configuration
        configuration.database = conninfo
        configuration.sessionSetup = access.setup
        let server = try SyncServer(configuration: configuration, epoch: epoch, loop: loop, log: log, tls: tls)
        do throws(EventLoopError) {
            try server.start()
        } catch {
            throw StartFailure(
                exitCode: 1, message: "\(error)",
                hint: "Is another ieumd running? Choose other ports with --listen and --metrics.")
        }
        database?.supervise(on: loop, log: log)
        let signals = try [SIGTERM, SIGINT].map { number in
            try SignalWatch(on: loop, signal: number) {
                if server.isDraining { exit(128 + number) }
                log(.info, "draining", ["signal": number == SIGTERM ? "SIGTERM" : "SIGINT"])
                server.drain { loop.stop() }
            }
        }
        let hangUp = try SignalWatch(on: loop, signal: SIGHUP) { server.reloadCertificate() }
        let host = configuration.host.contains(":") ? "[\(configuration.host)]" : configuration.host
        Console.output("listening on \(host):\(server.port)\n")
        log(
            .info, "started",
            [
                "version": SyncServerVersion.current, "address": "\(host):\(server.port)",
                "epoch": epoch.uuidString.lowercased(), "metrics": server.metricsPort.map { String($0) } ?? "off",
                "tls": tls == nil ? "off" : "on",
            ])
        loop.run()
        withExtendedLifetime((signals, hangUp)) {}
        log(.info, "stopped")
        return 0
    }

    /// Each client takes a descriptor; the system's default of 1,024 is meant for programs that use select().
    private func raiseDescriptorLimit() {
        var limit = rlimit()
        let resource = __rlimit_resource_t(UInt32(RLIMIT_NOFILE.rawValue))
        guard getrlimit(resource, &limit) == 0 else { return }
        limit.rlim_cur = limit.rlim_max
        setrlimit(resource, &limit)
        let wanted = configuration.limits.maxConnections + 64
        guard limit.rlim_cur < rlim_t(wanted) else { return }
        log(
            .warning, "few-descriptors",
            [
                "limit": limit.rlim_cur, "wanted": wanted, "max-connections": configuration.limits.maxConnections,
                "hint": "who comes beyond is hung up on: raise it (ulimit -n, LimitNOFILE) or lower --max-connections",
            ])
    }
}

/// Why the server did not start.
private struct StartFailure: Error {
    var exitCode: Int32
    var message: String
    var hint: String?
    /// Whether it may be otherwise in a moment.
    var mayPass = false
}
