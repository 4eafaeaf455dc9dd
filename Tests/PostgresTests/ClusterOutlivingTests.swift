import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("A private cluster never outlives its process")
struct ClusterOutlivingTests {
    @Test("kill -9 of the process stops the server, and the next start finds its data", .timeLimit(.minutes(10)))
    func killedProcess() async throws {
        let folder = try TestFolder("killed")
        try PreparedData.copy(to: folder.path)
        let path = folder.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let cluster = PrivateCluster(folder: path)
            try cluster.start()
            let connection = try BlockingConnection(#require(cluster.conninfo()))
            try connection.execute("CREATE TABLE kept AS SELECT 1 AS a")
            kill(getpid(), SIGKILL)
        }
        // Every process of the server holds this lock, so its being free is their end.
        let lock = open("\(path)/server.lock", O_RDWR)
        #expect(lock >= 0 && flock(lock, LOCK_EX) == 0)
        close(lock)
        // It had time for an orderly end.
        let log = try String(contentsOfFile: "\(path)/postgres.log", encoding: .utf8)
        #expect(log.contains("database system is shut down"))
        let cluster = PrivateCluster(folder: path)
        try cluster.start()
        #expect(try BlockingConnection(#require(cluster.conninfo())).query("SELECT a FROM kept").int4(0, 0) == 1)
    }

    @Test("a start right after kill -9 waits for the old server's end", .timeLimit(.minutes(10)))
    func startAtOnce() async throws {
        let folder = try TestFolder("at-once")
        try PreparedData.copy(to: folder.path)
        let path = folder.path
        for round in 1...3 {
            await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String, round = round as Int] in
                let cluster = PrivateCluster(folder: path)
                try cluster.start()
                let connection = try BlockingConnection(#require(cluster.conninfo()))
                try connection.execute("CREATE TABLE IF NOT EXISTS t (a int); INSERT INTO t VALUES (\(round))")
                kill(getpid(), SIGKILL)
            }
        }
        let cluster = PrivateCluster(folder: path)
        try cluster.start()
        #expect(try BlockingConnection(#require(cluster.conninfo())).query("SELECT count(*) FROM t").int8(0, 0) == 3)
    }

    @Test("kill -9 in the middle of initdb leaves a folder that starts", .timeLimit(.minutes(10)))
    func killedInitdb() async throws {
        let folder = try TestFolder("initdb")
        let path = folder.path
        await #expect(processExitsWith: .signal(SIGKILL)) { [path = path as String] in
            let killer = Thread {
                while !FileManager.default.fileExists(atPath: "\(path)/data.unfinished/PG_VERSION") {}
                kill(getpid(), SIGKILL)
            }
            killer.start()
            try PrivateCluster(folder: path).start()
        }
        #expect(!FileManager.default.fileExists(atPath: "\(path)/data"))
        let cluster = PrivateCluster(folder: path)
        try cluster.start()
        #expect(try BlockingConnection(#require(cluster.conninfo())).query("SELECT 42::int4").int4(0, 0) == 42)
    }

    @Test("kill -9 of the supervising shell ends the server too", .timeLimit(.minutes(10)))
    func killedSupervisor() throws {
        let folder = try TestFolder("supervisor")
        try PreparedData.copy(to: folder.path)
        let cluster = PrivateCluster(folder: folder.path, settings: .throwaway)
        try cluster.start()
        let server = try #require(cluster.pid)
        let stat = try String(contentsOfFile: "/proc/\(server)/stat", encoding: .utf8)
        // "pid (name) state parent …"
        let parent = try #require(
            stat.split(separator: ")").last?.split(separator: " ").dropFirst().first.flatMap { Int32($0) })
        let loop = try EventLoop()
        var isNoticed = false
        let watch = try #require(try cluster.watchEnd(on: loop) { isNoticed = true })
        kill(parent, SIGKILL)
        #expect(loop.run(until: { isNoticed }, timeout: .seconds(60)))
        watch.cancel()
        try cluster.start()
        #expect(cluster.pid != server)
        // Its new parent may be slow to reap it, but it runs no more.
        let state = try? String(contentsOfFile: "/proc/\(server)/stat", encoding: .utf8).split(separator: ")").last
        #expect(state == nil || state?.hasPrefix(" Z") == true)
        #expect(try BlockingConnection(#require(cluster.conninfo())).query("SELECT 42::int4").int4(0, 0) == 42)
    }
}
