import Foundation
import TestSupport
import Wire

@testable import IeumClient

/// Some devices of one player, their server and the network between them, in a time of its own: everything that happens
/// follows from the seed.
///
/// For a while everything goes wrong that can: clocks are off, devices are offline or killed between any two actions,
/// connections break at any byte or go silent in one direction, storages fail, the server is overloaded or goes back to a
/// backup. Then it all ends, and what was promised must hold.
final class Simulation {
    enum Event {
        case timer(Int)
        case save(Int)
        case connected(link: Int)
        case unreachable(Int)
        case up(link: Int, [UInt8])
        case down(link: Int, [UInt8])
        case died(link: Int)
        case goOffline(Int)
        case goOnline(Int)
        case kill(Int)
        case start(Int)
        case backUp
        case restore
        case overload(Bool)
        case flakyStorage(Int, Bool)
        case retryNow(Int)
        case peace
    }

    struct Pipe {
        var passed = 0
        var arrival: Int64 = 0
        /// The connection breaks behind this byte.
        var cut: Int?
        /// Nothing comes through behind this byte, and nobody is told.
        var silence: Int?
    }

    struct Link {
        var device: Int
        var isOpen = true
        var up = Pipe()
        var down = Pipe()
    }

    static let origin = ContinuousClock.now
    static let begin: Int64 = 1_764_500_000_000_000
    /// How long things go wrong.
    static let chaos: Int64 = 100_000_000
    static let games = ["today", "어제", "third"].compactMap { try? GameKey(collection: "handle.game", id: $0) }

    let seed: UInt64
    var random: SeededRandom
    var now: Int64 = 0
    var devices: [SimulatedDevice] = []
    let server: ModelServer
    var links: [Int: Link] = [:]
    var problems: [String] = []
    var isPeace = false
    var isOverloaded = false
    var saves = 0
    var restores = 0
    private var backup: ModelRule?
    private var queue: [(time: Int64, number: Int, event: Event)] = []
    private var number = 0
    private var inTransit = 0
    private var lastLink = 0
    private(set) var events = 0

    /// - Parameter storage: makes a device's storage.
    init(seed: UInt64, storage: () throws -> any SimulatedStorage) rethrows {
        self.seed = seed
        random = SeededRandom(seed: seed)
        server = ModelServer(seed: random.next())
        let hour: Int64 = 3_600_000_000
        for index in 0..<Int.random(in: 2...4, using: &random) {
            let skews: [Int64] = [0, 0, 300_000, -hour, hour, -1_500_000, 300 * 24 * hour]
            var skew = skews.randomElement(using: &random) ?? 0
            // A clock that was never set, before 1970: it stands still for us.
            if index == 0, seed % 10 == 3 { skew = -Self.begin - hour }
            devices.append(
                SimulatedDevice(token: server.addDevice(), skew: skew, seed: random.next(), storage: try storage()))
        }
        server.trouble = { [unowned self] in self.trouble() }
        server.send = { [unowned self] link, bytes in self.sent(link, bytes) }
        plan()
    }

    convenience init(seed: UInt64) {
        self.init(seed: seed) { MemoryStorage() }
    }

    // MARK: The plan

    private func plan() {
        for device in devices.indices {
            schedule(.start(device), at: moment(in: 0..<10_000_000))
            for _ in 0..<Int.random(in: 3...10, using: &random) { schedule(.save(device), at: anytime) }
            for _ in 0..<Int.random(in: 0...2, using: &random) {
                let from = anytime
                schedule(.goOffline(device), at: from)
                schedule(.goOnline(device), at: from + moment(in: 1_000_000..<60_000_000))
            }
            for _ in 0..<Int.random(in: 0...2, using: &random) { schedule(.kill(device), at: anytime) }
            if Int.random(in: 0..<4, using: &random) == 0 {
                let from = anytime
                schedule(.flakyStorage(device, true), at: from)
                schedule(.flakyStorage(device, false), at: from + 20_000_000)
            }
            schedule(.retryNow(device), at: anytime)
        }
        if Bool.random(using: &random) {
            let from = anytime
            schedule(.overload(true), at: from)
            schedule(.overload(false), at: from + moment(in: 1_000_000..<30_000_000))
        }
        for _ in 0..<([0, 0, 1, 1, 2].randomElement(using: &random) ?? 0) {
            let from = anytime
            schedule(.backUp, at: from)
            schedule(.restore, at: from + moment(in: 1_000_000..<50_000_000))
        }
        schedule(.peace, at: Self.chaos)
    }

    private var anytime: Int64 { moment(in: 0..<Self.chaos) }

    private func moment(in range: Range<Int64>) -> Int64 { Int64.random(in: range, using: &random) }

    func schedule(_ event: Event, at time: Int64) {
        number += 1
        var (low, high) = (0, queue.count)
        while low < high {
            let middle = (low + high) / 2
            if (queue[middle].time, queue[middle].number) > (time, number) { low = middle + 1 } else { high = middle }
        }
        queue.insert((time, number, event), at: low)
        if case .timer = event {} else { inTransit += 1 }
    }

    // MARK: Running

