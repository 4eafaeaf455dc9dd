import EventLoop

/// Everything that an operator can set, with the defaults of `ieumd serve`.
public struct ServerConfiguration: Sendable {
    /// Where clients connect: a host name or address.
    public var host = "127.0.0.1"
    /// Where clients connect; 0 takes a free port.
    public var port = 4386
    /// Where `/metrics`, `/healthz` and `/readyz` answer; nil for nowhere.
    public var metrics: (host: String, port: Int)? = ("127.0.0.1", 4387)
    /// The PEM files of TLS; nil for plain TCP.
    public var tls: TLSServerContext.Files?
    /// Whether anyone may `REGISTER`.
    public var isRegistrationOpen = true
    /// What may be used at most.
    public var limits = Limits()
    /// How PostgreSQL is reached, as a libpq connection string without a password where possible.
    public var database = ""
    /// The name and version that the greeting tells.
    public var version = SyncServerVersion.current

    /// The defaults.
    public init() {}

    /// Bounds on what clients can make the daemon use. Each has an option of `ieumd serve` and a coded error.
    public struct Limits: Sendable {
        /// Open client connections; one more gets `ERR too-many-connections`.
        public var maxConnections = 16_384
        /// Bytes of one line without its end; a longer one gets `ERR line-too-long`.
        public var maxLineBytes = 1_048_576
        /// Pushes of one connection that may be under way; further lines wait unread.
        public var maxPipelinedPushes = 128
        /// Bytes of accepted pushes and unread replies in memory; above it pushes and pulls get `ERR busy`.
        public var maxPendingBytes = 268_435_456
        /// Bytes of states that one PULL brings before it says `more=true`; one state always fits.
        public var maxPageBytes = 1_048_576
        /// Games that one PULL or versions that one HISTORY brings at most.
        public var maxPageRows = 1_000
        /// Rows of one batch.
        public var maxBatchRows = 512
        /// Bytes of states of one batch.
        public var maxBatchBytes = 8_388_608
        /// Database connections that carry batches, one batch each at a time.
        public var lanes = 2
        /// Database connections that carry pulls, histories and sign-ins.
        public var readers = 2
        /// How long a connection may say nothing; then it is closed.
        public var idleTimeout: Duration = .seconds(900)
        /// How long the handshake of TLS may take; then the connection is closed.
        public var handshakeTimeout: Duration = .seconds(10)
        /// How long a command may wait for PostgreSQL; then it gets `ERR unavailable`.
        public var requestTimeout: Duration = .seconds(15)
        /// How long a peer may leave its replies unread; then it is closed.
        public var writeTimeout: Duration = .seconds(60)
        /// How long accepted work may take after SIGTERM.
        public var drainTimeout: Duration = .seconds(20)
        /// Wrong tokens and codes that one connection may send; then it is closed.
        public var maxWrongTries = 5

        /// The defaults.
        public init() {}
    }
}

/// The version of this server.
public enum SyncServerVersion {
    /// As in the greeting and in `ieumd version`.
    public static let current = "0.1.0"
}
