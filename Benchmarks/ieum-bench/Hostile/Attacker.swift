import EventLoop
import Glibc

/// The process that floods: it says `ready`, begins at SIGUSR1, ends at SIGUSR2, and tells what it did in one line.
///
/// It has the lowest priority there is (nice 19) and one thread, so that what the daemon does under it is measured, and not
/// how two processes share a core: whoever else has work goes first.
final class Attacker {
    private let conductor: Conductor
    private let buffer = ReceiveBuffer()
    private let flood: Flood
    private let port: UInt16
    private let token: String
    private var lairs: [Lair] = []
    private var closed: [Int] = []
    private var random = SplitMix(seed: 20_261_130)
    private var isAttacking = false
    private var connections = 0
    private var answers: [String: Int] = [:]
    private var timers: [EventLoop.Timer] = []
    private var signals: [SignalWatch] = []
    private var dripped = 0

    /// One of its connections.
    private final class Lair {
        let socket: RoughSocket
        var unfinished: [UInt8] = []
        var answered = 0
        var isGreeted = false

        init(_ socket: RoughSocket) { self.socket = socket }
    }

    /// Runs the process.
    /// - Parameter arguments: the flood, the daemon's port, and a player's token.
    static func main(_ arguments: [String]) -> Int32 {
        guard arguments.count == 3, let flood = Flood(rawValue: arguments[0]), let port = UInt16(arguments[1]) else {
            writeError("ieum-bench: flood KIND PORT TOKEN\n")
            return 2
        }
        setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, 19)
        _ = Machine.raiseFileLimit(to: 65_536)
        do {
            try Attacker(flood, port, arguments[2]).run()
            return 0
        } catch {
            writeError("ieum-bench: flood: \(error)\n")
            return 1
        }
    }

    private init(_ flood: Flood, _ port: UInt16, _ token: String) throws {
        conductor = try Conductor()
        (self.flood, self.port, self.token) = (flood, port, token)
    }

    private func run() throws {
        var isOver = false
        signals = [
            try SignalWatch(on: conductor.loop, signal: SIGUSR1) { [unowned self] in attack() },
            try SignalWatch(on: conductor.loop, signal: SIGUSR2) { isOver = true },
        ]
        say("ready")
        try conductor.wait(for: "the end of the flood", atMost: .seconds(600)) { isOver }
        let counts = answers.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }
        say((["connections=\(connections)"] + counts).joined(separator: " "))
    }

    private func say(_ text: String) {
        let bytes = Array("\(text)\n".utf8)
        _ = write(STDOUT_FILENO, bytes, bytes.count)
    }

    private func attack() {
        guard !isAttacking else { return }
        isAttacking = true
        for _ in 0..<flood.width { open() }
        // What was closed is opened again from the loop, not from inside the closed one's call.
        timers.append(
            EventLoop.Timer(on: conductor.loop, after: .milliseconds(1), every: .milliseconds(1)) { [unowned self] in
                reopen()
            })
        if flood == .drip {
            timers.append(
                EventLoop.Timer(on: conductor.loop, after: .milliseconds(5), every: .milliseconds(5)) {
                    [unowned self] in drip()
                })
        }
    }

    // MARK: Connections

    private func open() {
        do {
            let lair = Lair(try RoughSocket(conductor.loop, buffer, port: port, from: source))
            connections += 1
            lair.socket.onBytes = { [unowned self, unowned lair] in take($0, lair) }
            lair.socket.onEnd = { [unowned self, unowned lair] in over(lair) }
            lair.socket.onRoom = { [unowned self, unowned lair] in pour(lair) }
            lairs.append(lair)
            if isProxied { lair.socket.send(proxyHeader()) }
        } catch {
            conductor.fail(error)
        }
    }

    private func over(_ lair: Lair) {
        lair.socket.close(hard: true)
        closed.append(0)
    }

    private func reopen() {
        guard !closed.isEmpty else { return }
        closed.removeAll(keepingCapacity: true)
        lairs.removeAll { !$0.socket.isOpen }
        while lairs.count < flood.width { open() }
    }

    /// From ever new loopback addresses; those that come as by a balancer have its address.
    private var source: UInt32 { isProxied ? floodBalancer : 0x7F01_0000 + UInt32(random.next() & 0xFFFF) }

    private var isProxied: Bool { flood == .logins || flood == .loginsOfOne || flood == .guesses }

    /// A PROXY header, version 2, of a connection over TCP, as a balancer sends it.
    private func proxyHeader() -> [UInt8] {
        let host: UInt32 = flood == .loginsOfOne ? 0xCB00_7107 : 0x1400_0000 | UInt32(random.next() & 0x3FF_FFFF)
        let address = (0..<4).reversed().map { UInt8(truncatingIfNeeded: host >> ($0 * 8)) }
        return [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A, 0x21, 0x11, 0, 12]
            + address + [127, 0, 0, 1, 0xC0, 0x00, 0x11, 0x22]
    }

    // MARK: What it sends

    private func begin(_ lair: Lair) {
        switch flood {
        case .connections: over(lair)
        case .logins, .loginsOfOne, .guesses: lair.socket.send(tries())
        case .garbage, .endless: lair.socket.wantsRoom = true
        case .drip: break
        case .chatter: lair.socket.send(Self.ping)
        case .pushes, .pings: lair.socket.send(Array("LOGIN \(token)\n".utf8))
        }
    }

    /// Fewer tries than a connection may have, so that it is the addresses that count.
    private func tries() -> [UInt8] {
        (0..<4).flatMap { _ in
            let line =
                flood == .guesses
                ? "LINK \(code())\n" : "LOGIN \(token.dropLast(9))\(code().filter { $0 != "-" })A\n"
            return Array(line.utf8)
        }
    }

    private func code() -> String {
        let digits = Array("0123456789ABCDEFGHJKMNPQRSTVWXYZ")
        let text = (0..<8).map { _ in String(digits[Int(random.next() & 31)]) }.joined()
        return "\(text.prefix(4))-\(text.suffix(4))"
    }

    private func pour(_ lair: Lair) {
        switch flood {
        case .garbage: lair.socket.send(Self.garbage)
        case .endless: lair.socket.send(Self.endless)
        case .pings: lair.socket.send(Self.pings)
        case .pushes: lair.socket.send(Self.pushes)
        default: lair.socket.wantsRoom = false
        }
    }

    private func drip() {
        // A twentieth of them every twentieth of a tenth of a second.
        for _ in 0..<(flood.width / 20) {
            dripped = (dripped + 1) % max(lairs.count, 1)
            if lairs.indices.contains(dripped) { lairs[dripped].socket.send([UInt8(ascii: "P")]) }
        }
    }

    private static let endless = [UInt8](repeating: UInt8(ascii: "a"), count: 65_536)
    private static let ping = Array("PING\n".utf8)
    private static let pings = Array(String(repeating: "PING\n", count: 1_024).utf8)
    private static let garbage: [UInt8] = {
        var random = SplitMix(seed: 7)
        return (0..<256).flatMap { _ -> [UInt8] in
            let length = Int(random.next() % 60) + 1
            return (0..<length).map { _ in UInt8(33 + random.next() % 94) } + [UInt8(ascii: "\n")]
        }
    }()
    private static let pushes: [UInt8] = {
        let states = GameStates(count: 16).all
        // Many games: a batch takes one push of each.
        return (0..<256).flatMap { number in
            Array("PUSH flood g\(number) ".utf8) + states[number % states.count] + [UInt8(ascii: "\n")]
        }
    }()

    // MARK: What it hears

    private func take(_ bytes: UnsafeBufferPointer<UInt8>, _ lair: Lair) {
        for part in bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).dropLast() {
            lair.unfinished += part.prefix(80)
            hear(lair)
            lair.unfinished.removeAll(keepingCapacity: true)
            guard lair.socket.isOpen else { return }
        }
        let rest = bytes.lastIndex(of: UInt8(ascii: "\n")).map { bytes[($0 + 1)...] } ?? bytes[...]
        lair.unfinished += rest.prefix(80)
    }

    private func hear(_ lair: Lair) {
        guard lair.isGreeted else {
            lair.isGreeted = true
            return begin(lair)
        }
        let words = lair.unfinished.split(separator: UInt8(ascii: " "), maxSplits: 3)
        let verb = words.first.map { String(decoding: $0, as: UTF8.self) } ?? ""
        let isCoded = words.count > 1 && verb == "ERR"
        let isBye = words.count > 2 && verb == "*"
        let word = isCoded ? words[1][...] : isBye ? words[2].dropFirst("reason=".utf8.count) : words.first ?? []
        answers[String(decoding: word, as: UTF8.self), default: 0] += 1
        lair.answered += 1
        switch flood {
        case .logins, .guesses: if lair.answered == 4 { over(lair) }
        case .loginsOfOne:
            if lair.answered == 4 {
                lair.answered = 0
                lair.socket.send(tries())
            }
        case .pushes, .pings: lair.socket.wantsRoom = true
        case .chatter: lair.socket.send(Self.ping)
        case .connections, .garbage, .endless, .drip: break
        }
    }
}

/// The address from which the daemon believes PROXY headers.
let floodBalancer: UInt32 = 0x7F00_0009
