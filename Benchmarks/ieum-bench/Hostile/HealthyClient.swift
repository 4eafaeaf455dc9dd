import EventLoop

/// A client that means well: one connection pings, another pushes, each some milliseconds after its answer came.
final class HealthyClient {
    private let conductor: Conductor
    private let fleet: Fleet
    private let pinging: Fleet
    private let device: Device
    private var random = SplitMix(seed: 11)
    private var pings: [UInt32] = []
    private var pushes: [UInt32] = []
    private var outstanding = 0
    private var isResting = true
    private var timers: [EventLoop.Timer] = []

    /// How long its commands took, in microseconds, in rising order.
    struct Latencies {
        var pings: [UInt32] = []
        var pushes: [UInt32] = []

        /// A latency that this share did not exceed, in milliseconds.
        static func milliseconds(_ sorted: [UInt32], _ share: Double) -> Double {
            Double(percentile(sorted, share) ?? 0) / 1_000
        }
    }

    /// Signs in twice as a new player.
    init(_ conductor: Conductor, to daemon: Daemon, states: GameStates) throws {
        self.conductor = conductor
        fleet = try Fleet(conductor, to: daemon, count: 1)
        let player = try fleet.register()[0]
        try fleet.seedGames([player], count: 20, states: states)
        pinging = try Fleet(conductor, to: daemon, count: 1)
        try pinging.signIn([player])
        device = Device(socket: fleet.sockets[0], player: player, states: states, seed: 3)
    }

    /// Closes its connections, before the daemon does.
    func close() {
        fleet.close()
        pinging.close()
    }

    /// Measures for a time.
    func measure(_ duration: Duration) throws -> Latencies {
        (pings, pushes, isResting) = ([], [], false)
        let pinger = pinging.sockets[0]
        let ping = Array("PING\n".utf8)
        var pingedAt: Int64 = 0
        let sendPing = {
            pingedAt = monotonicNanoseconds()
            pinger.send(ping)
        }
        pinger.onLine = { [unowned self] line in
            pings.append(UInt32(clamping: (monotonicNanoseconds() - pingedAt) / 1_000))
            answered(line, next: 0, sendPing)
        }
        device.socket.onLine = { [unowned self] line in
            do {
                pushes.append(try device.takeReply(line))
                answered(line, next: 1) { [unowned self] in device.sendNext() }
            } catch {
                conductor.fail(error)
            }
        }
        timers = (0..<2).map { index in
            EventLoop.Timer(on: conductor.loop, after: .milliseconds(1)) { [unowned self] in
                index == 0 ? sendPing() : device.sendNext()
            }
        }
        outstanding = 2
        try conductor.pause(duration)
        isResting = true
        try conductor.wait(for: "a healthy client's last answers", atMost: .seconds(30)) { outstanding == 0 }
        timers = []
        guard !pings.isEmpty, !pushes.isEmpty else { throw BenchError("a healthy client was not answered") }
        return Latencies(pings: pings.sorted(), pushes: pushes.sorted())
    }

    private func answered(_ line: UnsafeBufferPointer<UInt8>, next index: Int, _ send: @escaping () -> Void) {
        guard starts(line, with: [UInt8(ascii: "O"), UInt8(ascii: "K")]) else {
            return conductor.fail(BenchError("a healthy client was answered \(String(decoding: line, as: UTF8.self))"))
        }
        guard !isResting else {
            outstanding -= 1
            return
        }
        // Neither in step with the daemon's turns, nor more than its player may.
        let wait = Duration.microseconds(Int(random.next() % 4_000) + 1_000)
        timers[index] = EventLoop.Timer(on: conductor.loop, after: wait, send)
    }
}
