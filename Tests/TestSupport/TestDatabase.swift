import Postgres
import Synchronization

/// A database of a test's own, made from a template and dropped when its object goes, whoever is still connected.
public final class TestDatabase: Sendable {
    /// Its name, unique in the server.
    public let name: String
    /// How to connect to it.
    public let conninfo: String
    /// The server that holds it.
    public let cluster: TestCluster

    private static let counter = Atomic<Int>(0)

    /// Makes a database.
    ///
    /// - Parameters:
    ///   - template: the database to copy, which nobody may be connected to; nil makes an empty one.
    ///   - cluster: the server; nil is the shared one.
    public static func make(template: String? = nil, on cluster: TestCluster? = nil) throws -> TestDatabase {
        let cluster = try cluster ?? TestCluster.shared
        let name = "test_\(counter.add(1, ordering: .relaxed).newValue)"
        let origin = template.map { " TEMPLATE \(BlockingConnection.quoteIdentifier($0))" } ?? ""
        try cluster.administrate("CREATE DATABASE \(name)\(origin)")
        return try TestDatabase(name, cluster)
    }

    private init(_ name: String, _ cluster: TestCluster) throws {
        self.name = name
        self.cluster = cluster
        conninfo = try cluster.conninfo(database: name)
    }

    deinit {
        // A test may have killed the server, and the cluster's folder is removed in any case.
        try? cluster.administrate("DROP DATABASE IF EXISTS \(name) WITH (FORCE)")
    }

    /// Connects to it, waiting.
    public func connect(
        sessionSettings: KeyValuePairs<String, String> = [:], onNotice: @escaping (DatabaseNotice) -> Void = { _ in }
    ) throws -> BlockingConnection {
        try BlockingConnection(
            conninfo, applicationName: "ieum-test", sessionSettings: sessionSettings, onNotice: onNotice)
    }
}
