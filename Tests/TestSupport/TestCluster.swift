import Foundation
import Postgres
import Synchronization

/// A real PostgreSQL for tests, in a temporary folder.
///
/// ``shared`` is one for the whole test process, without fsync: for everything that does not test durability. A test
/// that kills servers starts one of its own by ``start(durable:)``.
public final class TestCluster: Sendable {
    /// The server.
    public let cluster: PrivateCluster
    private let folder: TestFolder
    private let administration: Mutex<Administration>

    /// What makes and drops databases, one at a time.
    private struct Administration {
        var connection: BlockingConnection
        var templates: Set<String> = []
    }

    private static let sharedResult: Result<TestCluster, any Error> = Result {
        TestFolder.removeLeftovers()
        let cluster = try start(durable: false)
        // The process's end is this cluster's end: static values are never freed.
        atexit { (try? TestCluster.shared)?.end() }
        return cluster
    }

    /// The test process's own server, started at the first use and ended with the process.
    ///
    /// Throws where PostgreSQL is not installed, so that the test fails and names the package: nothing is skipped.
    public static var shared: TestCluster {
        get throws { try sharedResult.get() }
    }

    /// Starts a server of one's own.
    /// - Parameter durable: whether it keeps what it acknowledged, as in production; tests of durability say true.
    public static func start(durable: Bool, settings: [String: String] = [:]) throws -> TestCluster {
        let folder = try TestFolder("cluster", inMemory: !durable)
        let preset = durable ? ClusterSettings.durable : .throwaway
        try PreparedData.copy(to: folder.path)
        let cluster = PrivateCluster(folder: folder.path, settings: preset.with(settings))
        try cluster.start()
        return try TestCluster(cluster, folder)
    }

    private init(_ cluster: PrivateCluster, _ folder: TestFolder) throws {
        self.cluster = cluster
        self.folder = folder
        let conninfo = try Self.conninfo(of: cluster, database: "postgres")
        administration = try Mutex(
            Administration(connection: BlockingConnection(conninfo, applicationName: "ieum-test")))
    }

    deinit {
        end()
    }

    private func end() {
        cluster.stop(within: .seconds(5))
        try? FileManager.default.removeItem(atPath: folder.path)
    }

    /// How to connect to a database of this server.
    public func conninfo(database: String = "postgres") throws -> String {
        try Self.conninfo(of: cluster, database: database)
    }

    private static func conninfo(of cluster: PrivateCluster, database: String) throws -> String {
        guard let conninfo = cluster.conninfo(database: database) else { throw ClusterError("it was not started") }
        return conninfo
    }

    /// Runs SQL in the database `postgres`, outside a transaction, on a connection that is made anew after a loss.
    public func administrate(_ sql: String) throws {
        try administration.withLock { try run(sql, &$0) }
    }

    /// Makes a template once per cluster and name: an empty database filled by `build`, to be copied for each test.
    /// - Returns: the name to give to ``TestDatabase/make(template:on:)``.
    public func template(_ name: String, build: (_ conninfo: String) throws -> Void) throws -> String {
        try administration.withLock { state in
            if state.templates.contains(name) { return name }
            try run("DROP DATABASE IF EXISTS \(BlockingConnection.quoteIdentifier(name)) WITH (FORCE)", &state)
            try run("CREATE DATABASE \(BlockingConnection.quoteIdentifier(name))", &state)
            try build(conninfo(database: name))
            state.templates.insert(name)
            return name
        }
    }

    private func run(_ sql: String, _ state: inout Administration) throws {
        if !state.connection.isConnected {
            state.connection = try BlockingConnection(conninfo(), applicationName: "ieum-test")
        }
        try state.connection.execute(sql)
    }
}
