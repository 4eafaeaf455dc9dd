import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Private cluster")
struct PrivateClusterTests {
    let folder: TestFolder

    init() throws {
        folder = try TestFolder("private")
    }

    private func answer(_ cluster: PrivateCluster) throws -> Int64 {
        try BlockingConnection(#require(cluster.conninfo())).query("SELECT 42::int8").int8(0, 0)
    }

    @Test("it is made, started, stopped and started again with its data, and listens on its socket only")
    func lifeCycle() throws {
        let cluster = PrivateCluster(folder: folder.path + "/db")
        #expect(cluster.conninfo() == nil && cluster.pid == nil && !cluster.hasEnded)
        try cluster.start()
        let conninfo = try #require(cluster.conninfo())
        let connection = try BlockingConnection(conninfo)
        try connection.execute("CREATE TABLE kept AS SELECT 1 AS a")
        for (setting, value) in [
            ("fsync", "on"), ("full_page_writes", "on"), ("synchronous_commit", "on"), ("data_checksums", "on"),
            ("server_encoding", "UTF8"), ("lc_collate", "C"), ("listen_addresses", ""),
        ] {
            #expect(try connection.query("SELECT current_setting('\(setting)')").text(0, 0) == value, "\(setting)")
        }
        try cluster.start()
        #expect(try connection.query("SELECT a FROM kept").int4(0, 0) == 1)
        let pid = try #require(cluster.pid)
        cluster.stop()
        #expect(kill(pid, 0) != 0)
        #expect(cluster.pid == nil && !cluster.hasEnded)
        #expect(throws: DatabaseError.self) { try BlockingConnection(conninfo) }
        try cluster.start()
        #expect(try BlockingConnection(conninfo).query("SELECT a FROM kept").int4(0, 0) == 1)
        // Nobody but the server's user and root gets to the socket.
        let socket = "\(cluster.folder)/socket"
        for path in [socket, "\(socket)/.s.PGSQL.5432"] {
            let mode = try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
            #expect(mode == 0o700, "\(path)")
        }
        if geteuid() == 0 {
            let owner =
                try FileManager.default.attributesOfItem(atPath: "\(cluster.folder)/data")[.ownerAccountID] as? Int
            #expect(owner != 0)
        }
    }

    @Test("a second server on one folder is refused, naming who runs the first")
    func secondStart() throws {
        try PreparedData.copy(to: folder.path)
        let first = PrivateCluster(folder: folder.path, settings: .throwaway)
        try first.start()
        let second = PrivateCluster(folder: folder.path + "/../" + (folder.path as NSString).lastPathComponent)
        let error = #expect(throws: ClusterError.self) { try second.start() }
        #expect(error?.message.contains("process \(getpid())") == true)
        #expect(try answer(first) == 42)
        first.stop()
        try second.start()
        #expect(try answer(second) == 42)
    }

    @Test("a killed server is noticed, and starts again with what it had acknowledged")
    func killedServer() throws {
        try PreparedData.copy(to: folder.path)
        let cluster = PrivateCluster(folder: folder.path)
        try cluster.start()
        try BlockingConnection(#require(cluster.conninfo())).execute("CREATE TABLE t (a int)")
        let loop = try EventLoop()
        for round in 1...3 {
            let connection = try BlockingConnection(#require(cluster.conninfo()))
            try connection.execute("INSERT INTO t VALUES (\(round))")
            var ends = 0
            let watch = try #require(try cluster.watchEnd(on: loop) { ends += 1 })
            #expect(!cluster.hasEnded)
            let pid = try #require(cluster.pid)
            kill(pid, SIGKILL)
            let isNoticed = loop.run(until: { ends > 0 }, timeout: .seconds(60))
            #expect(isNoticed && cluster.hasEnded)
            withExtendedLifetime(watch) {}
            // At once, while the old server's processes may be at their end still.
            try cluster.start()
            #expect(cluster.pid != pid && !cluster.hasEnded)
            let rows = try BlockingConnection(#require(cluster.conninfo())).query("SELECT count(*) FROM t")
            #expect(try rows.int8(0, 0) == Int64(round))
        }
    }

    @Test("a pid file left behind does not stop it, be its number dead, ours or a stranger's")
    func stalePIDFile() throws {
        try PreparedData.copy(to: folder.path)
        let cluster = PrivateCluster(folder: folder.path, settings: .throwaway)
        try cluster.start()
        let data = "\(cluster.folder)/data"
        let left = try String(contentsOfFile: "\(data)/postmaster.pid", encoding: .utf8).split(separator: "\n")
        cluster.stop()
        let stranger = try Sleeper(asOwnerOf: data)
        for pid in [999_999_999, getpid(), stranger.pid, 1] {
            let lines = ["\(pid)"] + left.dropFirst()
            try (lines.joined(separator: "\n") + "\n").write(
                toFile: "\(data)/postmaster.pid", atomically: false, encoding: .utf8)
            try lines.joined(separator: "\n").write(
                toFile: "\(cluster.folder)/socket/.s.PGSQL.5432.lock", atomically: false, encoding: .utf8)
            try cluster.start()
            #expect(try answer(cluster) == 42)
            cluster.stop()
        }
    }

    @Test("data of another major version is refused by name, and left alone")
    func otherVersion() throws {
        try PreparedData.copy(to: folder.path)
        let cluster = PrivateCluster(folder: folder.path, settings: .throwaway)
        try cluster.start()
        cluster.stop()
        let version = "\(cluster.folder)/data/PG_VERSION"
        let original = try String(contentsOfFile: version, encoding: .utf8)
        try "9\n".write(toFile: version, atomically: false, encoding: .utf8)
        let error = #expect(throws: ClusterError.self) { try cluster.start() }
        #expect(error?.message.contains("PostgreSQL 9") == true)
        #expect(error?.hint?.contains("postgresql-9") == true)
        try original.write(toFile: version, atomically: false, encoding: .utf8)
        try cluster.start()
        #expect(try answer(cluster) == 42)
    }

    @Test("an interrupted initdb leaves nothing that looks ready")
    func interruptedInitdb() throws {
        let half = "\(folder.path)/data.unfinished"
        try FileManager.default.createDirectory(atPath: half, withIntermediateDirectories: false)
        try "15\n".write(toFile: "\(half)/PG_VERSION", atomically: false, encoding: .utf8)
        let cluster = PrivateCluster(folder: folder.path, settings: .throwaway)
        try cluster.start()
        #expect(try answer(cluster) == 42)
        #expect(!FileManager.default.fileExists(atPath: half))
    }

    @Test("a folder of other things is refused and left alone")
    func foreignFolder() throws {
        let file = "\(folder.path)/thesis.txt"
        try "…".write(toFile: file, atomically: false, encoding: .utf8)
        let error = #expect(throws: ClusterError.self) { try PrivateCluster(folder: folder.path).start() }
        #expect(error?.message.contains("thesis.txt") == true)
        #expect(FileManager.default.fileExists(atPath: file))
        let notData = try TestFolder("not-data")
        try FileManager.default.createDirectory(atPath: "\(notData.path)/data", withIntermediateDirectories: false)
        #expect(throws: ClusterError.self) { try PrivateCluster(folder: notData.path).start() }
    }

    @Test("missing programs are told with the package that holds them")
    func missingPrograms() throws {
        let error = #expect(throws: ClusterError.self) {
            try PrivateCluster(folder: folder.path + "/db", programsFolder: "/nonexistent").start()
        }
        #expect(error?.hint?.contains("postgresql") == true)
    }

    @Test("a wrong setting fails the start with the server's reason, and the folder is free again")
    func wrongSetting() throws {
        try PreparedData.copy(to: folder.path)
        let cluster = PrivateCluster(folder: folder.path, settings: .throwaway.with(["shared_buffers": "many"]))
        let error = #expect(throws: ClusterError.self) { try cluster.start() }
        #expect(error?.description.contains("shared_buffers") == true)
        #expect(error?.hint?.contains("postgres.log") == true)
        let other = PrivateCluster(folder: folder.path, settings: .throwaway)
        try other.start()
        #expect(try answer(other) == 42)
    }

    @Test("paths with spaces and quotes, and paths too long for a socket, work")
    func awkwardPaths() throws {
        for name in ["it's a \"folder\", 한들", String(repeating: "long", count: 30)] {
            let path = "\(folder.path)/\(name)"
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
            try PreparedData.copy(to: path)
            let cluster = PrivateCluster(folder: path, settings: .throwaway)
            try cluster.start()
            #expect(try answer(cluster) == 42)
            cluster.stop()
            try cluster.start()
            #expect(try answer(cluster) == 42)
            let socket = try BlockingConnection(#require(cluster.conninfo()))
                .query("SELECT current_setting('unix_socket_directories')").text(0, 0)
            cluster.stop()
            if name.hasPrefix("long") { #expect(!FileManager.default.fileExists(atPath: socket)) }
        }
    }

    @Test("a folder that the server's user cannot reach is told before anything is made", .enabled(if: geteuid() == 0))
    func closedParent() throws {
        let closed = "\(folder.path)/closed"
        try FileManager.default.createDirectory(
            atPath: closed, withIntermediateDirectories: false, attributes: [.posixPermissions: 0o700])
        let error = #expect(throws: ClusterError.self) { try PrivateCluster(folder: "\(closed)/db").start() }
        #expect(error?.message.contains(closed) == true)
        #expect(error?.hint?.contains("chmod") == true)
    }
}

/// A process of the user who owns a path, that is no PostgreSQL and ends with its object.
private final class Sleeper {
    let pid: Int32

    init(asOwnerOf path: String) throws {
        let owner = try FileManager.default.attributesOfItem(atPath: path)[.ownerAccountID] as? Int ?? 0
        let become = geteuid() == 0 ? ["setpriv", "--reuid=\(owner)", "--clear-groups"] : []
        pid = try ChildProcess.spawn(become + ["sleep", "600"], descriptors: [0, 1, 2])
    }

    deinit {
        kill(pid, SIGKILL)
        _ = ChildProcess.wait(pid)
    }
}
