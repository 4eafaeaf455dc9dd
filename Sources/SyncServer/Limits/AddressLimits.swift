import EventLoop
import Wire

/// What one address may do: how many connections, sign-ins and registrations, how often it may be wrong, and how much its players
/// together may push.
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
    private var pushes: RateTable<Host>
    private var bytes: RateTable<Host>

    init(_ limits: ServerConfiguration.Limits, at now: ContinuousClock.Instant) {
        mostConnections = limits.maxConnectionsPerAddress
        signIns = RateTable(limits.signInsPerAddress, at: now)
        registrations = RateTable(limits.registrationsPerAddress, at: now)
        wrongTries = RateTable(limits.wrongTriesPerAddress, at: now)
        pushes = RateTable(limits.pushesPerAddress, at: now)
        bytes = RateTable(limits.bytesPerAddress, at: now)
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

    /// Whether a push may come now. What it costs is told by ``took(pushes:bytes:from:at:)`` once nothing else stands against it.
    mutating func refusal(ofPushWith count: Int, from peer: SocketAddress, at now: ContinuousClock.Instant)
        -> WireError?
    {
        guard let host = Self.key(peer) else { return nil }
        if let wait = bytes.wait(host, for: Double(count), at: now) {
            return .rateLimited("bytes from this address", retryAfter: wait)
        }
        return pushes.wait(host, at: now).map { .rateLimited("pushes from this address", retryAfter: $0) }
    }

    /// How long a part of a history has to wait; nil: not at all.
    mutating func delay(
        ofHistoryWith count: Int, from peer: SocketAddress, at now: ContinuousClock.Instant
    ) -> Duration? {
        Self.key(peer).flatMap { bytes.wait($0, for: Double(count), at: now) }
    }

    /// Counts what was let in.
    mutating func took(pushes: Int = 0, bytes count: Int, from peer: SocketAddress, at now: ContinuousClock.Instant) {
        guard let host = Self.key(peer) else { return }
        _ = bytes.take(host, Double(count), at: now)
        if pushes > 0 { _ = self.pushes.take(host, Double(pushes), at: now) }
    }

    private static func key(_ peer: SocketAddress) -> Host? {
        peer.host.isLoopback ? nil : peer.host.network
    }
}