    /// Runs to the end and says what went wrong.
    func run() -> [String] {
        while let next = queue.popLast(), problems.isEmpty {
            events += 1
            if events > 200_000 { problems.append("no rest after \(events) events: \(devices.map(\.core.phase))") }
            now = max(now, next.time)
            if case .timer = next.event {} else { inTransit -= 1 }
            handle(next.event)
            // A connection that is silent already is noticed within 30 s.
            let isQuiet = isPeace && now > Self.chaos + 30_000_000 && inTransit == 0
            if isQuiet, devices.allSatisfy({ $0.core.status == .upToDate }) {
                checkEnd()
                return problems
            }
            if now > Self.chaos + 1_200_000_000 { problems.append("no rest: \(devices.map(\.core.status))") }
        }
        return problems
    }

    func moment(of device: Int) -> SyncMoment {
        SyncMoment(
            instant: Self.origin + .microseconds(now),
            wall: Timestamp(clamping: Self.begin + now + devices[device].skew))
    }

    private var serverTime: Timestamp { Timestamp(clamping: Self.begin + now) }

    private func handle(_ event: Event) {
        switch event {
        case .timer(let device):
            devices[device].timerAt = nil
            act(device) { $0.timePassed(to: $1) }
        case .save(let device): save(device)
        case .connected(let link):
            guard links[link]?.isOpen == true else { return }
            server.open(link, at: serverTime)
        case .unreachable(let device): act(device) { $0.connectionEnded(.unreachable("no way"), at: $1) }
        case .up(let link, let bytes):
            guard links[link] != nil else { return }
            server.receive(link, bytes, at: serverTime)
        case .down(let link, let bytes): receive(link, bytes)
        case .died(let link): die(link)
        case .goOffline(let device):
            guard !isPeace else { return }
            devices[device].isOffline = true
            if let link = devices[device].link { schedule(.died(link: link), at: now) }
        case .goOnline(let device):
            devices[device].isOffline = false
            if Bool.random(using: &random) { act(device) { $0.retryNow(at: $1) } }
        case .kill(let device):
            if !isPeace { devices[device].actionsLeft = .random(in: 0...12, using: &random) }
        case .start(let device): start(device)
        case .backUp: backup = server.backup
        case .restore: restore()
        case .overload(let isOn): isOverloaded = isOn && !isPeace
        case .flakyStorage(let device, let isOn): devices[device].storageFailures = isOn && !isPeace ? 30 : 0
        case .retryNow(let device): act(device) { $0.retryNow(at: $1) }
        case .peace: makePeace()
        }
    }

    private func makePeace() {
        isPeace = true
        isOverloaded = false
        // Connections that have not gone silent by now stay heard: the others are noticed in the time that is given.
        for id in links.keys {
            if let silence = links[id]?.up.silence, links[id]?.up.passed ?? 0 < silence { links[id]?.up.silence = nil }
            if let silence = links[id]?.down.silence, links[id]?.down.passed ?? 0 < silence {
                links[id]?.down.silence = nil
            }
        }
        for device in devices.indices {
            devices[device].isOffline = false
            devices[device].actionsLeft = nil
            devices[device].storageFailures = 0
            if !devices[device].isAlive { start(device) }
        }
    }

    private func trouble() -> WireError? {
        guard isOverloaded, Int.random(in: 0..<2, using: &random) == 0 else { return nil }
        return Bool.random(using: &random) ? .unavailable() : .busy()
    }

    private func start(_ device: Int) {
        guard !devices[device].isAlive || devices[device].core.phase == .idle else { return }
        devices[device].isAlive = true
        devices[device].core = SyncCore(token: devices[device].token, seed: random.next())
        guard let point = try? devices[device].storage.syncPoint() else { return }
        act(device) { $0.start(point, at: $1) }
    }

    private func save(_ device: Int) {
        guard let key = Self.games.randomElement(using: &random) else { return }
        saves += 1
        let state: [UInt8]? =
            Int.random(in: 0..<8, using: &random) == 0 ? nil : Array("{\"by\":\(device),\"n\":\(saves)}".utf8)
        let stamp = (try? devices[device].storage.heldGame(key))?.stamp
        devices[device].storage.save(key, state, at: moment(of: device).wall)
        devices[device].isToBeChecked = true
        // What was there already is not saved again.
        guard let held = try? devices[device].storage.heldGame(key), held.standing == .edited, held.state == state
        else {
            return
        }
        // Who saw a version comes after it, whatever the clocks say.
        if let stamp, held.saved <= stamp {
            problems.append("device \(device) saved \(key) at \(held.saved), not after \(stamp), which it had seen")
        }
        devices[device].unsettled[key] = .some(state)
        devices[device].editedSince.insert(key)
        guard devices[device].isAlive, let point = try? devices[device].storage.syncPoint() else { return }
        act(device) { $0.savedLocally(point, at: $1) }
    }

    private func restore() {
        guard let backup else { return }
        restores += 1
        for device in devices { (device.held, device.editedSince) = ([:], []) }
        server.restore(backup, at: serverTime)
    }

    // MARK: Devices

