/// What an idle watching connection costs in the daemon's resident memory.
struct IdleMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: BenchPlan { setting.plan }

    private static let database = "watchers"

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        setting.progress.say("making \(plan.watchers) players")
        try bed.createMigratedDatabase(Self.database)
        let first = try bed.startDaemon(on: Self.database, isDurable: false)
        let players = try register(first)
        try first.stop()

        // A daemon that has done nothing yet: memory that it got and gave back would hide what connections take.
        let daemon = try bed.startDaemon(on: Self.database)
        setting.progress.say("signing in \(plan.watchers) watching connections")
        try Fleet(bed.conductor, to: daemon, count: 1).close()
        try bed.conductor.pause(.milliseconds(500))
        let empty = try daemon.memory()
        let fleet = try Fleet(bed.conductor, to: daemon, count: plan.watchers)
        try fleet.signIn(players)
        try fleet.watch(from: players.map(\.revision))
        try bed.conductor.pause(.seconds(1))
        let full = try daemon.memory()
        fleet.close()
        figures.set("idle_rss_bytes_per_connection", (full - empty) / Double(plan.watchers))
        figures.set("idle_connections", Double(plan.watchers))
        figures.set("idle_rss_bytes_before", empty)
        figures.set("idle_rss_bytes_with_all", full)
        try daemon.stop()
    }

    private func register(_ daemon: Daemon) throws -> [Player] {
        var players: [Player] = []
        while players.count < plan.watchers {
            let fleet = try Fleet(bed.conductor, to: daemon, count: min(500, plan.watchers - players.count))
            players += try fleet.register()
            fleet.close()
        }
        return players
    }
}
