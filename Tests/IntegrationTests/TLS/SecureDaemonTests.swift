import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

private let sharedDaemon = Result { try SecureDaemon() }

@Suite("ieumd with TLS")
struct SecureDaemonTests {
    private let secure: SecureDaemon

    init() throws { secure = try sharedDaemon.get() }

    @Test(
        "an outside peer speaks TLS 1.2 and 1.3 with it, and trusts its certificate", arguments: ["-tls1_2", "-tls1_3"])
    func versions(version: String) throws {
        let peer = try outsidePeer(
            secure.port,
            [version, "-CAfile", secure.certificates.authority, "-verify_return_error", "-verify_ip", "127.0.0.1"]
                + ["-alpn", "ieum/1", "-ign_eof"], input: "PING\nQUIT\n")
        #expect(peer.status == 0, "\(peer.text)")
        #expect(peer.text.contains("Verify return code: 0 (ok)"))
        #expect(peer.text.contains("ALPN protocol: ieum/1"))
        #expect(peer.text.contains("IEUM 1 server="))
        #expect(peer.text.contains(version == "-tls1_2" ? "ECDHE-ECDSA-AES128-GCM-SHA256" : "TLS_AES_128_GCM_SHA256"))
        #expect(peer.text.contains("Compression: NONE"))
        // The end was told in TLS: no "unexpected eof".
        #expect(!peer.text.contains("eof while reading"), "\(peer.text)")
        #expect(peer.text.contains("closed"))
    }

    @Test(
        "older versions, ciphers without forward secrecy or authentication, and other protocols get no handshake",
        arguments: [
            ["-tls1", "-cipher", "DEFAULT@SECLEVEL=0"], ["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"],
            ["-tls1_2", "-cipher", "AES128-GCM-SHA256:AES256-SHA"], ["-tls1_2", "-cipher", "ECDHE-ECDSA-AES128-SHA"],
            ["-alpn", "http/1.1,h2"],
        ])
    func refusals(arguments: [String]) throws {
        let peer = try outsidePeer(secure.port, arguments + ["-ign_eof"], input: "PING\nQUIT\n")
        #expect(peer.status != 0)
        #expect(!peer.text.contains("IEUM 1"), "\(peer.text)")
        #expect(peer.text.contains("alert"), "\(peer.text)")
    }

    @Test("a person without ALPN is served; sessions are not resumed, and nothing is renegotiated")
    func habits() throws {
        let plain = try outsidePeer(secure.port, ["-ign_eof"], input: "PING\nQUIT\n")
        #expect(plain.text.contains("IEUM 1 server="))
        #expect(!plain.text.contains("TLS session ticket:"))
        let again = try outsidePeer(secure.port, ["-tls1_2", "-reconnect", "-ign_eof"], input: "QUIT\n")
        #expect(!again.text.contains("Reused,"))
        // A line that begins with R asks s_client to renegotiate.
        let renegotiated = try outsidePeer(secure.port, ["-tls1_2"], input: "R\nPING\n")
        #expect(renegotiated.text.contains("no renegotiation"), "\(renegotiated.text)")
    }

    @Test("a plain client is told in plain text, whether it speaks first or waits")
    func plainClients() throws {
        let hasty = try RawClient(port: secure.port, readsGreeting: false)
        try hasty.send("PING")
        #expect(try hasty.line()?.hasPrefix("* BYE reason=tls-required ") == true)
        #expect(try hasty.line() == nil)
        let waiting = try RawClient(port: secure.port, readsGreeting: false)
        #expect(try waiting.line()?.hasPrefix("* BYE reason=tls-required ") == true)
        let call = try Programs.run("ieum", ["ping", "--server", "127.0.0.1:\(secure.port)", "--json"])
        #expect(call.status == 1)
        #expect(call.error.contains("\"tls-required\""), "\(call.error)")
    }

