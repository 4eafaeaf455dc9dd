import Foundation
import TestSupport
import Wire

@testable import IeumClient

/// A daemon that speaks TLS, with an authority of its own whose certificates it can be given one after the other.
final class SecureDaemon: Sendable {
    let certificates: TestCertificates
    let first: TestCertificates.Files
    let daemon: DaemonProcess
    private let database: TestDatabase

    /// Starts it with a good certificate for 127.0.0.1 and localhost.
    init(wantsClientCertificates: Bool = false, metrics: String = "off", options: [String] = []) throws {
        certificates = try TestCertificates()
        first = try certificates.issue("server")
        database = try TestDatabase.migrated()
        daemon = try DaemonProcess(
            database: database.conninfo, metrics: metrics,
            options: ["--tls-cert", first.certificate, "--tls-key", first.key, "--log", "debug"]
                + (wantsClientCertificates ? ["--tls-client-ca", certificates.authority] : []) + options)
    }

    var port: Int { daemon.port }
    var address: String { "tls://127.0.0.1:\(daemon.port)" }

    /// A connection that trusts the authority.
    func connect(_ certificate: TestCertificates.Files? = nil, host: String = "127.0.0.1") throws -> ServerConnection {
        try ServerConnection(
            to: ServerAddress(
                host: host, port: UInt16(daemon.port), isSecure: true,
                trust: .authorities(file: certificates.authority),
                certificate: certificate.map { ClientCertificate(file: $0.certificate, key: $0.key) }))
    }

    /// Has the daemon read its files again, and waits until it has said what came of it.
    func reload(expecting event: String = "certificate-reloaded") throws {
        let before = count(event)
        kill(daemon.processID, SIGHUP)
        try eventually(60, "the daemon logs \(event)") { count(event) > before }
    }

    private func count(_ event: String) -> Int { daemon.log.components(separatedBy: "event=\(event) ").count }
}

/// `openssl s_client`, which is no code of ours: what it wrote, and whether it ended well.
func outsidePeer(_ port: Int, _ arguments: [String], input: String = "") throws -> (status: Int32, text: String) {
    // -quiet would keep reading after the input's end; the daemon closes after QUIT.
    let words = ["timeout", "20", "openssl", "s_client", "-connect", "127.0.0.1:\(port)"] + arguments
    let result = try Programs.runInstalled(words, input: input)
    return (result.status, result.output + result.error)
}
