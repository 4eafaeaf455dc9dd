import Glibc

/// How long a healthy client waits during each flood, beside how long it waits when the same attackers are still.
struct FloodMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: HostilePlan { setting.plan.hostile }

    private static let database = "floods"

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        try bed.createMigratedDatabase(Self.database)
        let daemon = try bed.startDaemon(on: Self.database, options: ["--proxy-protocol", "127.0.0.9"])
        let healthy = try HealthyClient(bed.conductor, to: daemon, states: setting.states)
        let victims = try Fleet(bed.conductor, to: daemon, count: 1)
        let victim = try victims.register()[0]
        victims.close()
        for flood in plan.floods {
            var samples: [String: Samples] = [:]
            for round in 1...plan.floodRounds {
                setting.progress.say("round \(round) of \(plan.floodRounds): a healthy client beside \(flood.rawValue)")
                try measure(flood, daemon, healthy, victim) { samples[$0, default: Samples()].add($1) }
            }
            for (key, samples) in samples.sorted(by: { $0.key < $1.key }) {
                figures.set("flood_\(flood.key)_\(key)", samples)
            }
        }
        healthy.close()
        try daemon.stop()
    }

    private func measure(
        _ flood: Flood, _ daemon: Daemon, _ healthy: HealthyClient, _ victim: Player, _ add: (String, Double) -> Void
    ) throws {
        let attacker = try ChildProcess(
            bed.conductor, [try ownPath(), "flood", flood.rawValue, String(daemon.port), victim.token])
        guard try attacker.firstLine(atMost: .seconds(10)) == "ready" else {
            throw BenchError("the attacker is not ready: \(attacker.text)")
        }
        _ = try healthy.measure(.milliseconds(200))
        let quiet = try healthy.measure(plan.floodTime)
        kill(attacker.pid, SIGUSR1)
        _ = try healthy.measure(.seconds(1))
        let meter = try bed.meter(daemon)
        let before = try meter.read()
        let started = monotonicNanoseconds()
        let during = try healthy.measure(plan.floodTime)
        let seconds = Double(monotonicNanoseconds() - started) / 1e9
        let used = try meter.read() - before
        kill(attacker.pid, SIGUSR2)
        let words = try attacker.finish(atMost: .seconds(30)).split(separator: "\n").last?.split(separator: " ") ?? []
        var answers = 0.0
        for word in words {
            let parts = word.split(separator: "=")
            guard parts.count == 2, let count = Double(parts[1]) else {
                throw BenchError("the attacker said \(attacker.text)")
            }
            guard parts[0] != "connections" else {
                add("connections", count)
                continue
            }
            guard flood.answers.contains(String(parts[0])) else {
                throw BenchError("the daemon answered \(flood.rawValue) with \(words.joined(separator: " "))")
            }
            answers += count
        }
        guard flood.answers.isEmpty || answers > 0 else { throw BenchError("\(flood.rawValue) was not answered") }
        add("answers", answers)
        add("daemon_cpu_share", used.daemon / seconds)
        for (name, before, now) in [
            ("ping", quiet.pings, during.pings), ("push", quiet.pushes, during.pushes),
        ] {
            for (label, share) in [("p50", 0.5), ("p99", 0.99)] {
                let (still, flooded) = (
                    HealthyClient.Latencies.milliseconds(before, share),
                    HealthyClient.Latencies.milliseconds(now, share)
                )
                add("\(name)_quiet_\(label)_ms", still)
                add("\(name)_\(label)_ms", flooded)
                add("\(name)_\(label)_over_quiet", flooded / still)
            }
        }
    }

    private func ownPath() throws -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        guard count > 0 else { throw BenchError.system("/proc/self/exe") }
        return String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }
}
