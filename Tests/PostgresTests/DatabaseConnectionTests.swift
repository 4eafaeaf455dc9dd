import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Connection on a loop")
struct DatabaseConnectionTests {
    let database: TestDatabase
    let driver: LoopDriver

    init() throws {
        database = try TestDatabase.make()
        driver = try LoopDriver()
    }

    @Test("an error in the middle of 100 pipelined statements fails only itself, and the order is kept")
    func errorInTheMiddle() throws {
        try database.connect().execute("CREATE TABLE t (a int PRIMARY KEY)")
        let connection = try driver.connect(database.conninfo)
        let insert = Statement("insert", "INSERT INTO t VALUES ($1) RETURNING a", parameterTypes: [.int4])
        var parameters = ParameterList()
        var answers: [Result<Int32, DatabaseError>] = []
        for number in 0..<100 {
            parameters.removeAll()
            parameters.append(Int32(number == 50 ? 49 : number))
            connection.execute(insert, parameters) { result in
                answers.append(result.flatMap { rows in Result { () throws(DatabaseError) in try rows.int4(0, 0) } })
            }
        }
        #expect(answers.isEmpty, "no completion comes from inside execute")
        driver.wait { answers.count == 100 }
        for (number, answer) in answers.enumerated() {
            if number == 50 {
                guard case .failure(let error) = answer else { Issue.record("50 succeeded"); continue }
                #expect(error.sqlState == .uniqueViolation)
                #expect(error.constraint == "t_pkey")
                #expect(error.detail == "Key (a)=(49) already exists.")
            } else {
                #expect(answer == .success(Int32(number)))
            }
        }
        #expect(try driver.execute(connection, "SELECT count(*) FROM t").int8(0, 0) == 99)
    }

    @Test("an error at commit is the execution's own, and its neighbours succeed")
    func deferredConstraint() throws {
        try database.connect().execute("CREATE TABLE t (a int CONSTRAINT t_a_key UNIQUE DEFERRABLE INITIALLY DEFERRED)")
        let connection = try driver.connect(database.conninfo)
        let insert = Statement("insert", "INSERT INTO t VALUES ($1)", parameterTypes: [.int4])
        var answers: [DatabaseError?] = []
        for number: Int32 in [1, 2, 1, 3, 2, 4] {
            var parameters = ParameterList()
            parameters.append(number)
            connection.execute(insert, parameters) { answers.append($0.failure) }
        }
        driver.wait { answers.count == 6 }
        #expect(answers.map { $0?.sqlState } == [nil, nil, .uniqueViolation, nil, .uniqueViolation, nil])
        #expect(answers[2]?.constraint == "t_a_key")
        #expect(try driver.execute(connection, "SELECT count(*) FROM t").int8(0, 0) == 4)
    }

    @Test("a unit of several statements is one transaction")
    func together() throws {
        try database.connect().execute("CREATE TABLE t (a int PRIMARY KEY)")
        let connection = try driver.connect(database.conninfo)
        let insert = Statement("insert", "INSERT INTO t VALUES ($1) RETURNING a", parameterTypes: [.int4])
        func unit(_ numbers: [Int32]) -> [(statement: Statement, parameters: ParameterList)] {
            numbers.map { number in
                var parameters = ParameterList()
                parameters.append(number)
                return (insert, parameters)
            }
        }
        let good = try driver.answer { connection.executeTogether(unit([1, 2, 3]), $0) }.get()
        #expect(try good.map { result throws(DatabaseError) in try result.int4(0, 0) } == [1, 2, 3])
        let bad = try driver.answer { connection.executeTogether(unit([4, 1, 5]), $0) }
        #expect(bad.failure?.sqlState == .uniqueViolation)
        #expect(try driver.execute(connection, "SELECT count(*) FROM t").int8(0, 0) == 3)
        let none = try driver.answer { connection.executeTogether([], $0) }.get()
        #expect(none.isEmpty)
    }

    @Test("a statement that cannot be prepared says why to every execution, and works once it can")
    func failedPreparation() throws {
        let connection = try driver.connect(database.conninfo)
        let count = Statement("count", "SELECT count(*) FROM later")
        var answers: [Result<QueryResult, DatabaseError>] = []
        for _ in 0..<3 { connection.execute(count) { answers.append($0) } }
        connection.execute(sql: "SELECT 1") { answers.append($0) }
        driver.wait { answers.count == 4 }
        #expect(answers.map { $0.failure?.sqlState } == [.undefinedTable, .undefinedTable, .undefinedTable, nil])
        try database.connect().execute("CREATE TABLE later (a int)")
        #expect(try driver.answer { connection.execute(count, ParameterList(), $0) }.get().int8(0, 0) == 0)
    }

    @Test("parameters of other types than the statement's are refused before they are sent, in their turn")
    func wrongTypes() throws {
        let connection = try driver.connect(database.conninfo)
        let echo = Statement("echo", "SELECT $1::int8", parameterTypes: [.int8])
        var right = ParameterList()
        right.append(Int64(7))
        var wrong = ParameterList()
        wrong.append("7")
        var order: [String] = []
        connection.execute(echo, wrong) { order.append($0.failure?.kind == .protocol ? "refused" : "?") }
        connection.execute(echo, right) { order.append($0.failure == nil ? "done" : "?") }
        connection.execute(echo, ParameterList()) { order.append($0.failure?.kind == .protocol ? "refused" : "?") }
        connection.execute(Statement("echo", "SELECT 1")) {
            order.append($0.failure?.kind == .protocol ? "refused" : "?")
        }
        connection.execute(echo, right) { order.append($0.failure == nil ? "done" : "?") }
        #expect(order.isEmpty)
        driver.wait { order.count == 5 }
        #expect(order == ["refused", "done", "refused", "refused", "done"])
    }

