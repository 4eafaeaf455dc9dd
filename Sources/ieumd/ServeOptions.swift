import Arguments
import EventLoop
import SyncServer

/// The options of `ieumd serve`, and the configuration that they make.
enum ServeOptions {
    static let spec = CommandSpec(
        "ieumd serve", "run the sync server",
        options: DatabaseChoice.options + [
            OptionSpec(
                "listen", "HOST:PORT", default: "127.0.0.1:4386", environment: "IEUM_LISTEN",
                help: "where clients connect; port 0 takes a free one"),
            OptionSpec(
                "tls-cert", "FILE", environment: "IEUM_TLS_CERT",
                help: "speak TLS with this certificate (PEM, the chain behind it); SIGHUP reads it again"),
            OptionSpec(
                "tls-key", "FILE", environment: "IEUM_TLS_KEY", help: "its key (PEM, mode 0600, no passphrase)"),
            OptionSpec(
                "tls-client-ca", "FILE", environment: "IEUM_TLS_CLIENT_CA",
                help: "take only clients with a certificate of these authorities (PEM)"),
            OptionSpec(
                "proxy-protocol", "ADDRESSES", environment: "IEUM_PROXY_PROTOCOL",
                help: "believe the PROXY header (version 2) of these load balancers, e.g. 10.0.0.5,10.1.0.0/16"),
            OptionSpec("insecure", environment: "IEUM_INSECURE", help: "speak plain TCP off loopback, too"),
            OptionSpec(
                "metrics", "HOST:PORT", default: "127.0.0.1:4387", environment: "IEUM_METRICS",
                help: "where /metrics, /healthz and /readyz answer, or off"),
            OptionSpec(
                "registration", "open|invite|closed", default: "open", environment: "IEUM_REGISTRATION",
                help: "who may become a player: anyone, who has a code of ieumd invite, nobody"),
            OptionSpec(
                "log", "LEVEL", default: "info", environment: "IEUM_LOG", help: "debug, info, warning or error"),
        ] + limits,
        examples: [
            "ieumd serve",
            "ieumd serve --database 'host=db1 dbname=ieum user=ieum' --listen 127.0.0.1:4386",
            "ieumd serve --listen 0.0.0.0:4386 --tls-cert /etc/ieum/tls.pem --tls-key /etc/ieum/tls.key",
        ],
        exitCodes: [
            (0, "stopped by a signal, everything accepted was answered"), (1, "failed"), (2, "usage"),
            (3, "the database's schema is behind or ahead"), (4, "the database cannot be reached"),
        ])

