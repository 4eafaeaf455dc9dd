import EventLoop
import Postgres
import Testing

/// Drives a loop from a test: asks, and turns the loop until the answer is there.
struct LoopDriver {
    let loop: EventLoop
    /// Longer than anything takes; a test that meets it has failed.
    let limit = Duration.seconds(60)

    init() throws {
        loop = try EventLoop()
    }

    /// Runs `begin`, and the loop until what it was given is called.
    func answer<Value>(_ begin: (@escaping (Value) -> Void) -> Void) throws -> Value {
        var answer: Value?
        begin { value in
            #expect(answer == nil, "a completion was called twice")
            answer = value
        }
        _ = loop.run(until: { answer != nil }, timeout: limit)
        return try #require(answer, "no answer came")
    }

    /// Runs the loop until a condition holds, and fails if it never does.
    func wait(until condition: () -> Bool, _ comment: Comment = "the condition never held") {
        let holds = loop.run(until: condition, timeout: limit)
        #expect(holds, comment)
    }

    /// A connection that is open.
    func connect(_ conninfo: String, silenceLimit: Duration? = nil) throws -> DatabaseConnection {
        let connection = try DatabaseConnection(on: loop, ConnectionSettings(conninfo), silenceLimit: silenceLimit)
        try answer { connection.open($0) }.get()
        return connection
    }

    /// Executes SQL without preparing it.
    func run(_ connection: DatabaseConnection, _ sql: String) throws -> Result<QueryResult, DatabaseError> {
        try answer { done in connection.execute(sql: sql) { done($0) } }
    }

    /// Executes a statement and gives its rows.
    func execute(
        _ connection: DatabaseConnection, _ sql: String, _ parameters: ParameterList = ParameterList()
    ) throws -> QueryResult {
        try answer { connection.execute(Statement(sql, sql), parameters, $0) }.get()
    }
}