    @Test("50 MB go out while answers come in")
    func largeBatch() throws {
        try database.connect().execute("CREATE TABLE t (a int, b bytea)")
        let connection = try driver.connect(database.conninfo)
        var random = SeededRandom(for: "largeBatch")
        let block = random.bytes(1 << 20)
        var payloads = BinaryArray(of: .bytea)
        for _ in 0..<50 { payloads.append(block) }
        var parameters = ParameterList()
        parameters.append(payloads)
        let insert = Statement(
            "insert", "INSERT INTO t SELECT 1, b FROM unnest($1) AS b RETURNING b", parameterTypes: [.byteaArray])
        // The rows come back, so that both directions are full at once.
        var results: [Result<QueryResult, DatabaseError>] = []
        connection.execute(insert, parameters) { results.append($0) }
        connection.execute(insert, parameters) { results.append($0) }
        driver.wait { results.count == 2 }
        for result in results {
            let rows = try result.get()
            #expect(rows.rowCount == 50)
            #expect(try rows.byteArray(49, 0) == block)
        }
    }

    @Test("a row of 50 MB comes back whole")
    func largeRow() throws {
        let connection = try driver.connect(database.conninfo)
        let rows = try driver.execute(connection, "SELECT repeat('0123456789', 5000000)")
        #expect(try rows.bytes(0, 0).count == 50_000_000)
        #expect(try rows.bytes(0, 0).suffix(10).elementsEqual("0123456789".utf8))
    }

    @Test("100,000 executions on one connection come back in order")
    func manyExecutions() throws {
        let connection = try driver.connect(database.conninfo)
        let echo = Statement("echo", "SELECT $1", parameterTypes: [.int4])
        var parameters = ParameterList()
        var next: Int32 = 0
        var isInOrder = true
        for number: Int32 in 0..<100_000 {
            parameters.removeAll()
            parameters.append(number)
            connection.execute(echo, parameters) { result in
                isInOrder = isInOrder && (try? result.get().int4(0, 0)) == number && next == number
                next += 1
            }
        }
        driver.wait { next == 100_000 }
        #expect(isInOrder)
        #expect(connection.pendingCount == 0)
    }

    @Test("a notification arrives with channel, payload and sender, idle or busy")
    func notification() throws {
        let connection = try driver.connect(database.conninfo)
        var heard: [String] = []
        connection.onNotification = { channel, payload, pid in heard.append("\(channel) \(payload) \(pid)") }
        _ = try driver.run(connection, "LISTEN news").get()
        let sender = try database.connect()
        try sender.execute("NOTIFY news, '한들'")
        driver.wait { heard == ["news 한들 \(sender.backendPID)"] }
        connection.execute(sql: "SELECT pg_sleep(0.01)") { _ in }
        try sender.execute("NOTIFY news")
        driver.wait { heard.last == "news  \(sender.backendPID)" }
    }

    @Test("a cancelled statement fails with its kind, and the next one works")
    func cancel() throws {
        let connection = try driver.connect(database.conninfo)
        var sleeping: Result<QueryResult, DatabaseError>?
        connection.execute(sql: "SELECT pg_sleep(600)") { sleeping = $0 }
        let watcher = try driver.connect(database.conninfo)
        let count = Statement(
            "sleepers", "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND pid = $1")
        var parameters = ParameterList()
        parameters.append(connection.backendPID)
        while try driver.answer({ watcher.execute(count, parameters, $0) }).get().int8(0, 0) == 0 {}
        connection.cancel()
        driver.wait { sleeping != nil }
        #expect(sleeping?.failure?.kind == .cancelled)
        #expect(try driver.execute(connection, "SELECT 1::int4").int4(0, 0) == 1)
    }

    @Test("a statement that a pipeline does not take ends the connection with a clear error", .timeLimit(.minutes(10)))
    func copy() throws {
        try database.connect().execute("CREATE TABLE t (a int)")
        for sql in ["COPY t FROM STDIN", "COPY t TO STDOUT"] {
            let connection = try driver.connect(database.conninfo)
            var isEnded = false
            connection.onEnded = { _ in isEnded = true }
            let result = try driver.run(connection, sql)
            #expect(result.failure?.kind == .protocol)
            #expect(result.failure?.message.contains("COPY") == true)
            driver.wait { isEnded }
        }
    }

    @Test("notices reach their callback")
    func notices() throws {
        let connection = try driver.connect(database.conninfo)
        var notices: [String] = []
        connection.onNotice = { notices.append("\($0.severity) \($0.message)") }
        _ = try driver.run(connection, "DO $$ BEGIN RAISE WARNING 'careful'; END $$").get()
        #expect(notices == ["WARNING careful"])
    }
}

extension Result {
    /// The error, if it is one.
    var failure: Failure? {
        if case .failure(let error) = self { error } else { nil }
    }
}
