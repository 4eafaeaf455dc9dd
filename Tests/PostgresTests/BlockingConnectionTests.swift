import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Blocking connection")
struct BlockingConnectionTests {
    let database: TestDatabase

    init() throws {
        database = try TestDatabase.make()
    }

    @Test("several statements give a result each")
    func severalStatements() throws {
        let connection = try database.connect()
        let results = try connection.execute(
            "CREATE TABLE t (a int); INSERT INTO t VALUES (1), (2); SELECT a FROM t ORDER BY a")
        #expect(results.map(\.commandTag) == ["CREATE TABLE", "INSERT 0 2", "SELECT 2"])
        #expect(results[1].affectedRowCount == 2)
        #expect(try results[2].int4(1, 0) == 2)
        #expect(try results[2].text(0, 0) == "1")
    }

    @Test("an error carries code, constraint, table, detail, and rolls the text back")
    func errorFields() throws {
        let connection = try database.connect()
        try connection.execute(
            "CREATE TABLE t (a int CONSTRAINT t_a_positive CHECK (a > 0), b text CONSTRAINT t_b_key UNIQUE)")
        try connection.execute("INSERT INTO t VALUES (1, 'x')")
        let unique = #expect(throws: DatabaseError.self) {
            try connection.execute("INSERT INTO t VALUES (2, 'y'); INSERT INTO t VALUES (3, 'x')")
        }
        #expect(unique?.kind == .server)
        #expect(unique?.sqlState == .uniqueViolation)
        #expect(unique?.severity == "ERROR")
        #expect(unique?.constraint == "t_b_key")
        #expect(unique?.table == "t")
        #expect(unique?.detail == "Key (b)=(x) already exists.")
        #expect(unique?.isRetryable == true)
        #expect(unique?.description.contains("(x)") == false)
        let check = #expect(throws: DatabaseError.self) { try connection.execute("INSERT INTO t VALUES (0, 'z')") }
        #expect(check?.sqlState == .checkViolation)
        #expect(check?.constraint == "t_a_positive")
        #expect(check?.isRetryable == false)
        #expect(try connection.query("SELECT count(*) FROM t").int8(0, 0) == 1)
    }

    @Test("a position counts characters, across statements")
    func position() throws {
        let connection = try database.connect()
        let sql = "SELECT '한들'; SELECT nope"
        let error = #expect(throws: DatabaseError.self) { try connection.execute(sql) }
        #expect(error?.sqlState == .undefinedColumn)
        #expect(error?.position == 21)
        let hinted = #expect(throws: DatabaseError.self) { try connection.execute("SELECT lenght('a')") }
        #expect(hinted?.sqlState == .undefinedFunction)
        #expect(hinted?.hint?.isEmpty == false)
    }

    @Test(
        "COPY either way fails clearly and the connection goes on",
        arguments: [
            "COPY t FROM STDIN", "COPY t TO STDOUT", "SELECT 1; COPY t FROM STDIN; SELECT 2",
        ])
    func copy(sql: String) throws {
        let connection = try database.connect()
        try connection.execute("CREATE TABLE t (a int); INSERT INTO t SELECT generate_series(1, 1000)")
        let error = #expect(throws: DatabaseError.self) { try connection.execute(sql) }
        #expect(error?.description.contains("COPY") == true)
        #expect(connection.transactionStatus == .idle)
        #expect(try connection.query("SELECT count(*) FROM t").int8(0, 0) == 1000)
    }

    @Test("the transaction's status follows BEGIN, an error and ROLLBACK")
    func transactionStatus() throws {
        let connection = try database.connect()
        #expect(connection.transactionStatus == .idle)
        try connection.execute("BEGIN")
        #expect(connection.transactionStatus == .inTransaction)
        #expect(throws: DatabaseError.self) { try connection.execute("SELECT 1/0") }
        #expect(connection.transactionStatus == .inFailedTransaction)
        try connection.execute("ROLLBACK")
        #expect(connection.transactionStatus == .idle)
    }

    @Test("notices reach the handler with severity and code")
    func notices() throws {
        nonisolated(unsafe) var notices: [DatabaseNotice] = []
        let connection = try database.connect { notices.append($0) }
        try connection.execute("DO $$ BEGIN RAISE WARNING 'careful' USING HINT = 'slowly', ERRCODE = '01ABC'; END $$")
        #expect(notices.map(\.message) == ["careful"])
        #expect(notices.first?.severity == "WARNING")
        #expect(notices.first?.hint == "slowly")
        #expect(notices.first?.sqlState == SQLState(rawValue: "01ABC"))
    }

    @Test("a NUL in the SQL is refused instead of cutting it short")
    func nul() throws {
        let connection = try database.connect()
        #expect(throws: DatabaseError.self) { try connection.execute("SELECT 1\0; DROP TABLE t") }
    }

    @Test("another thread can cancel what is under way")
    func cancel() throws {
        let connection = try database.connect()
        // Used by the other thread alone.
        nonisolated(unsafe) let watcher = try database.connect()
        let handle = try connection.cancelHandle()
        let pid = connection.backendPID
        // A thread of its own: the tests' pool may have no other thread that is free.
        let thread = Thread {
            while let sleepers = try? watcher.query(
                "SELECT count(*) FROM pg_stat_activity WHERE pid = \(pid) AND wait_event = 'PgSleep'"
            ).int8(0, 0), sleepers == 0 {}
            #expect(throws: Never.self) { try handle.cancel() }
        }
        thread.start()
        let error = #expect(throws: DatabaseError.self) { try connection.execute("SELECT pg_sleep(600)") }
        #expect(error?.kind == .cancelled)
        #expect(error?.sqlState == .queryCanceled)
        try connection.execute("SELECT 1")
    }

    @Test("a terminated session fails once with its code and stays lost")
    func terminated() throws {
        let connection = try database.connect()
        try database.connect().execute("SELECT pg_terminate_backend(\(connection.backendPID), 10000)")
        let error = #expect(throws: DatabaseError.self) { try connection.execute("SELECT 1") }
        #expect(error?.kind == .connection)
        #expect(error?.isRetryable == true)
        #expect(!connection.isConnected)
        #expect(throws: DatabaseError.self) { try connection.execute("SELECT 1") }
    }

    @Test("session settings and the application's name hold from the start, spaces and backslashes too")
    func sessionSettings() throws {
        let connection = try database.connect(sessionSettings: [
            "lock_timeout": "5s", "search_path": #""a b\c", public"#,
        ])
        #expect(try connection.query("SELECT current_setting('lock_timeout')").text(0, 0) == "5s")
        #expect(try connection.query("SELECT current_setting('search_path')").text(0, 0) == #""a b\c", public"#)
        #expect(try connection.query("SELECT current_setting('application_name')").text(0, 0) == "ieum-test")
        #expect(try connection.query("SELECT current_setting('client_encoding')").text(0, 0) == "UTF8")
    }

    @Test("failed connections say which kind, and the server's code")
    func failedConnections() throws {
        let missing = #expect(throws: DatabaseError.self) {
            try BlockingConnection(database.conninfo + " dbname=nowhere")
        }
        #expect(missing?.kind == .connection)
        #expect(missing?.sqlState == .invalidCatalogName)
        let noSocket = #expect(throws: DatabaseError.self) { try BlockingConnection("host=/nonexistent dbname=x") }
        #expect(noSocket?.kind == .connection)
        #expect(noSocket?.sqlState == nil)
        let secret = "hunter2"
        let unreadable = #expect(throws: DatabaseError.self) {
            try BlockingConnection("postgres://u:\(secret)@h:p:q/%zz")
        }
        #expect(unreadable?.description.contains(secret) == false)
        #expect(throws: DatabaseError.self) { try BlockingConnection(secret) }
    }

    @Test("literals and identifiers survive quotes and backslashes")
    func quoting() throws {
        let connection = try database.connect()
        for text in ["", "it's", #"a\b"#, #"'"\"#, "한들", "a\nb"] {
            let quoted = BlockingConnection.quoteLiteral(text)
            #expect(try connection.query("SELECT \(quoted)::text").text(0, 0) == text)
            if text.isEmpty { continue }
            let name = BlockingConnection.quoteIdentifier(text)
            #expect(try connection.query("SELECT 1 AS \(name)").columnNames == [text])
        }
    }
}