    @Test("200 handshakes that were begun and left do not keep a healthy client waiting")
    func halfOpen() throws {
        let own = try SecureDaemon(options: ["--handshake-timeout", "5"])
        // The start of a ClientHello, and no more.
        let idlers = try (0..<200).map { _ in
            let client = try RawClient(port: own.port, readsGreeting: false)
            try client.send([22, 3, 1, 2, 0, 1, 0, 1, 0xFC, 3, 3] as [UInt8])
            return client
        }
        let connection = try own.connect()
        let times = try (0..<50).map { _ in try connection.ping() }
        // At most one in ten, where the machine stands still for a moment.
        #expect(times.filter { $0 > .milliseconds(500) }.count <= 5, "\(times)")
        for client in idlers { #expect(try client.line() == nil) }
        #expect(try isInTime(.seconds(1)) { try connection.ping() })
        #expect(own.daemon.log.contains("event=tls-failed"))
    }

    @Test("big states go up and come down over TLS byte for byte, in both directions at once")
    func bigStates() throws {
        var random = SeededRandom(seed: 20_261_130)
        let writer = try secure.connect()
        let token = try writer.register(device: "writer")
        var states: [String: [UInt8]] = [:]
        for number in 0..<40 {
            let size = [1, 900, 4_095, 4_096, 16_383, 16_384, 16_385, 70_000, 500_000, 1_000_000][number % 10]
            let letters = (0..<size).map { _ in UInt8.random(in: 0x61...0x7A, using: &random) }
            states["game-\(number)"] = [0x22] + letters + [0x22]
        }
        // All of them are sent before the first answer is read.
        let requests = try states.map { id, state in
            writer.send(
                .push(Push(game: try GameKey(collection: "c", id: id), saved: .now, base: 0, schema: 0, state: state)))
        }
        for request in requests { _ = try writer.answer(to: request) }
        let reader = try secure.connect()
        _ = try reader.logIn(token)
        var pulled: [String: [UInt8]] = [:]
        var cursor: Revision = 0
        while true {
            let page = try reader.pull(since: cursor)
            for game in page.games { pulled[game.game.id] = game.state }
            cursor = page.cursor
            guard page.hasMore else { break }
        }
        #expect(pulled == states)
    }

    @Test("the metrics tell handshakes, failures and when the certificate ends")
    func metrics() throws {
        let own = try SecureDaemon(metrics: "127.0.0.1:0")
        let port = try own.daemon.metricsPort()
        let client = try own.connect()
        _ = try client.ping()
        let distrustful = ServerAddress(host: "127.0.0.1", port: UInt16(own.port), isSecure: true)
        #expect(throws: ClientError.self) { try ServerConnection(to: distrustful) }
        #expect(try metric("ieum_tls_handshakes_total", port: port) == 1)
        try eventually(60, "the failure is counted") {
            try http(port: port, path: "/metrics").body.contains(
                "ieum_tls_failures_total{reason=\"refused-by-client\"} 1")
        }
        let end = try metric("ieum_tls_certificate_expires_seconds", port: port)
        #expect(abs(end - Date().timeIntervalSince1970 - 86_400) < 3_600)
        // It has a day left.
        #expect(own.daemon.log.contains("level=warning event=certificate-expires-soon"))
    }

    @Test("one connection too many is told so in TLS")
    func tooMany() throws {
        let own = try SecureDaemon(options: ["--max-connections", "1"])
        let first = try own.connect()
        do {
            _ = try own.connect()
            Issue.record("a second one got in")
        } catch ClientError.connectionClosed(let reason) {
            #expect(reason?.code == .tooManyConnections)
        }
        _ = try first.ping()
    }

    @Test("of a crowd beyond the limit 64 may shake hands to be told so; the rest is closed at once")
    func crowdBeyondLimit() throws {
        let own = try SecureDaemon(options: ["--max-connections", "1", "--handshake-timeout", "600"])
        let first = try own.connect()
        var crowd = try (0..<64).map { _ in try RawClient(port: own.port, readsGreeting: false) }
        for _ in 0..<6 { #expect(try RawClient(port: own.port, readsGreeting: false).line() == nil) }
        #expect(crowd.allSatisfy { !$0.hasInput(within: 0) })
        crowd = []
        try eventually(60, "there is room to be told") {
            do {
                _ = try own.connect()
            } catch ClientError.connectionClosed(let reason) where reason?.code == .tooManyConnections {
                return true
            } catch {}
            return false
        }
        _ = try first.ping()
    }

    @Test("draining says goodbye in TLS and ends the daemon well")
    func drains() throws {
        let own = try SecureDaemon()
        let connection = try own.connect()
        _ = try connection.register(device: "phone")
        #expect(own.daemon.stop() == 0)
        #expect(throws: ClientError.connectionClosed(.shuttingDown())) { try connection.ping() }
    }
}