    private func act(_ device: Int, _ event: (inout SyncCore, SyncMoment) -> Void) {
        guard devices[device].isAlive else { return }
        event(&devices[device].core, moment(of: device))
        while devices[device].isAlive, !devices[device].core.actions.isEmpty {
            if let left = devices[device].actionsLeft {
                guard left > 0 else { return kill(device) }
                devices[device].actionsLeft = left - 1
            }
            perform(devices[device].core.actions.removeFirst(), device)
        }
        if let problem = devices[device].problem(with: server) { problems.append("device \(device): \(problem)") }
        guard let deadline = devices[device].core.deadline else { return }
        let (seconds, attoseconds) = (deadline - Self.origin).components
        let time = seconds * 1_000_000 + attoseconds / 1_000_000_000_000 + 1
        guard devices[device].timerAt.map({ $0 > time }) ?? true else { return }
        devices[device].timerAt = time
        schedule(.timer(device), at: max(time, now))
    }

    private func perform(_ action: SyncCore.Action, _ device: Int) {
        let fails = Int.random(in: 0..<100, using: &random) < devices[device].storageFailures
        guard !devices[device].store(action, fails: fails, at: moment(of: device)) else {
            return devices[device].isToBeChecked = true
        }
        switch action {
        case .connect: connect(device)
        case .send(let bytes):
            if let link = devices[device].link { pass(bytes, link, \.up) { .up(link: link, $0) } }
        case .disconnect: disconnect(device)
        case .tellSignedOut(let reason): devices[device].signOuts.append(reason)
        case .finishWaiter(let id, let failure): devices[device].finished[id] = .some(failure)
        default: break
        }
    }

    private func kill(_ device: Int) {
        devices[device].isAlive = false
        devices[device].actionsLeft = nil
        disconnect(device)
        schedule(.start(device), at: now + moment(in: 0..<30_000_000))
    }

    // MARK: The network

    private func connect(_ device: Int) {
        guard !devices[device].isOffline else {
            return schedule(.unreachable(device), at: now + moment(in: 1..<3_000_000))
        }
        lastLink += 1
        let id = lastLink
        var link = Link(device: device)
        if !isPeace {
            switch Int.random(in: 0..<10, using: &random) {
            case 0, 1: link.up.cut = .random(in: 1..<1_500, using: &random)
            case 2, 3: link.down.cut = .random(in: 1..<2_500, using: &random)
            case 4: link.up.silence = .random(in: 1..<1_500, using: &random)
            case 5: link.down.silence = .random(in: 1..<2_500, using: &random)
            default: break
            }
        }
        links[id] = link
        devices[device].link = id
        schedule(.connected(link: id), at: now + moment(in: 100..<300_000))
    }

    /// The device hangs up; what it had sent is still on its way.
    private func disconnect(_ device: Int) {
        guard let link = devices[device].link else { return }
        devices[device].link = nil
        schedule(.died(link: link), at: max(links[link]?.up.arrival ?? now, now))
    }

    private func sent(_ link: Int, _ bytes: [UInt8]?) {
        guard let bytes else { return schedule(.died(link: link), at: max(links[link]?.down.arrival ?? now, now) + 1) }
        pass(bytes, link, \.down) { .down(link: link, $0) }
    }

    private func pass(_ bytes: [UInt8], _ id: Int, _ path: WritableKeyPath<Link, Pipe>, _ event: ([UInt8]) -> Event) {
        guard var link = links[id], link.isOpen else { return }
        var pipe = link[keyPath: path]
        var bytes = bytes
        var isCut = false
        if let cut = pipe.cut, pipe.passed + bytes.count > cut {
            bytes = Array(bytes.prefix(max(0, cut - pipe.passed)))
            isCut = true
        }
        if let silence = pipe.silence { bytes = Array(bytes.prefix(max(0, silence - pipe.passed))) }
        pipe.passed += bytes.count
        pipe.arrival = max(pipe.arrival, now) + moment(in: 100..<200_000)
        if !bytes.isEmpty { schedule(event(bytes), at: pipe.arrival) }
        link[keyPath: path] = pipe
        if isCut {
            link.isOpen = false
            schedule(.died(link: id), at: pipe.arrival + 1)
        }
        links[id] = link
    }

    private func receive(_ id: Int, _ bytes: [UInt8]) {
        guard let link = links[id], devices[link.device].link == id else { return }
        let device = link.device
        inputs[id, default: []] += bytes
        // As on a real loop: all lines that came together are handed over before anything is carried out.
        act(device) { core, now in
            while let end = inputs[id]?.firstIndex(of: UInt8(ascii: "\n")) {
                let line = Array(inputs[id]?[..<end] ?? [])
                inputs[id]?.removeSubrange(...end)
                core.lineReceived(line.span, at: now)
            }
        }
    }

    private var inputs: [Int: [UInt8]] = [:]

    private func die(_ id: Int) {
        guard let link = links.removeValue(forKey: id) else { return }
        links[id] = nil
        inputs[id] = nil
        server.close(id)
        guard devices[link.device].link == id else { return }
        devices[link.device].link = nil
        act(link.device) { $0.connectionEnded(.closed, at: $1) }
    }
}
