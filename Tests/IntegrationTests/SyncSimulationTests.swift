import Foundation
import Synchronization
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("the simulator, against a real daemon")
struct SyncSimulationTests {
    @Test("devices converge, and nothing is lost or kept quiet, with connections cut at any byte: 50 histories")
    func holds() async throws {
        let first = SeededRandom(for: "sync simulation").seed
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let isOne = ProcessInfo.processInfo.environment["IEUM_SEED"] != nil
        for index in 0..<(isOne ? 1 : 50) {
            var history = try History(seed: first &+ UInt64(index), daemon: daemon)
            try await history.run()
        }
    }

    /// One player's devices, from a seed. What the network and the threads make of it is chance.
    private struct History {
        let seed: UInt64
        var random: SeededRandom
        let client: RawClient
        let proxy: SyncProxy
        var devices: [SyncDevice] = []
        var saves = 0
        /// The states that each device saved, by game.
        var saved: [Int: [String: Set<String>]] = [:]

        init(seed: UInt64, daemon: DaemonProcess) throws {
            self.seed = seed
            random = SeededRandom(seed: seed)
            let (client, token) = try newPlayer(daemon)
            self.client = client
            proxy = try SyncProxy(to: daemon.port)
            var tokens = [token]
            for _ in 0..<Int.random(in: 1...2, using: &random) {
                let code = try #require(fields(try client.ask("PAIR"))["code"])
                let other = try RawClient(port: daemon.port)
                tokens.append(try #require(fields(try other.ask("LINK \(code)"))["token"]))
            }
            let cuts = Mutex(SeededRandom(seed: random.next()))
            proxy.decide {
                cuts.withLock { random in
                    switch Int.random(in: 0..<3, using: &random) {
                    case 0: .init(cutUp: .random(in: 1..<2_000, using: &random))
                    case 1: .init(cutDown: .random(in: 1..<3_000, using: &random))
                    default: .init()
                    }
                }
            }
            devices = try tokens.map { try SyncDevice(token: $0, port: proxy.port) }
        }

        mutating func run() async throws {
            for _ in 0..<Int.random(in: 10...30, using: &random) { try await step() }
            proxy.decide { .init() }
            proxy.cutAll()
            for device in devices where device.engine == nil { try device.start() }
            // Twice: what the last one pushed is to reach the first.
            for _ in 0..<2 { for device in devices { try await device.engine?.settle() } }
            try check()
        }

        private mutating func step() async throws {
            let index = Int.random(in: devices.indices, using: &random)
            let device = devices[index]
            switch Int.random(in: 0..<20, using: &random) {
            case 0, 1: device.die()
            case 2, 3: if device.engine == nil { try device.start() }
            case 4: proxy.cutAll()
            case 5: if let engine = device.engine { try? await engine.settle(0.5) }
            case 6: device.engine?.retryNow()
            default:
                let id = ["one", "둘", "three"].randomElement(using: &random) ?? "one"
                saves += 1
                let state = Int.random(in: 0..<8, using: &random) == 0 ? nil : "{\"by\":\(index),\"n\":\(saves)}"
                try device.save(id, state)
                if let state { saved[index, default: [:]][id, default: []].insert(state) }
            }
        }

        private func check() throws {
            let states = try devices.map { try $0.states() }
            for other in states.dropFirst() { #expect(other == states[0], "IEUM_SEED=\(seed)") }
            try client.send("PULL limit=1000")
            let pulled = try client.reply()
            #expect(pulled.count == states[0].count + 1, "IEUM_SEED=\(seed)")
            for device in devices {
                for (key, game) in try device.store.heldGames() {
                    #expect(
                        game.standing == .synced && game.sending == nil && game.unseen == nil,
                        "IEUM_SEED=\(seed) \(key)")
                }
            }
            for id in states[0].keys { try checkHistory(of: id) }
        }

        private func checkHistory(of id: String) throws {
            try client.send("HISTORY handle.game \(id) limit=1000")
            var reported: Set<String> = []
            for device in devices {
                for event in try device.store.events(limit: .max) {
                    guard case .conflict(let conflict) = event.kind else { continue }
                    reported.insert("\(conflict.mine.header.revision)")
                }
            }
            var names: Set<String> = []
            for line in try client.reply() where line.hasPrefix("VERSION ") {
                let entry = fields(line)
                let name = "\(entry["device"] ?? "") \(entry["saved"] ?? "")"
                #expect(names.insert(name).inserted, "one version a push; IEUM_SEED=\(seed) \(line)")
                guard entry["outcome"] == "lost" || entry["outcome"] == "won" else { continue }
                // Both deleted it: there is nothing to choose from.
                if entry["deleted"] == "true" { continue }
                #expect(reported.contains(entry["revision"] ?? ""), "IEUM_SEED=\(seed) \(line)")
            }
        }
    }
}
