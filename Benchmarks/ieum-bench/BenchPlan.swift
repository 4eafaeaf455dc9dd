/// How much is measured, and for how long.
struct BenchPlan {
    /// How often yardsticks and pushes at 512 connections alternate.
    var rounds: Int
    /// Seconds that a yardstick runs.
    var yardstickSeconds: Int
    /// How long the pushes at 512 connections are measured, after a warm-up.
    var push: (warmUp: Duration, measured: Duration)
    /// The same for each of the other numbers of connections, once.
    var otherPush: (warmUp: Duration, measured: Duration)
    /// How often and how long pulls are measured.
    var pullRounds: Int
    var pullSeconds: Int
    /// Notices on an idle system.
    var idleNotices: Int
    /// How long notices are measured with 64 writers.
    var busyNotices: Duration
    /// Connections that only watch.
    var watchers: Int
    /// Versions of each game in the database with many: players × games × this in all.
    var storedVersionsPerGame: Int
    var storedRounds: Int
    /// How often the client library and plain SQLite take turns, and how much of each in a round.
    var clientRounds: Int
    var clientSaves: Int
    var clientColdReads: Int
    /// What is done to a daemon by those who mean no good.
    var hostile: HostilePlan

    /// Players on either side of the ratios, each with so many games.
    let players = 512
    let gamesPerPlayer = 20
    /// Games that a device pulls.
    let clientPulled = 10_000
    /// Numbers of connections that push, the one that the ratios are about last.
    let connectionCounts = [1, 16, 64, 256, 512]

    /// `make bench`.
    static let full = BenchPlan(
        rounds: 5, yardstickSeconds: 10, push: (.seconds(2), .seconds(10)), otherPush: (.seconds(1), .seconds(6)),
        pullRounds: 5, pullSeconds: 3, idleNotices: 2_000, busyNotices: .seconds(5), watchers: 10_000,
        storedVersionsPerGame: 98, storedRounds: 5, clientRounds: 5, clientSaves: 2_000, clientColdReads: 100,
        hostile: .full)

    /// `make bench-quick`.
    static let quick = BenchPlan(
        rounds: 2, yardstickSeconds: 3, push: (.seconds(1), .seconds(3)), otherPush: (.milliseconds(500), .seconds(2)),
        pullRounds: 2, pullSeconds: 1, idleNotices: 300, busyNotices: .seconds(2), watchers: 10_000,
        storedVersionsPerGame: 10, storedRounds: 2, clientRounds: 2, clientSaves: 500, clientColdReads: 30,
        hostile: .quick)
}
