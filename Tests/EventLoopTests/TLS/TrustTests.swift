import COpenSSL
import Foundation
import TestSupport
import Testing

@testable import EventLoop

@Suite("whom TLS trusts")
struct TrustTests {
    enum Shown: CaseIterable { case good, expired, early, other, selfSigned, nameless, wild, halfWild }

    private func files(_ shown: Shown, _ certificates: TestCertificates) throws -> TestCertificates.Files {
        switch shown {
        case .good: try certificates.issue("good")
        case .expired: try certificates.issue("expired", begin: -7_200, end: -3_600)
        case .early: try certificates.issue("early", begin: 3_600, end: 7_200)
        case .other: try certificates.issue("other", hosts: ["games.example.org", "192.0.2.1"])
        case .selfSigned: try certificates.issue("self", isSelfSigned: true)
        // Its common name is the host's, and counts for nothing.
        case .nameless: try certificates.issue("games.example.org", hosts: [])
        case .wild: try certificates.issue("wild", hosts: ["*.example.org"])
        case .halfWild: try certificates.issue("half", hosts: ["ga*.example.org"])
        }
    }

    @Test(
        "a certificate of a trusted authority is good for its names and dates only",
        arguments: [
            (Shown.good, "127.0.0.1", nil), (.good, "localhost", nil), (.good, "LOCALHOST", nil),
            (.good, "127.0.0.2", TLSError.Kind.wrongHost), (.good, "localhost.example", .wrongHost),
            (.other, "127.0.0.1", .wrongHost), (.other, "games.example.org", nil), (.other, "192.0.2.1", nil),
            (.other, "example.org", .wrongHost), (.expired, "127.0.0.1", .certificateExpired),
            (.early, "127.0.0.1", .certificateNotYetValid), (.selfSigned, "127.0.0.1", .unknownIssuer),
            (.nameless, "games.example.org", .wrongHost), (.wild, "games.example.org", nil),
            (.wild, "example.org", .wrongHost), (.wild, "a.games.example.org", .wrongHost),
            (.halfWild, "games.example.org", .wrongHost),
        ])
    func authorities(shown: Shown, host: String, failure: TLSError.Kind?) throws {
        let certificates = try TestCertificates()
        let pair = try Pair(
            server: Pair.serverContext(files(shown, certificates)),
            client: Pair.clientContext(.authorities(file: certificates.authority)), host: host)
        #expect(pair.isAgreed == (failure == nil))
        #expect(pair.clientFailure == failure)
        if failure == nil {
            #expect(pair.talks())
        } else {
            // The server learns why, and nothing of the client's was sent.
            #expect(pair.run { pair.server.end != nil })
            #expect(pair.serverFailure == .certificateRefused)
            #expect(pair.server.lineCount == 0)
        }
    }

    @Test("the system's authorities know nothing of ours")
    func system() throws {
        let certificates = try TestCertificates()
        let pair = try Pair(
            server: Pair.serverContext(files(.good, certificates)), client: Pair.clientContext(.system))
        #expect(pair.clientFailure == .unknownIssuer)
    }

    @Test("a pinned certificate is good whatever it says, and no other one is", arguments: Shown.allCases)
    func pinned(shown: Shown) throws {
        let certificates = try TestCertificates()
        let files = try files(shown, certificates)
        let good = try Pair(
            server: Pair.serverContext(files), client: Pair.clientContext(.pinned(files.fingerprint)))
        #expect(good.isAgreed)
        #expect(good.talks())

        let other = try certificates.issue("another")
        let bad = try Pair(
            server: Pair.serverContext(files), client: Pair.clientContext(.pinned(other.fingerprint)))
        #expect(bad.clientFailure == .pinMismatch)
        #expect(bad.run { bad.server.end != nil })
        #expect(bad.server.lineCount == 0)
    }

    @Test("where client certificates are wanted, only those of the authority get in")
    func clientCertificates() throws {
        let (ours, theirs) = (try TestCertificates(), try TestCertificates())
        let files = try ours.issue("server")
        let context = try Pair.serverContext(files, clientAuthorities: ours.authority)
        let trust = TLSClientContext.Trust.authorities(file: ours.authority)

        let right = try Pair(server: context, client: Pair.clientContext(trust, certificate: ours.issue("client")))
        #expect(right.talks())

        let cases: [(TestCertificates.Files?, TLSError.Kind, TLSError.Kind)] = [
            (nil, .clientCertificateRequired, .clientCertificateRequired),
            (try theirs.issue("client"), .unknownIssuer, .certificateRefused),
            (try ours.issue("late", begin: -7_200, end: -3_600), .certificateExpired, .certificateRefused),
        ]
        for (certificate, atServer, atClient) in cases {
            let pair = try Pair(server: context, client: Pair.clientContext(trust, certificate: certificate))
            // With TLS 1.3 the client is done before the server has seen its certificate.
            #expect(!pair.talks())
            #expect(pair.clientFailure == atClient)
            #expect(pair.serverFailure == atServer)
            #expect(pair.server.lineCount == 0)
        }
    }