    private static let limits = [
        OptionSpec(
            "lanes", "N", default: "2", environment: "IEUM_LANES", help: "database connections that carry pushes"),
        OptionSpec(
            "readers", "N", default: "2", environment: "IEUM_READERS",
            help: "database connections that carry pulls and sign-ins"),
        OptionSpec(
            "max-connections", "N", default: "16384", environment: "IEUM_MAX_CONNECTIONS",
            help: "open client connections"),
        OptionSpec(
            "max-connections-per-address", "N", default: "1024", environment: "IEUM_MAX_CONNECTIONS_PER_ADDRESS",
            help: "open connections of one address (of IPv6: of its /64)"),
        OptionSpec(
            "max-connections-per-player", "N", default: "128", environment: "IEUM_MAX_CONNECTIONS_PER_PLAYER",
            help: "open connections of one player"),
        OptionSpec(
            "sign-ins-per-address", "RATE", default: "20/s:600", environment: "IEUM_SIGN_INS_PER_ADDRESS",
            help: "logins, links and registrations, e.g. 20/s, 100/min or 20/s:600 (600 at once), or off"),
        OptionSpec(
            "registrations-per-address", "RATE", default: "120/h:20", environment: "IEUM_REGISTRATIONS_PER_ADDRESS",
            help: "new players, or off"),
        OptionSpec(
            "wrong-tries-per-address", "RATE", default: "12/min:20", environment: "IEUM_WRONG_TRIES_PER_ADDRESS",
            help: "wrong tokens and codes before all sign-ins wait, or off"),
        OptionSpec(
            "pushes-per-address", "RATE", default: "5000/s:100000", environment: "IEUM_PUSHES_PER_ADDRESS",
            help: "pushes of all players at one address, or off"),
        OptionSpec(
            "bytes-per-address", "RATE", default: "41943040/s:671088640", environment: "IEUM_BYTES_PER_ADDRESS",
            help: "bytes of their pushed states, or off"),
        OptionSpec(
            "pushes-per-player", "RATE", default: "500/s:10000", environment: "IEUM_PUSHES_PER_PLAYER",
            help: "pushes, or off"),
        OptionSpec(
            "bytes-per-player", "RATE", default: "4194304/s:67108864", environment: "IEUM_BYTES_PER_PLAYER",
            help: "bytes of pushed states, or off"),
        OptionSpec(
            "renames-per-player", "RATE", default: "30/min:60", environment: "IEUM_RENAMES_PER_PLAYER",
            help: "devices given another name, or off"),
        OptionSpec(
            "revocations-per-player", "RATE", default: "60/min:120", environment: "IEUM_REVOCATIONS_PER_PLAYER",
            help: "devices revoked, or off"),
        OptionSpec(
            "rotations-per-player", "RATE", default: "120/h:60", environment: "IEUM_ROTATIONS_PER_PLAYER",
            help: "tokens replaced, or off"),
        OptionSpec(
            "pairing-codes-per-player", "RATE", default: "120/h:60", environment: "IEUM_PAIRING_CODES_PER_PLAYER",
            help: "pairing codes made, or off"),
        OptionSpec(
            "max-games-per-player", "N", default: "100000", environment: "IEUM_MAX_GAMES_PER_PLAYER",
            help: "games that are kept, about, or off"),
        OptionSpec(
            "max-bytes-per-player", "BYTES", default: "4294967296", environment: "IEUM_MAX_BYTES_PER_PLAYER",
            help: "bytes of versions that are kept, about, or off"),
        OptionSpec(
            "max-line", "BYTES", default: "1048576", environment: "IEUM_MAX_LINE", help: "bytes of one line"),
        OptionSpec(
            "max-pipelined", "N", default: "128", environment: "IEUM_MAX_PIPELINED",
            help: "pushes of one connection that may be under way"),
        OptionSpec(
            "max-pending", "BYTES", default: "268435456", environment: "IEUM_MAX_PENDING",
            help: "bytes of accepted pushes and unread replies in memory"),
        OptionSpec(
            "max-page", "BYTES", default: "1048576", environment: "IEUM_MAX_PAGE",
            help: "bytes of states that one PULL brings"),
        OptionSpec(
            "max-batch", "N", default: "512", environment: "IEUM_MAX_BATCH", help: "pushes in one batch"),
        OptionSpec(
            "idle-timeout", "SECONDS", default: "900", environment: "IEUM_IDLE_TIMEOUT",
            help: "how long a connection may be silent"),
        OptionSpec(
            "login-timeout", "SECONDS", default: "60", environment: "IEUM_LOGIN_TIMEOUT",
            help: "how long a connection may be without a device"),
        OptionSpec(
            "line-timeout", "SECONDS", default: "60", environment: "IEUM_LINE_TIMEOUT",
            help: "how long a line may take to end, besides what --min-line-rate grants"),
        OptionSpec(
            "min-line-rate", "BYTES", default: "1000", environment: "IEUM_MIN_LINE_RATE",
            help: "bytes of a line that grant it a second more"),
        OptionSpec(
            "write-timeout", "SECONDS", default: "60", environment: "IEUM_WRITE_TIMEOUT",
            help: "how long a peer may leave replies unread"),
        OptionSpec(
            "handshake-timeout", "SECONDS", default: "10", environment: "IEUM_HANDSHAKE_TIMEOUT",
            help: "how long the handshake of TLS, or a PROXY header, may take"),
        OptionSpec(
            "request-timeout", "SECONDS", default: "15", environment: "IEUM_REQUEST_TIMEOUT",
            help: "how long a command may wait for PostgreSQL"),
        OptionSpec(
            "drain-timeout", "SECONDS", default: "20", environment: "IEUM_DRAIN_TIMEOUT",
            help: "how long accepted work may take after SIGTERM"),
    ]

