import EventLoop
import FoundationEssentials
import Glibc
import Postgres

/// The servers of one run: a fresh PostgreSQL cluster in a temporary folder, and daemons on databases in it.
///
/// Everything is gone when this object is. The cluster keeps what it acknowledged: fsync is on, and so is
/// `synchronous_commit`; daemon and yardsticks use the same server with the same settings.
final class TestBed {
    /// The folder of cluster and logs.
    let folder: String
    let conductor: Conductor

    private let cluster: PrivateCluster
    private let daemonProgram: String
    private let pgbenchProgram: String

    init(_ conductor: Conductor, daemon: String, parent: String) throws {
        self.conductor = conductor
        daemonProgram = daemon
        guard access(daemon, X_OK) == 0 else {
            throw BenchError("there is no \(daemon): make build makes it, --daemon names another")
        }
        let programs = try ServerPrograms.find()
        let beside = "\(programs.folder)/pgbench"
        pgbenchProgram = access(beside, X_OK) == 0 ? beside : "pgbench"
        var template = Array("\(parent)/ieum-bench-XXXXXX".utf8CString)
        guard mkdtemp(&template) != nil else { throw BenchError.system("cannot make a folder in \(parent)") }
        folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
        // PostgreSQL, started by root, runs as somebody else, who must be able to pass through.
        chmod(folder, 0o711)
        cluster = PrivateCluster(folder: "\(folder)/postgres", settings: .durable, programsFolder: programs.folder)
        do { try cluster.start() } catch {
            removeFolder()
            throw error
        }
    }

    deinit {
        cluster.stop(within: .seconds(10))
        removeFolder()
    }

    /// The postmaster's process.
    func postmaster() throws -> pid_t {
        guard let pid = cluster.pid, !cluster.hasEnded else { throw BenchError("PostgreSQL has ended") }
        return pid
    }

    /// A meter for PostgreSQL and, if given, a daemon.
    func meter(_ daemon: Daemon? = nil) throws -> CPUMeter {
        CPUMeter(postmaster: try postmaster(), daemon: daemon?.pid)
    }

    /// How to connect to a database of the cluster.
    func conninfo(_ database: String) throws -> String {
        guard let conninfo = cluster.conninfo(database: database) else {
            throw BenchError("PostgreSQL was not started")
        }
        return conninfo
    }

    /// Runs SQL in a database.
    @discardableResult
    func execute(_ sql: String, in database: String) throws -> [QueryResult] {
        try conductor.checkInterruption()
        return try BlockingConnection(try conninfo(database), applicationName: "ieum-bench").execute(sql)
    }

    /// Makes a database, empty or as a copy of another.
    func createDatabase(_ name: String, from template: String = "template1") throws {
        try execute("CREATE DATABASE \(name) TEMPLATE \(template)", in: "postgres")
    }

    /// Drops a database, if there is one.
    func dropDatabase(_ name: String) throws {
        try execute("DROP DATABASE IF EXISTS \(name)", in: "postgres")
    }

    /// Makes a database with the daemon's schema.
    func createMigratedDatabase(_ name: String) throws {
        try createDatabase(name)
        try ChildProcess(conductor, [daemonProgram, "migrate", "up", "--database", try conninfo(name)])
            .finish(atMost: .seconds(60))
    }

    /// Starts a daemon on a database.
    /// - Parameters:
    ///   - isDurable: false for setting up only, when nothing is measured and nobody misses what a crash takes.
    ///   - isSecure: whether it speaks TLS, with a certificate of its own.
    ///   - options: more for `ieumd serve`.
    func startDaemon(
        on database: String, isDurable: Bool = true, isSecure: Bool = false, options: [String] = []
    ) throws -> Daemon {
        let log = "\(folder)/ieumd.log"
        let relaxation = isDurable ? "" : " options='-c synchronous_commit=off'"
        do {
            return try Daemon(
                conductor, program: daemonProgram, database: try conninfo(database) + relaxation, log: log,
                certificate: isSecure ? try makeCertificate() : nil, options: options)
        } catch let error as BenchError {
            throw BenchError("\(error); the end of its log: \(Self.tail(of: log))")
        }
    }

    private func makeCertificate() throws -> (file: String, key: String) {
        let issued = try CertificateMaker.make(.init(hosts: ["127.0.0.1"], days: 1))
        let file = try write(String(decoding: issued.certificateText(), as: UTF8.self), to: "server.pem")
        let key = try write(String(decoding: issued.keyText(), as: UTF8.self), to: "server.key")
        chmod(key, 0o600)
        return (file, key)
    }

    /// Runs pgbench on a database and gives back what it printed.
    func pgbench(_ arguments: [String], database: String, atMost limit: Duration) throws -> String {
        try ChildProcess(conductor, [pgbenchProgram] + arguments + [try conninfo(database)]).finish(atMost: limit)
    }

    /// Writes a file into the folder.
    /// - Returns: its path.
    func write(_ text: String, to name: String) throws -> String {
        let path = "\(folder)/\(name)"
        try writeFile(path, text)
        return path
    }

    private static func tail(of path: String) -> String {
        guard let text = try? readProcFile(path) else { return "empty" }
        return text.split(separator: "\n").suffix(5).joined(separator: " | ")
    }

    private func removeFolder() {
        try? FileManager.default.removeItem(atPath: folder)
    }
}

/// Writes a file anew.
func writeFile(_ path: String, _ text: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw BenchError.system(path) }
    defer { close(descriptor) }
    let bytes = Array(text.utf8)
    var written = 0
    while written < bytes.count {
        let count = bytes.withUnsafeBytes {
            Glibc.write(descriptor, $0.baseAddress.map { $0 + written }, $0.count - written)
        }
        guard count > 0 else { throw BenchError.system(path) }
        written += count
    }
}