    @Test("a client that speaks another protocol over TLS is refused")
    func otherProtocol() throws {
        let (certificates, files) = try TestCertificates.shared()
        let pair = try Pair(
            server: Pair.serverContext(files),
            client: Pair.clientContext(.authorities(file: certificates.authority), protocolName: "http/1.1"))
        #expect(pair.clientFailure == .noCommonProtocol)
        #expect(pair.run { pair.server.end != nil })
        #expect(pair.serverFailure == .noCommonProtocol)
    }

    @Test("sides that have no cipher in common both know that it is that, and no disturbance")
    func noCommonCipher() throws {
        let files = try TestCertificates.shared().server
        let server = try Pair.serverContext(files)
        try #require(SSL_CTX_set_ciphersuites(server.handle, "TLS_AES_128_CCM_SHA256") == 1)
        let pair = try Pair(server: server, client: Pair.clientContext(.pinned(files.fingerprint)))
        #expect(!pair.isAgreed)
        #expect(pair.clientFailure == .versionTooOld)
        #expect(pair.run { pair.server.end != nil })
        #expect(pair.serverFailure == .versionTooOld)
    }

    @Test("a key that others may read, one of another certificate, and files that are none, are refused by name")
    func files() throws {
        let certificates = try TestCertificates()
        let (one, two) = (try certificates.issue("one"), try certificates.issue("two"))
        func failure(_ certificate: String, _ key: String, _ authorities: String? = nil) -> String {
            do throws(TLSError) {
                _ = try TLSServerContext(
                    files: .init(certificate: certificate, key: key, clientAuthorities: authorities),
                    protocolName: "ieum/1", plainAnswer: [])
                return "none"
            } catch {
                #expect(error.kind == .file)
                return error.message
            }
        }
        #expect(failure(one.certificate, one.key) == "none")
        #expect(failure(one.certificate, two.key).contains("is not that of the certificate"))
        #expect(failure(one.key, one.key).contains("\(one.key) holds no certificate"))
        #expect(failure(one.certificate, one.certificate + "x").contains("No such file"))
        #expect(failure(one.certificate, one.key, one.key).contains("\(one.key) holds no certificates"))
        let empty = certificates.path + "/empty"
        try Data().write(to: URL(fileURLWithPath: empty))
        chmod(empty, 0o600)
        #expect(failure(empty, one.key).contains("\(empty) holds no certificate"))
        #expect(failure(one.certificate, empty).contains("\(empty) holds no private key"))
        // Nobody writes into it: who opened it would wait for ever, the daemon too when it reads its files again.
        let pipe = certificates.path + "/pipe"
        try #require(mkfifo(pipe, 0o600) == 0)
        #expect(failure(pipe, one.key).contains("\(pipe), is not a regular file"))
        #expect(failure(one.certificate, pipe).contains("\(pipe), is not a regular file"))
        #expect(failure(one.certificate, one.key, pipe).contains("\(pipe), is not a regular file"))
        #expect(failure(certificates.path, one.key).contains("\(certificates.path), is not a regular file"))
        for mode: mode_t in [0o640, 0o604, 0o660, 0o644] {
            chmod(one.key, mode)
            let message = failure(one.certificate, one.key)
            #expect(message.contains("chmod 600 \(one.key)"), "\(message)")
        }
    }

    @Test(
        "odd names cannot slip into a certificate", arguments: ["a,IP:1.2.3.4", "", "a b", "a\nb", "a/b", "é.example"])
    func oddNames(name: String) throws {
        #expect(throws: TLSError.self) { try CertificateMaker.make(.init(hosts: [name])) }
    }

    @Test("an odd name of a server ends the connection with an error, and not the process")
    func oddHosts() throws {
        let files = try TestCertificates.shared().server
        for host in ["", String(repeating: "x", count: 5_000)] {
            let pair = try Pair(
                server: Pair.serverContext(files), client: Pair.clientContext(.system), host: host)
            #expect(!pair.isAgreed)
            #expect(pair.client.end != nil)
        }
    }
}
