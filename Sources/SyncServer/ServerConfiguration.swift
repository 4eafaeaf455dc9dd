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
    /// Who may `REGISTER`.
    public var registration = Registration.open
    /// The load balancers whose connections begin with a PROXY header, version 2, which is believed.
    public var balancers: [SocketAddress.Network] = []
    /// What may be used at most.
    public var limits = Limits()
    /// How PostgreSQL is reached, as a libpq connection string without a password where possible.
    public var database = ""
    /// What each database session begins with, one statement each: see ``DaemonAccess``.
    public var sessionSetup: [String] = []
    /// The name and version that the greeting tells.
    public var version = SyncServerVersion.current

    /// The defaults.
    public init() {}

    /// Who may become a player. Devices of players that there are can always be paired.
    public enum Registration: String, CaseIterable, Sendable {
        /// Anyone.
        case open
        /// Who has a code that `ieumd invite` made.
        case invite
        /// Nobody.
        case closed
    }

    /// Bounds on what clients can make the daemon use. Each has an option of `ieumd serve` and a coded error.
    public struct Limits: Sendable {
        /// Open client connections; one more gets `ERR too-many-connections`.
        public var maxConnections = 16_384
        /// Open client connections of one address (of IPv6: of its /64); loopback is not bounded.
        public var maxConnectionsPerAddress = 1_024
        /// Open connections of one player's devices.
        public var maxConnectionsPerPlayer = 128
        /// Sign-ins of one address; nil bounds nothing. So for the rates below.
        public var signInsPerAddress = Rate(perSecond: 20, burst: 600)
        /// Registrations of one address.
        public var registrationsPerAddress = Rate(perSecond: 1.0 / 30, burst: 20)
        /// Wrong tokens and codes of one address; then every sign-in from there waits.
        public var wrongTriesPerAddress = Rate(perSecond: 0.2, burst: 20)
        /// Pushes from one address, of all its players.
        public var pushesPerAddress = Rate(perSecond: 5_000, burst: 100_000)
        /// Bytes of states that are pushed from one address.
        public var bytesPerAddress = Rate(perSecond: 41_943_040, burst: 671_088_640)
        /// Pushes of one player.
        public var pushesPerPlayer = Rate(perSecond: 500, burst: 10_000)
        /// Bytes of states that one player pushes.
        public var bytesPerPlayer = Rate(perSecond: 4_194_304, burst: 67_108_864)
        /// Devices of one player's that are given another name.
        public var renamesPerPlayer = Rate(perSecond: 0.5, burst: 60)
        /// Devices of one player's that are revoked, by other devices of the player's.
        public var revocationsPerPlayer = Rate(perSecond: 1, burst: 120)
        /// Tokens of one player's devices that are replaced.
        public var rotationsPerPlayer = Rate(perSecond: 1.0 / 30, burst: 60)
        /// Pairing codes that one player makes.
        public var pairingCodesPerPlayer = Rate(perSecond: 1.0 / 30, burst: 60)
        /// Games of one player that are not deleted, about; nil bounds nothing.
        public var maxGamesPerPlayer: Int? = 100_000
        /// Bytes of one player's versions, about; nil bounds nothing.
        public var maxStoredBytesPerPlayer: Int? = 4_294_967_296
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
        /// How long a connection may be without a signed-in device; then it is closed.
        public var loginTimeout: Duration = .seconds(60)
        /// How long a line may take from its first byte to its end, besides the time that ``minLineRate`` grants its bytes;
        /// then the connection is closed.
        public var lineTimeout: Duration = .seconds(60)
        /// Bytes of a line that buy it another second.
        public var minLineRate = 1_000
        /// How long the handshake of TLS, or a PROXY header, may take; then the connection is closed.
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

        /// How long a line may take of which so many bytes have come. What is longer than any line buys no more time.
        func patience(forLineWith bytes: Int) -> Duration {
            lineTimeout + .seconds(Double(min(max(0, bytes), maxLineBytes)) / Double(max(1, minLineRate)))
        }
    }
}

/// The version of this server.
public enum SyncServerVersion {
    /// As in the greeting and in `ieumd version`.
    public static let current = "0.1.0"
}
