import EventLoop
import Glibc

/// Many short sessions, some cut off at any byte, some over TLS: what of the daemon's memory stays behind.
final class SoakMeasure {
    private let setting: Setting
    private var bed: TestBed { setting.bed }
    private var plan: HostilePlan { setting.plan.hostile }

    private var random = SplitMix(seed: 20_261_201)
    private let buffer = ReceiveBuffer()
    private var players: [Player] = []
    private var visits: [Int: RoughSocket] = [:]
    private var ended: [Int] = []
    private var begun = 0
    private var finished = 0
    private var answered = 0

    private static let database = "soak"
    /// Sessions that are under way at once.
    private static let width = 32

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        try bed.createMigratedDatabase(Self.database)
        let plain = try bed.startDaemon(on: Self.database)
        let secure = try bed.startDaemon(on: Self.database, isSecure: true)
        let fleet = try Fleet(bed.conductor, to: plain, count: 256)
        players = try fleet.register()
        fleet.close()
        var sizes: [(plain: Double, secure: Double)] = []
        for part in 1...plan.parts {
            setting.progress.say(
                "part \(part) of \(plan.parts): \(plan.plainSessions / plan.parts) short sessions, "
                    + "and \(plan.secureSessions / plan.parts) over TLS")
            try visit(plain, count: plan.plainSessions / plan.parts)
            for _ in 0..<plan.secureSessions / plan.parts { try visitSecurely(secure) }
            try bed.conductor.pause(.milliseconds(300))
            let size = (plain: try plain.memory(), secure: try secure.memory())
            sizes.append(size)
            let sessions = (plan.plainSessions + plan.secureSessions) / plan.parts * part
            figures.set("soak_rss_plain_after_\(sessions)", size.plain)
            figures.set("soak_rss_tls_after_\(sessions)", size.secure)
        }
        let third = sizes.count - 1 - (sizes.count + 2) / 3
        figures.set("soak_sessions", Double(plan.plainSessions + plan.secureSessions))
        figures.set("soak_answered_sessions", Double(answered))
        figures.set("soak_rss_growth_plain", sizes[sizes.count - 1].plain - sizes[max(third, 0)].plain)
        figures.set("soak_rss_growth_tls", sizes[sizes.count - 1].secure - sizes[max(third, 0)].secure)
        try plain.stop()
        try secure.stop()
    }

    // MARK: Plain

    private func visit(_ daemon: Daemon, count: Int) throws {
        (begun, finished) = (0, 0)
        try fill(daemon, count)
        while finished < count {
            try bed.conductor.wait(for: "the end of short sessions", atMost: .seconds(60)) { !ended.isEmpty }
            // Released here, and not inside a call of its own.
            for number in ended { visits[number] = nil }
            finished += ended.count
            ended = []
            try fill(daemon, count)
        }
    }

    private func fill(_ daemon: Daemon, _ count: Int) throws {
        while visits.count < Self.width, begun < count {
            begun += 1
            try begin(begun, daemon)
        }
    }

    private func begin(_ number: Int, _ daemon: Daemon) throws {
        let source = 0x7F02_0000 + UInt32(random.next() & 0xFF)
        let socket = try RoughSocket(bed.conductor.loop, buffer, port: daemon.port, from: source)
        visits[number] = socket
        var end = [UInt8]()
        socket.onEnd = { [unowned self] in
            ended.append(number)
            if end.contains(UInt8(ascii: "\n")) { answered += 1 }
        }
        socket.onBytes = { bytes in end = bytes.suffix(200) }
        let script = self.script()
        switch random.next() % 5 {
        case 0:
            // Cut off at any byte, with a reset or without; the daemon may not even have begun to answer.
            let cut = Int(random.next() % UInt64(script.count))
            let isHard = random.next() & 1 == 0
            socket.send(Array(script[..<cut]))
            socket.onBytes = { [unowned self, unowned socket] _ in
                socket.close(hard: isHard)
                ended.append(number)
            }
        case 1:
            // Gone as soon as the last answer is there.
            var lines = 0
            socket.onBytes = { [unowned self, unowned socket] bytes in
                lines += bytes.count { $0 == UInt8(ascii: "\n") }
                guard lines >= 4, socket.isOpen else { return }
                socket.close(hard: true)
                ended.append(number)
                answered += 1
            }
            socket.send(script)
        default: socket.send(script)
        }
    }

    /// What a session says: who it is, one push or one game asked for, good-bye.
    private func script() -> [UInt8] {
        let player = players[Int(random.next() % UInt64(players.count))]
        let game = "g\(random.next() % 8)"
        let state = setting.states.all[Int(random.next() % UInt64(setting.states.all.count))]
        let command =
            random.next() % 3 == 0
            ? Array("PUSH soak \(game) ".utf8) + state + [UInt8(ascii: "\n")] : Array("GET soak \(game)\n".utf8)
        return Array("HELLO\nLOGIN \(player.token)\n".utf8) + command + Array("QUIT\n".utf8)
    }

    // MARK: TLS

    /// One session over TLS, one after the other: shaking hands takes most of its time, on both sides.
    private func visitSecurely(_ daemon: Daemon) throws {
        guard let tls = daemon.tls else { throw BenchError("the daemon does not speak TLS") }
        try bed.conductor.checkInterruption()
        let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | O_CLOEXEC, 0)
        guard descriptor >= 0 else { throw BenchError.system("socket") }
        defer { close(descriptor) }
        try connectSocket(descriptor, to: daemon.port, from: 0x7F03_0000 + UInt32(random.next() & 0xFF))
        let kind = random.next() % 8
        if kind == 0 {
            // Gone within the handshake, after some bytes of a record that was to be longer.
            let count = Int(random.next() % 300)
            let bytes = [0x16, 3, 1, 2, 0, 1] + [UInt8](repeating: 0, count: count)
            _ = bytes.withUnsafeBytes { Glibc.send(descriptor, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
            return
        }
        let end = try SecureEnd(tls, descriptor: descriptor)
        let script = self.script()
        // Cut off without a farewell of TLS, or complete.
        let length = kind == 1 ? Int(random.next() % UInt64(script.count)) : script.count
        _ = script[..<length].withUnsafeBytes { $0.isEmpty ? 0 : end.send($0) }
        guard kind > 1 else { return }
        while end.receive(into: buffer.start, buffer.size) > 0 {}
        answered += 1
    }
}
