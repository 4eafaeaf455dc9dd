import Foundation
import TestSupport
import Testing

@Suite("limits")
struct LimitTests {
    private static let megabyte = 1 << 20

    /// A state of about that many bytes.
    private static func state(_ bytes: Int) -> String { "\"" + String(repeating: "x", count: bytes) + "\"" }

    @Test("one connection more than allowed is told so and closed; the others live, and a place that is free is taken")
    func connections() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, options: ["--max-connections", "3"])
        var clients = try (0..<3).map { _ in try RawClient(port: daemon.port) }
        for client in clients { #expect(try client.ask("PING") == "OK") }
        let refused = try RawClient(port: daemon.port, readsGreeting: false)
        #expect(try refused.line()?.hasPrefix("* BYE reason=too-many-connections retry-after=") == true)
        #expect(try refused.line() == nil)
        for client in clients { #expect(try client.ask("PING") == "OK") }
        clients.removeLast()
        try eventually(60, "the free place is taken") {
            try RawClient(port: daemon.port, readsGreeting: false).line()?.hasPrefix("IEUM 1 ") == true
        }
    }

    @Test("beyond max-pending a push is told to come later, none is lost, and memory stays bounded")
    func pending() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, options: ["--max-pending", "1048576"])
        let clients = try (0..<8).map { _ in try newPlayer(daemon).client }
        let before = try residentBytes(daemon.processID)
        let state = Self.state(100_000)
        let totals = Shared((busy: 0, stored: 0))
        let workers = Workers()
        for client in clients {
            workers.start {
                var waiting = Array(1...40)
                var revision = 0
                while !waiting.isEmpty {
                    // All at once: the replies are short enough to wait in the sockets.
                    try client.send(waiting.map { "PUSH g x\($0) base=0 \(state)\n" }.joined().utf8)
                    var again: [Int] = []
                    for number in waiting {
                        let answer = try client.reply(timeout: 60).last ?? ""
                        if answer.hasPrefix("ERR busy retry-after=") {
                            again.append(number)
                            totals.change { $0.busy += 1 }
                        } else {
                            revision += 1
                            try #require(
                                fields(answer)["outcome"] == "created" && fields(answer)["revision"] == "\(revision)")
                            totals.change { $0.stored += 1 }
                        }
                    }
                    waiting = again
                }
            }
        }
        try workers.join()
        // With a sanitizer they may be slower than the daemon's answers.
        #expect(totals.current.busy > 0 || Sanitizer.isActive)
        #expect(totals.current.stored == 8 * 40)
        // Each connection's read buffers, and a batch on its way, come to the accepted pushes.
        #expect(try residentBytes(daemon.processID) - before < 64 * Self.megabyte)
        for client in clients { #expect(try client.ask("WATCH since=40") == "OK revision=40") }
    }

    @Test("who says nothing for too long is told so and closed; a ping now and then keeps a connection")
    func idle() async throws {
        try await aside {
            let database = try TestDatabase.migrated()
            let daemon = try DaemonProcess(database: database.conninfo, options: ["--idle-timeout", "3"])
            let (silent, lively) = (try RawClient(port: daemon.port), try RawClient(port: daemon.port))
            let begin = ContinuousClock.now
            while !silent.hasInput(within: 0.2) {
                #expect(try lively.ask("PING") == "OK")
                try #require(ContinuousClock.now - begin < .seconds(60))
            }
            #expect(ContinuousClock.now - begin > .seconds(2))
            #expect(try silent.line()?.hasPrefix("* BYE reason=idle-timeout ") == true)
            #expect(try silent.line() == nil)
            #expect(try lively.ask("PING") == "OK")
        }
    }

    @Test("a peer that never reads its replies costs little memory and is closed; others are served meanwhile")
    func neverReads() async throws {
        try await aside {
            let database = try TestDatabase.migrated()
            let daemon = try DaemonProcess(
                database: database.conninfo, metrics: "127.0.0.1:0", options: ["--write-timeout", "3"])
            let monitoring = try daemon.metricsPort()
            let (client, token) = try newPlayer(daemon)
            let state = Self.state(100_000)
            for number in 0..<50 { #expect(try client.ask("PUSH g x\(number) \(state)").hasPrefix("OK ")) }
            let before = try residentBytes(daemon.processID)
            let deaf = try (0..<4).map { _ in try RawClient(port: daemon.port) }
            for peer in deaf {
                #expect(try peer.ask("LOGIN \(token)").hasPrefix("OK "))
                try peer.send(String(repeating: "PULL since=0\n", count: 1000).utf8)
            }
            var most = 0
            try eventually(60, "the peers that do not read are closed") {
                most = max(most, try residentBytes(daemon.processID) - before)
                #expect(try client.ask("PING") == "OK")
                return try metric("ieum_connections", port: monitoring) == 1
            }
            #expect(most < 64 * Self.megabyte, "\(most >> 20) MB")
            #expect(try metric("ieum_pending_bytes", port: monitoring) == 0)
        }
    }

    @Test(
        "while replies that nobody reads fill max-pending, pulls and pushes are told to come later; then they are done")
    func pendingReplies() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(
            database: database.conninfo, metrics: "127.0.0.1:0", options: ["--max-pending", "1048576"])
        let monitoring = try daemon.metricsPort()
        let (client, token) = try newPlayer(daemon)
        let state = Self.state(100_000)
        for number in 0..<12 { #expect(try client.ask("PUSH g x\(number) \(state)").hasPrefix("OK ")) }
        // Each leaves about a page in the daemon's memory, once the sockets are full.
        var deaf = try (0..<4).map { _ in try RawClient(port: daemon.port) }
        for peer in deaf {
            #expect(try peer.ask("LOGIN \(token)").hasPrefix("OK "))
            try peer.send(String(repeating: "PULL since=0\n", count: 200).utf8)
        }
        try eventually(60, "their replies fill the memory that there is") {
            try metric("ieum_pending_bytes", port: monitoring) >= 1_048_576
        }
        for line in ["PULL since=0", "GET g x1", "HISTORY g x1", "DEVICES", "PUSH g x1 {}"] {
            let answer = try client.ask(line)
            #expect(answer.hasPrefix("ERR busy retry-after="), "\(line): \(answer)")
        }
        #expect(try client.ask("PING") == "OK")
        deaf = []
        try eventually(60, "the memory is free") { try metric("ieum_pending_bytes", port: monitoring) == 0 }
        try client.send("GET g x1")
        #expect(try client.reply().count == 2)
    }

    @Test("1,000 connections that come and go leave nothing behind")
    func comeAndGo() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, metrics: "127.0.0.1:0")
        let monitoring = try daemon.metricsPort()
        func descriptors() throws -> Int {
            try FileManager.default.contentsOfDirectory(atPath: "/proc/\(daemon.processID)/fd").count
        }
        let (client, _) = try newPlayer(daemon)
        var before = (descriptors: 0, bytes: 0)
        for round in 0..<10 {
            // The first hundred fills the daemon's own caches.
            if round == 1 { before = (try descriptors(), try residentBytes(daemon.processID)) }
            var crowd = try (0..<100).map { number in
                let peer = try RawClient(port: daemon.port, readsGreeting: number % 2 == 0)
                switch number % 4 {
                case 0: try peer.send("PING")
                case 1: try peer.send("PUSH g x {\"half".utf8)
                case 2: _ = try peer.ask("REGISTER")
                default: break
                }
                return peer
            }
            #expect(crowd.count == 100)
            crowd = []
            // Connections are taken in their order: behind this one, all have come.
            #expect(try RawClient(port: daemon.port).ask("PING") == "OK")
            #expect(try client.ask("PUSH g x {\"n\":\(round)}").hasPrefix("OK "))
            try eventually(60, "all have gone") { try metric("ieum_connections", port: monitoring) == 1 }
        }
        #expect(try descriptors() <= before.descriptors + 2)
        #expect(try residentBytes(daemon.processID) - before.bytes < 8 * Self.megabyte)
    }

    @Test("garbage from 200 connections disturbs no healthy client")
    func garbage() throws {
        var random = SeededRandom(for: "LimitTests.garbage")
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo, metrics: "127.0.0.1:0")
        let monitoring = try daemon.metricsPort()
        let (client, _) = try newPlayer(daemon)
        let before = try residentBytes(daemon.processID)
        let workers = Workers()
        for _ in 0..<4 {
            let seed = random.next()
            workers.start {
                var random = SeededRandom(seed: seed)
                for _ in 0..<50 {
                    let peer = try RawClient(port: daemon.port)
                    for _ in 0..<Int.random(in: 1...8, using: &random) {
                        var bytes = random.bytes(Int.random(in: 1...8192, using: &random))
                        if Bool.random(using: &random) { bytes = Array("PUSH g x {".utf8) + bytes }
                        if Bool.random(using: &random) { bytes.append(0x0A) }
                        // A peer that never reads is closed at some time, and that is right.
                        guard (try? peer.send(bytes)) != nil else { break }
                    }
                }
            }
        }
        var revision = 0
        while workers.areRunning {
            revision += 1
            let answer = try client.ask("PUSH g x\(revision % 3) {\"n\":\(revision)}")
            try #require(fields(answer)["revision"] == "\(revision)", "\(answer)")
        }
        try workers.join()
        #expect(revision > 0)
        try eventually(60, "all have gone") { try metric("ieum_connections", port: monitoring) == 1 }
        #expect(try residentBytes(daemon.processID) - before < 64 * Self.megabyte)
        #expect(try client.ask("PING") == "OK")
    }
}
