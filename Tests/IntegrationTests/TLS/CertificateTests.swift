import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("certificates of ieumd")
struct CertificateTests {
    @Test("SIGHUP gives new connections the new certificate, and lets the old ones be")
    func reload() throws {
        let secure = try SecureDaemon()
        let old = try secure.connect()
        let token = try old.register(device: "phone")
        let renewed = try secure.certificates.issue("server")
        #expect(renewed.fingerprint != secure.first.fingerprint)
        try secure.reload()
        func connect(pinning fingerprint: String) throws -> ServerConnection {
            let pinned = try #require(ServerTrust.Fingerprint(fingerprint))
            return try ServerConnection(
                to: ServerAddress(
                    host: "127.0.0.1", port: UInt16(secure.port), isSecure: true, trust: .pinned(pinned)))
        }
        let new = try connect(pinning: renewed.fingerprint.description)
        _ = try new.logIn(token)
        _ = try old.ping()
        #expect(throws: ClientError.self) { try connect(pinning: secure.first.fingerprint.description) }

        // Bad files change nothing, and are named.
        let key = try Data(contentsOf: URL(fileURLWithPath: renewed.key))
        for (bad, said) in [("", "no certificate"), ("none", "No such file"), ("mode", "chmod 600")] {
            switch bad {
            case "none": try FileManager.default.removeItem(atPath: renewed.certificate)
            case "mode":
                try secure.certificates.issue("server")
                chmod(renewed.key, 0o644)
            default: try Data(bad.utf8).write(to: URL(fileURLWithPath: renewed.certificate))
            }
            try secure.reload(expecting: "certificate-reload-failed")
            #expect(secure.daemon.log.contains(said), "\(secure.daemon.log.suffix(500))")
            _ = try connect(pinning: renewed.fingerprint.description).ping()
        }
        _ = try old.ping()
        withExtendedLifetime(key) {}
    }

    @Test("what is wrong with a certificate is told by a code and in words, by ieum and by the engine, which heals")
    func failures() async throws {
        let secure = try SecureDaemon()
        let phone = try CommandLineDevice()
        let joined = try phone.run(
            "register", "--server", secure.address, "--ca", secure.certificates.authority, "--device", "phone")
        try #require(joined.status == 0, "\(joined.talk)")
        let identity = try DeviceHome(path: phone.home.path).identity()
        let folder = try TestFolder("secure")
        let store = try GameStore(path: folder.path + "/games.sqlite", schemaVersion: 1)
        var settings = SyncDevice.settings
        settings.backoff = Backoff(first: .milliseconds(1), limit: .milliseconds(10))
        let engine = try SyncEngine(
            storage: store, address: identity.server, token: identity.token.text, settings: settings)
        try await engine.settle()

        let cases: [(reason: SecurityFailure.Reason, issue: () throws -> Void)] = [
            (.certificateExpired, { try secure.certificates.issue("server", begin: -7_200, end: -3_600) }),
            (.certificateNotYetValid, { try secure.certificates.issue("server", begin: 3_600, end: 7_200) }),
            (.wrongHost, { try secure.certificates.issue("server", hosts: ["games.example.org"]) }),
            (.unknownIssuer, { try secure.certificates.issue("server", isSelfSigned: true) }),
        ]
        for (reason, issue) in cases {
            try issue()
            try secure.reload()
            let call = try phone.run("status", "--json")
            #expect(call.status == 1, "\(call)")
            #expect(call.talk.contains(reason.rawValue) || call.data.contains("\"reachable\":false"), "\(call)")
            let plain = try phone.run("status")
            #expect(plain.talk.contains("there is no secure connection"), "\(plain)")
            engine.stop()
            engine.start()
            try await within(20, "the engine's trouble") {
                while true {
                    if case .insecure(let failure)? = engine.trouble, failure.reason == reason { return }
                    try await Task.sleep(for: .milliseconds(10))
                }
            }
        }
        // Not at full speed: a try takes milliseconds, and the next one is far away.
        let tries = secure.daemon.log.components(separatedBy: "event=tls-failed").count
        try secure.certificates.issue("server")
        try secure.reload()
        #expect(secure.daemon.log.components(separatedBy: "event=tls-failed").count <= tries + 1)
        engine.retryNow()
        try await engine.settle()
        #expect(engine.trouble == nil)
        // The operator is told, too, where the daemon's own clock shows it.
        for event in ["certificate-expired", "certificate-not-yet-valid"] {
            #expect(secure.daemon.log.contains("level=error event=\(event) "))
        }
    }

