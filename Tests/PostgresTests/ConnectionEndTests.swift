import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("The end of a connection on a loop")
struct ConnectionEndTests {
    let driver: LoopDriver

    init() throws {
        driver = try LoopDriver()
    }

    @Test("a terminated session fails everything pending once and tells its end once, last")
    func terminated() throws {
        let database = try TestDatabase.make()
        let connection = try driver.connect(database.conninfo)
        var events: [String] = []
        connection.onEnded = { events.append("ended \($0.kind)") }
        for _ in 0..<3 {
            connection.execute(sql: "SELECT pg_sleep(600)") { events.append("\($0.failure?.kind == .connection)") }
        }
        try database.connect().execute("SELECT pg_terminate_backend(\(connection.backendPID))")
        driver.wait { events.last?.hasPrefix("ended") == true }
        #expect(events == ["true", "true", "true", "ended connection"])
        let late = try driver.run(connection, "SELECT 1")
        #expect(late.failure?.kind == .connection)
        #expect(events.count == 4)
    }

    @Test("an idle session that is terminated tells its end")
    func idle() throws {
        let database = try TestDatabase.make()
        let connection = try driver.connect(database.conninfo)
        let error = try driver.answer { done in
            connection.onEnded = done
            #expect(throws: Never.self) {
                try database.connect().execute("SELECT pg_terminate_backend(\(connection.backendPID))")
            }
        }
        #expect(error.kind == .connection)
        #expect(error.isRetryable)
    }

    @Test("killing the server with 100 executions under way fails each of them once")
    func killedServer() throws {
        let server = try TestCluster.start(durable: false)
        let connection = try driver.connect(server.conninfo())
        var counts = [Int](repeating: 0, count: 100)
        var isEnded = 0
        connection.onEnded = { _ in isEnded += 1 }
        for index in counts.indices {
            connection.execute(sql: index == 0 ? "SELECT pg_sleep(600)" : "SELECT 1") { result in
                counts[index] += 1
                #expect(result.failure?.kind == .connection)
            }
        }
        let server9 = try #require(server.cluster.pid)
        kill(server9, SIGKILL)
        kill(connection.backendPID, SIGKILL)
        driver.wait { isEnded > 0 }
        #expect(counts.allSatisfy { $0 == 1 })
        #expect(isEnded == 1)
        // The connection may end before its server has: a start would then find it running.
        var end = pollfd(fd: try #require(server.cluster.endDescriptor), events: Int16(POLLIN), revents: 0)
        #expect(poll(&end, 1, 60_000) == 1)
        try server.cluster.start()
        let next = try driver.connect(server.conninfo())
        #expect(try driver.execute(next, "SELECT 1::int4").int4(0, 0) == 1)
    }

    @Test("closing inside a completion fails the rest once and calls nothing else", arguments: [0, 50, 99])
    func closeInside(at number: Int) throws {
        let database = try TestDatabase.make()
        let connection = try driver.connect(database.conninfo)
        var answers: [Bool] = []
        connection.onEnded = { _ in Issue.record("close is no loss") }
        for index in 0..<100 {
            connection.execute(sql: "SELECT 1") { result in
                answers.append(result.failure == nil)
                if index == number { connection.close() }
            }
        }
        driver.wait { answers.count == 100 }
        #expect(answers == (0..<100).map { $0 <= number })
        #expect(!connection.isOpen)
    }

    @Test("a connection that is let go inside a completion fails the rest once")
    func letGo() throws {
        let database = try TestDatabase.make()
        var connection: DatabaseConnection? = try driver.connect(database.conninfo)
        weak let weakly = connection
        var answers = 0
        for _ in 0..<10 {
            connection?.execute(sql: "SELECT 1") { _ in
                answers += 1
                connection = nil
            }
        }
        driver.wait { answers == 10 }
        #expect(weakly == nil)
    }

    @Test("a connection opened inside a failing completion works, though its socket may have the lost one's number")
    func reopenInside() throws {
        let database = try TestDatabase.make()
        let settings = try ConnectionSettings(database.conninfo)
        let killer = try database.connect()
        var connection = try driver.connect(database.conninfo)
        for _ in 0..<5 {
            var next: DatabaseConnection?
            var isOpen = false
            connection.execute(sql: "SELECT pg_sleep(600)") { _ in
                let fresh = DatabaseConnection(on: driver.loop, settings)
                next = fresh
                fresh.open { isOpen = $0.failure == nil }
            }
            try killer.execute("SELECT pg_terminate_backend(\(connection.backendPID))")
            driver.wait(until: { isOpen }, "the second connection never opened")
            connection = try #require(next)
            #expect(try driver.execute(connection, "SELECT 1::int4").int4(0, 0) == 1)
        }
    }

    @Test("executing inside completions and notifications works")
    func reenter() throws {
        let database = try TestDatabase.make()
        let connection = try driver.connect(database.conninfo)
        var depth = 0
        func again() {
            connection.execute(sql: "SELECT 1") { _ in
                depth += 1
                if depth < 100 { again() }
            }
        }
        again()
        driver.wait { depth == 100 }
    }

    @Test("a silent server is lost after the limit, and everything pending fails by time-out")
    func silence() throws {
        let database = try TestDatabase.make()
        let connection = try driver.connect(database.conninfo, silenceLimit: .milliseconds(200))
        var answers: [DatabaseError?] = []
        connection.onEnded = { answers.append($0) }
        connection.execute(sql: "SELECT pg_sleep(600)") { answers.append($0.failure) }
        connection.execute(sql: "SELECT 1") { answers.append($0.failure) }
        driver.wait { answers.count == 3 }
        #expect(answers.map { $0?.kind } == [.timeout, .timeout, .timeout])
    }

    @Test("a server that talks now and then is not silent, and an idle one may be")
    func noSilence() throws {
        let database = try TestDatabase.make()
        var losses: [DatabaseError] = []
        // Where the machine stands still for as long as the limit, the server is silent.
        for _ in 0..<5 {
            let before = losses.count
            let connection = try driver.connect(database.conninfo, silenceLimit: .milliseconds(400))
            connection.onEnded = { losses.append($0) }
            for _ in 0..<6 where losses.count == before { _ = try driver.run(connection, "SELECT pg_sleep(0.1)") }
            var isOver = false
            let timer = EventLoop.Timer(on: driver.loop, after: .milliseconds(900)) { isOver = true }
            driver.wait { isOver }
            timer.cancel()
            if losses.count == before, try driver.run(connection, "SELECT 1").failure == nil { return }
        }
        Issue.record("lost each time: \(losses)")
    }

    @Test("opening fails with the server's code or the system's word")
    func failedOpening() throws {
        let database = try TestDatabase.make()
        func failure(_ conninfo: String) throws -> DatabaseError? {
            let connection = try DatabaseConnection(on: driver.loop, ConnectionSettings(conninfo))
            return try driver.answer { connection.open($0) }.failure
        }
        let noDatabase = try failure(database.conninfo + " dbname=nowhere")
        #expect(noDatabase?.kind == .connection)
        #expect(noDatabase?.sqlState == .invalidCatalogName)
        #expect(noDatabase?.isRetryable == false)
        let noRole = try failure(database.conninfo + " user=nobody_at_all")
        #expect(noRole?.sqlState?.conditionClass == "28")
        let noSocket = try failure("host=/nonexistent dbname=x user=x")
        #expect(noSocket?.kind == .connection)
        #expect(noSocket?.isRetryable == true)
        // A port that was free a moment ago.
        let noPort = try failure("host=127.0.0.1 port=\(FreePort.find()) dbname=x user=x")
        #expect(noPort?.message.contains("refused") == true)
    }

    @Test("opening a server that never answers ends at connect_timeout", .timeLimit(.minutes(10)))
    func silentOpening() throws {
        let listener = try FreePort.Listener()
        let connection = try DatabaseConnection(
            on: driver.loop,
            ConnectionSettings("host=127.0.0.1 port=\(listener.port) dbname=x user=x connect_timeout=2"))
        let result = try driver.answer { connection.open($0) }
        #expect(result.failure?.kind == .timeout)
        let blocking = #expect(throws: DatabaseError.self) {
            try BlockingConnection("host=127.0.0.1 port=\(listener.port) dbname=x user=x connect_timeout=2")
        }
        #expect(blocking?.kind == .timeout)
    }

    @Test("a wrong password is told by its code and never shown")
    func wrongPassword() throws {
        let server = try TestCluster.start(durable: false)
        try server.administrate("CREATE ROLE player LOGIN PASSWORD 'right'")
        let access = "\(server.cluster.folder)/data/pg_hba.conf"
        try "local all player scram-sha-256\nlocal all all trust\n".write(
            toFile: access, atomically: false, encoding: .utf8)
        try server.administrate("SELECT pg_reload_conf()")
        let conninfo = try server.conninfo()
        var error: DatabaseError?
        // The server reads its file again when it comes to it.
        driver.wait {
            error =
                (Result { () throws(DatabaseError) in
                    _ = try BlockingConnection(conninfo + " user=player password=hunter2")
                }).failure
            return error != nil
        }
        #expect(error?.sqlState == .invalidPassword)
        #expect(error?.description.contains("hunter2") == false)
        let settings = try ConnectionSettings(conninfo + " user=player password=hunter2")
        #expect(!"\(settings)".contains("hunter2") && !String(reflecting: settings).contains("hunter2"))
        let connection = DatabaseConnection(on: driver.loop, settings)
        #expect(try driver.answer { connection.open($0) }.failure?.sqlState == .invalidPassword)
        _ = try driver.connect(conninfo + " user=player password=right")
    }
}