    /// Makes the server's configuration; the database's address is filled in later.
    static func configuration(_ parsed: ParsedArguments) throws(UsageError) -> ServerConfiguration {
        var result = ServerConfiguration()
        (result.host, result.port) = try address(parsed.string("listen") ?? "", option: "listen")
        result.tls = try tls(parsed)
        guard isLoopback(result.host) || result.tls != nil || parsed.flag("insecure") else {
            throw UsageError(
                """
                --listen \(result.host) is not a loopback address, and TLS is not set up: tokens and games would travel in \
                the clear. Give --tls-cert and --tls-key: an ACME client (certbot, lego, acme.sh) gets them for a name of \
                yours, `ieumd cert self-signed` makes them for trying out. Or put a TLS proxy in front, or give --insecure \
                on a network that you trust
                """)
        }
        let metrics = parsed.string("metrics") ?? "off"
        result.metrics = metrics == "off" ? nil : try address(metrics, option: "metrics")
        if let host = result.metrics?.host, !isLoopback(host), !parsed.flag("insecure") {
            throw UsageError(
                "--metrics \(host) is not a loopback address, and what it tells is open to whoever reaches it; "
                    + "give --insecure on a network that you trust")
        }
        let registration = parsed.string("registration") ?? ""
        guard let registration = ServerConfiguration.Registration(rawValue: registration) else {
            throw UsageError("--registration is open, invite or closed, not \"\(registration)\"")
        }
        result.registration = registration
        var limits = ServerConfiguration.Limits()
        limits.lanes = try parsed.integer("lanes", in: 1...64) ?? limits.lanes
        limits.readers = try parsed.integer("readers", in: 1...64) ?? limits.readers
        limits.maxConnections = try parsed.integer("max-connections", in: 1...1_000_000) ?? limits.maxConnections
        limits.maxLineBytes = try parsed.integer("max-line", in: 4096...67_108_864) ?? limits.maxLineBytes
        limits.maxPipelinedPushes = try parsed.integer("max-pipelined", in: 1...65_536) ?? limits.maxPipelinedPushes
        limits.maxPendingBytes =
            try parsed.integer("max-pending", in: 1_048_576...1_099_511_627_776) ?? limits.maxPendingBytes
        limits.maxPageBytes = try parsed.integer("max-page", in: 1024...268_435_456) ?? limits.maxPageBytes
        limits.maxBatchRows = try parsed.integer("max-batch", in: 1...10_000) ?? limits.maxBatchRows
        limits.idleTimeout = try parsed.seconds("idle-timeout", in: 0.1...86_400) ?? limits.idleTimeout
        limits.writeTimeout = try parsed.seconds("write-timeout", in: 0.1...86_400) ?? limits.writeTimeout
        limits.handshakeTimeout = try parsed.seconds("handshake-timeout", in: 0.1...600) ?? limits.handshakeTimeout
        limits.requestTimeout = try parsed.seconds("request-timeout", in: 0.1...3600) ?? limits.requestTimeout
        limits.drainTimeout = try parsed.seconds("drain-timeout", in: 0...3600) ?? limits.drainTimeout
        try read(parsed, into: &limits)
        result.limits = limits
        result.balancers = try balancers(parsed)
        return result
    }

