/// Pushes in a closed loop: each connection is one player's device, has one push outstanding, and sends the next when
/// the reply is there.
///
/// Every push advances one of the player's games, chosen at random, from the revision that the device saw last; every
/// reply is checked: `outcome=advanced`, and the player's next revision without a gap.
final class PushLoad {
    /// How long a phase lasts.
    enum Extent {
        case time(Duration)
        /// So many pushes in all.
        case pushes(Int)
    }

    /// What happened between the end of the warm-up and the end of the measured phase.
    struct Result {
        var pushes: Int
        var seconds: Double
        var cpu: CPUUse
        /// Microseconds from sending a push to its reply, in rising order.
        var latencies: [UInt32]

        var perSecond: Double { Double(pushes) / seconds }

        /// A latency that this share of the pushes did not exceed, in milliseconds.
        func latency(_ share: Double) -> Double { Double(percentile(latencies, share) ?? 0) / 1_000 }
    }

    private enum Phase { case warmingUp, measuring, draining }

    private let conductor: Conductor
    private let servers: CPUMeter
    private let devices: [Device]
    private var phase = Phase.warmingUp
    private var left = Int.max
    private var outstanding = 0
    private var pushes = 0
    private var latencies: [UInt32] = []

    /// Prepares the load on connections that are signed in.
    /// - Parameter servers: whose CPU is counted.
    init(
        _ conductor: Conductor, _ fleet: Fleet, _ players: some RandomAccessCollection<Player>, states: GameStates,
        servers: CPUMeter
    ) {
        self.conductor = conductor
        self.servers = servers
        devices = zip(fleet.sockets, players).enumerated().map { number, pair in
            Device(socket: pair.0, player: pair.1, states: states, seed: UInt64(number))
        }
    }

    /// Runs warm-up and measured phase, and waits for the replies that are still out.
    func run(warmUp: Extent, measured: Extent) throws -> Result {
        for device in devices { arm(device) }
        phase = .warmingUp
        outstanding = devices.count
        begin(warmUp)
        for device in devices { device.sendNext() }
        try wait(for: warmUp)

        phase = .measuring
        pushes = 0
        latencies.removeAll(keepingCapacity: true)
        latencies.reserveCapacity(1 << 20)
        begin(measured)
        let before = try servers.read()
        let started = monotonicNanoseconds()
        try wait(for: measured)
        let seconds = Double(monotonicNanoseconds() - started) / 1e9
        let cpu = try servers.read() - before
        let counted = pushes
        phase = .draining
        try conductor.wait(for: "the last replies", atMost: .seconds(30)) { outstanding == 0 }
        latencies.sort()
        return Result(pushes: counted, seconds: seconds, cpu: cpu, latencies: latencies)
    }

    private func begin(_ extent: Extent) {
        if case .pushes(let count) = extent { left = count } else { left = .max }
    }

    private func wait(for extent: Extent) throws {
        switch extent {
        case .time(let duration): try conductor.pause(duration)
        case .pushes(let count):
            try conductor.wait(for: "\(count) pushes", atMost: .seconds(120)) { left <= 0 }
        }
    }

    private func arm(_ device: Device) {
        // Safe, since both live as long as the run; and this is the hot path.
        device.socket.onLine = { [unowned(unsafe) self, unowned(unsafe) device] line in
            do {
                let latency = try device.takeReply(line)
                if phase == .draining {
                    outstanding -= 1
                } else {
                    pushes += 1
                    left -= 1
                    if phase == .measuring { latencies.append(latency) }
                    device.sendNext()
                }
            } catch {
                conductor.fail(error)
            }
        }
    }
}
