/// An SQL statement that a connection prepares once, at its first use, and executes many times.
public struct Statement: Sendable {
    /// The name it is prepared under, unique among a connection's statements; no more than 63 bytes.
    public let name: String
    /// The text, one statement, with parameters `$1`, `$2` and so on.
    public let sql: String
    /// The parameters' types in order. Empty leaves them to the server; otherwise one for each parameter.
    public let parameterTypes: [PostgresType]

    /// Names a statement; nothing is sent.
    public init(_ name: String, _ sql: String, parameterTypes: [PostgresType] = []) {
        self.name = name
        self.sql = sql
        self.parameterTypes = parameterTypes
    }
}
