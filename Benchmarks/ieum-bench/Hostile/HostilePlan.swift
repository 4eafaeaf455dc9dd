/// How much is done to a daemon by those who mean it no good, and for how long.
struct HostilePlan {
    /// Short sessions of the soak: plain and over TLS, in so many parts, after each of which memory is read.
    var plainSessions: Int
    var secureSessions: Int
    let parts = 10
    /// Open connections at once.
    var crowd: Int
    /// How often, and for how long, a healthy client is measured beside each flood.
    var floodRounds: Int
    var floodTime: Duration
    /// The kinds of floods.
    var floods = Flood.allCases

    /// `make hostile`.
    static let full = HostilePlan(
        plainSessions: 80_000, secureSessions: 20_000, crowd: 20_000, floodRounds: 3, floodTime: .seconds(6))

    /// `make hostile ARGS=--quick`.
    static let quick = HostilePlan(
        plainSessions: 8_000, secureSessions: 2_000, crowd: 2_000, floodRounds: 1, floodTime: .seconds(2))
}