    /// The bounds of one address and of one player.
    private static func read(
        _ parsed: ParsedArguments, into limits: inout ServerConfiguration.Limits
    ) throws(UsageError) {
        limits.maxConnectionsPerAddress =
            try parsed.integer("max-connections-per-address", in: 1...1_000_000) ?? limits.maxConnectionsPerAddress
        limits.maxConnectionsPerPlayer =
            try parsed.integer("max-connections-per-player", in: 1...1_000_000) ?? limits.maxConnectionsPerPlayer
        limits.loginTimeout = try parsed.seconds("login-timeout", in: 0.1...86_400) ?? limits.loginTimeout
        limits.lineTimeout = try parsed.seconds("line-timeout", in: 0.1...86_400) ?? limits.lineTimeout
        limits.minLineRate = try parsed.integer("min-line-rate", in: 1...1_073_741_824) ?? limits.minLineRate
        limits.signInsPerAddress = try rate(parsed, "sign-ins-per-address")
        limits.registrationsPerAddress = try rate(parsed, "registrations-per-address")
        limits.wrongTriesPerAddress = try rate(parsed, "wrong-tries-per-address")
        limits.pushesPerAddress = try rate(parsed, "pushes-per-address")
        limits.bytesPerAddress = try rate(parsed, "bytes-per-address")
        limits.pushesPerPlayer = try rate(parsed, "pushes-per-player")
        limits.bytesPerPlayer = try rate(parsed, "bytes-per-player")
        limits.renamesPerPlayer = try rate(parsed, "renames-per-player")
        limits.revocationsPerPlayer = try rate(parsed, "revocations-per-player")
        limits.rotationsPerPlayer = try rate(parsed, "rotations-per-player")
        limits.pairingCodesPerPlayer = try rate(parsed, "pairing-codes-per-player")
        limits.maxGamesPerPlayer = try most(parsed, "max-games-per-player")
        limits.maxStoredBytesPerPlayer = try most(parsed, "max-bytes-per-player")
    }

    private static func rate(_ parsed: ParsedArguments, _ option: String) throws(UsageError) -> Rate? {
        let text = parsed.string(option) ?? ""
        guard text != "off" else { return nil }
        guard let rate = Rate(text) else {
            throw UsageError("--\(option) takes a rate, e.g. 20/s, 100/min, 40/h or 20/s:600, or off, not \"\(text)\"")
        }
        return rate
    }

    private static func most(_ parsed: ParsedArguments, _ option: String) throws(UsageError) -> Int? {
        parsed.string(option) == "off" ? nil : try parsed.integer(option, in: 1...Int.max)
    }

    private static func balancers(_ parsed: ParsedArguments) throws(UsageError) -> [SocketAddress.Network] {
        var networks: [SocketAddress.Network] = []
        for word in parsed.string("proxy-protocol")?.split(separator: ",") ?? [] {
            guard let network = SocketAddress.Network(word.trimmingPrefix(" ").description) else {
                throw UsageError(
                    "--proxy-protocol takes addresses or ranges of them, e.g. 10.0.0.5,10.1.0.0/16, not \"\(word)\"")
            }
            networks.append(network)
        }
        return networks
    }

    private static func tls(_ parsed: ParsedArguments) throws(UsageError) -> TLSServerContext.Files? {
        let authorities = parsed.string("tls-client-ca")
        switch (parsed.string("tls-cert"), parsed.string("tls-key")) {
        case (let certificate?, let key?):
            return TLSServerContext.Files(certificate: certificate, key: key, clientAuthorities: authorities)
        case (nil, nil):
            guard authorities == nil else { throw UsageError("--tls-client-ca needs --tls-cert and --tls-key") }
            return nil
        case (_?, nil): throw UsageError("--tls-cert needs --tls-key, the file of its key")
        case (nil, _?): throw UsageError("--tls-key needs --tls-cert, the file of its certificate")
        }
    }

    /// Splits `host:port` and `[v6]:port`.
    static func address(_ text: String, option: String) throws(UsageError) -> (host: String, port: Int) {
        guard let colon = text.lastIndex(of: ":"), let port = Int(text[text.index(after: colon)...]),
            (0...65_535).contains(port)
        else {
            throw UsageError("--\(option) takes HOST:PORT, e.g. 127.0.0.1:4386, not \"\(text)\"")
        }
        var host = text[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") { host = host.dropFirst().dropLast() }
        guard !host.isEmpty, host.contains(":") == text.hasPrefix("[") else {
            throw UsageError("--\(option) takes HOST:PORT, and an IPv6 address in brackets, not \"\(text)\"")
        }
        return (String(host), port)
    }

    private static func isLoopback(_ host: String) -> Bool {
        host == "localhost" || host == "::1"
            || (host.hasPrefix("127.") && host.allSatisfy { $0.isNumber || $0 == "." })
    }
}
