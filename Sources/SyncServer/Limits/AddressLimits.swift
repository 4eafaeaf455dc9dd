import EventLoop
import Wire

/// What one address may do: how many connections, sign-ins and registrations, and how often it may be wrong.
///
/// An IPv6 address counts by its /64, which is one household's. Loopback addresses are not bounded: behind a proxy on this
/// machine they are everybody's; one that says whom it passes on (PROXY protocol) makes them count.
struct AddressLimits {
    typealias Host = SocketAddress.Host

    private let mostConnections: Int
    private var connections: [Host: Int] = [:]
    private var signIns: RateTable<Host>
    private var registrations: RateTable<Host>
    private var wrongTries: RateTable<Host>

    init(_ limits: ServerConfiguration.Limits, at now: ContinuousClock.Instant) {
        mostConnections = limits.maxConnectionsPerAddress
        signIns = RateTable(limits.signInsPerAddress, at: now)
        registrations = RateTable(limits.registrationsPerAddress, at: now)
        wrongTries = RateTable(limits.wrongTriesPerAddress, at: now)
    }

    /// Counts a connection in.
    /// - Returns: false when the address has as many as it may.
    mutating func enter(_ peer: SocketAddress) -> Bool {
        guard let host = Self.key(peer) else { return true }
        let count = connections[host] ?? 0
        guard count < mostConnections else { return false }
        connections[host] = count + 1
        return true
    }

    /// Counts a connection out.
    mutating func leave(_ peer: SocketAddress) {
        guard let host = Self.key(peer), let count = connections[host] else { return }
        connections[host] = count > 1 ? count - 1 : nil
    }

    /// Whether a sign-in may be tried now.
    mutating func refusal(ofSignInFrom peer: SocketAddress, at now: ContinuousClock.Instant) -> WireError? {
        guard let host = Self.key(peer) else { return nil }
        if let wait = wrongTries.wait(host, at: now) { return .tooManyTries(retryAfter: wait) }
        return signIns.take(host, at: now).map { .rateLimited("sign-ins from this address", retryAfter: $0) }
    }

    /// Whether a player may be registered now.
    mutating func refusal(ofRegistrationFrom peer: SocketAddress, at now: ContinuousClock.Instant) -> WireError? {
        if let refusal = refusal(ofSignInFrom: peer, at: now) { return refusal }
        guard let host = Self.key(peer) else { return nil }
        return registrations.take(host, at: now).map { .rateLimited("registrations from this address", retryAfter: $0) }
    }

    /// Counts a wrong token or code.
    mutating func triedWrongly(_ peer: SocketAddress, at now: ContinuousClock.Instant) {
        guard let host = Self.key(peer) else { return }
        _ = wrongTries.take(host, at: now)
    }

    private static func key(_ peer: SocketAddress) -> Host? {
        peer.host.isLoopback ? nil : peer.host.network
    }
}