    @Test("a device's whole life over TLS: register, push, pair, link, pull, watch, and nothing asked twice")
    func wholeLife() throws {
        let secure = try SecureDaemon()
        let phone = try CommandLineDevice()
        #expect(
            try phone.run(
                "register", "--server", secure.address, "--ca", secure.certificates.authority, "--device", "phone"
            ).status == 0)
        let state = "{\"answer\": \"사람\",  \"n\":1e2}"
        #expect(try phone.push(state).object()["outcome"] as? String == "created")
        let code = try #require(try phone.run("pair", "--json").object()["code"] as? String)
        let tablet = try CommandLineDevice()
        let linked = try tablet.run(
            "link", code, "--server", secure.address, "--fingerprint", secure.first.fingerprint.description, "--device",
            "tablet")
        #expect(linked.status == 0, "\(linked.talk)")
        #expect(try tablet.run("pull").status == 0)
        #expect(try tablet.run("get", "handle.game", "today").data == state)
        let watching = try tablet.begin("watch", "--once", "--json")
        try eventually(60, "a change is seen") {
            _ = try phone.push("{\"n\":\(Int.random(in: 0...1_000_000))}")
            return !watching.isRunning
        }
        #expect(try tablet.run("status", "--json").object()["server"] as? String == secure.address)
        #expect(try tablet.run("ping").status == 0)
    }

    @Test("a client certificate is asked for, and goes with the identity")
    func clientCertificates() throws {
        let secure = try SecureDaemon(wantsClientCertificates: true)
        let own = try secure.certificates.issue("device")
        let trust = ["--server", secure.address, "--ca", secure.certificates.authority]
        let without = try Programs.run("ieum", ["ping", "--json"] + trust)
        #expect(without.status == 1)
        #expect(without.error.contains("client-certificate-required"), "\(without.error)")
        let others = try TestCertificates()
        let foreign = try others.issue("device")
        let wrong = try Programs.run(
            "ieum",
            ["ping", "--json", "--client-cert", foreign.certificate, "--client-key", foreign.key] + trust)
        #expect(wrong.error.contains("client-certificate-refused"), "\(wrong.error)")
        withExtendedLifetime(others) {}
        let phone = try CommandLineDevice()
        let call = try phone.run(
            ["register", "--device", "phone", "--client-cert", own.certificate, "--client-key", own.key] + trust)
        #expect(call.status == 0, "\(call.talk)")
        #expect(try phone.push("{\"n\":1}").status == 0)
    }

    @Test("ieumd cert self-signed makes what serve takes and a device pins, and outside tools understand")
    func selfSigned() throws {
        let folder = try TestFolder("cert")
        let made = try Programs.run(
            "ieumd",
            [
                "cert", "self-signed", "--host", "games.example.org,127.0.0.1,::1", "--days", "30", "--dir",
                folder.path + "/tls",
            ])
        #expect(made.status == 0, "\(made.error)")
        let fingerprint = try #require(
            made.output.split(separator: "\n").first { $0.hasPrefix("fingerprint") }?.split(separator: " ").last)
        #expect(
            made.output.contains("ieum register --server tls://games.example.org:4386 --fingerprint \(fingerprint) "))
        let (certificate, key) = (folder.path + "/tls/server.pem", folder.path + "/tls/server.key")
        var status = stat()
        #expect(stat(key, &status) == 0 && status.st_mode & 0o777 == 0o600)
        #expect(stat(folder.path + "/tls", &status) == 0 && status.st_mode & 0o777 == 0o700)
        let shown = try Programs.runInstalled(
            ["openssl", "x509", "-in", certificate, "-noout", "-text", "-fingerprint", "-sha256"])
        #expect(shown.output.contains("DNS:games.example.org, IP Address:127.0.0.1, IP Address:0:0:0:0:0:0:0:1"))
        #expect(shown.output.contains("NIST CURVE: P-256") && shown.output.contains("CA:FALSE"))
        #expect(shown.output.replacing(":", with: "").lowercased().contains(fingerprint))
        #expect(
            try Programs.runInstalled(["openssl", "x509", "-in", certificate, "-noout", "-checkend", "2500000"]).status
                == 0)

        let again = try Programs.run("ieumd", ["cert", "self-signed", "--dir", folder.path + "/tls"])
        #expect(again.status == 2 && again.error.contains("is there already"))
        #expect(try Programs.run("ieumd", ["cert", "self-signed", "--host", "a b", "--dir", folder.path]).status == 1)
        #expect(try Programs.run("ieumd", ["cert"]).status == 2)

        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(
            database: database.conninfo, host: "0.0.0.0", options: ["--tls-cert", certificate, "--tls-key", key])
        let phone = try CommandLineDevice()
        let server = "tls://127.0.0.1:\(daemon.port)"
        let refused = try phone.run("register", "--server", server, "--device", "phone", "--json")
        #expect(refused.status == 1 && refused.talk.contains("certificate-unknown-issuer"), "\(refused.talk)")
        let mismatch = try phone.run(
            "register", "--server", server, "--device", "phone", "--json", "--fingerprint",
            String(repeating: "0", count: 64))
        #expect(mismatch.status == 1 && mismatch.talk.contains("certificate-not-pinned"), "\(mismatch.talk)")
        let joined = try phone.run(
            "register", "--server", server, "--device", "phone", "--fingerprint", String(fingerprint))
        #expect(joined.status == 0, "\(joined.talk)")
        // The line for the next device pins it, too.
        #expect(try phone.run("pair").talk.contains("--server \(server) --fingerprint \(fingerprint) "))
    }

    @Test("serve refuses files that it cannot use, before it starts anything, and says what to do")
    func badFiles() throws {
        let certificates = try TestCertificates()
        let (one, two) = (try certificates.issue("one"), try certificates.issue("two"))
        chmod(two.key, 0o640)
        // OpenSSL takes it, and finds nothing to shake hands with.
        let odd = (certificate: certificates.path + "/odd.pem", key: certificates.path + "/odd.key")
        let made = try Programs.runInstalled(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:secp224r1", "-nodes"]
                + ["-subj", "/CN=localhost", "-days", "9", "-keyout", odd.key, "-out", odd.certificate])
        try #require(made.status == 0, "\(made)")
        chmod(odd.key, 0o600)
        for (arguments, said) in [
            (["--tls-cert", odd.certificate, "--tls-key", odd.key], "take P-256, P-384, Ed25519 or RSA"),
            (["--tls-cert", one.certificate], "needs --tls-key"), (["--tls-key", one.key], "needs --tls-cert"),
            (["--tls-client-ca", certificates.authority], "needs --tls-cert"),
            (["--tls-cert", two.certificate, "--tls-key", one.key], "is not that of the certificate"),
            (["--tls-cert", two.certificate, "--tls-key", two.key], "chmod 600"),
            (["--tls-cert", "/nowhere", "--tls-key", one.key], "No such file"),
        ] {
            let result = try Programs.run("ieumd", ["serve", "--database", "host=/nowhere"] + arguments)
            #expect(result.status == 2, "\(result)")
            #expect(result.error.contains(said), "\(result.error)")
        }
    }

    @Test("a client speaks plainly off its own machine only when it is told to")
    func plainlyOnlyWhenTold() throws {
        for (arguments, said) in [
            (["--server", "plain://192.0.2.1:4386"], "--insecure"),
            (["--server", "tls://192.0.2.1:4386", "--insecure"], "contradict"),
            (["--server", "127.0.0.1:4386", "--fingerprint", String(repeating: "a", count: 64)], "say tls://"),
            (["--server", "192.0.2.1:4386", "--fingerprint", "abc"], "64 hexadecimal digits"),
            (["--server", "192.0.2.1:4386", "--client-cert", "x"], "belong together"),
        ] {
            let call = try Programs.run("ieum", ["ping"] + arguments)
            #expect(call.status == 2, "\(call)")
            #expect(call.error.contains(said), "\(call.error)")
        }
        let database = try TestDatabase.migrated()
        let plain = try DaemonProcess(database: database.conninfo)
        let call = try Programs.run("ieum", ["ping", "--server", "tls://127.0.0.1:\(plain.port)", "--json"])
        #expect(call.status == 1)
        #expect(call.error.contains("server-is-plain"), "\(call.error)")
    }
}
