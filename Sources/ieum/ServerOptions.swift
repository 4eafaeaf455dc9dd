import Arguments
import Foundation
import IeumClient

extension OptionSpec {
    /// How a server that is named on the command line is spoken to.
    static let security = [
        OptionSpec("ca", "FILE", environment: "IEUM_CA", help: "trust these authorities (PEM) and no others"),
        OptionSpec(
            "fingerprint", "SHA256", environment: "IEUM_FINGERPRINT",
            help: "trust the certificate with this fingerprint and no other; nothing else is asked of it"),
        OptionSpec(
            "client-cert", "FILE", environment: "IEUM_CLIENT_CERT",
            help: "this device's certificate (PEM), for a server that wants one"),
        OptionSpec("client-key", "FILE", environment: "IEUM_CLIENT_KEY", help: "its key (PEM, mode 0600)"),
        OptionSpec("insecure", help: "speak plainly to a server off this machine: everybody on the way can read along"),
    ]
}

extension Call {
    /// The server that `--server` names, and how it is spoken to.
    func server() throws -> ServerAddress {
        let text = arguments.string("server") ?? ""
        guard var server = ServerAddress(text) else {
            let isForeign = !text.utf8.allSatisfy { $0 < 0x80 }
            throw UsageError(
                "--server takes HOST:PORT, tls://HOST:PORT or plain://HOST:PORT"
                    + (isForeign ? ", with the name in ASCII (xn--…)" : "") + ", not \"\(text)\"")
        }
        if arguments.flag("insecure"), server.isSecure {
            guard !ServerAddress.saysHow(text) else {
                throw UsageError("--insecure and tls:// contradict each other")
            }
            server.isSecure = false
        }
        guard server.isSecure || server.isLoopback || arguments.flag("insecure") else {
            throw UsageError(
                "\(text) is not this machine: your token and your games would travel in the clear; say tls://, or add "
                    + "--insecure on a network that you trust")
        }
        return try trusting(server)
    }

    private func trusting(_ server: ServerAddress) throws -> ServerAddress {
        var server = server
        let options = ["ca", "fingerprint", "client-cert", "client-key"]
        if !server.isSecure, let option = options.first(where: { arguments.given($0) != nil }) {
            throw UsageError("--\(option) is about TLS, and \(server) is spoken to plainly; say tls://")
        }
        switch (arguments.string("ca"), arguments.string("fingerprint")) {
        case (_?, _?): throw UsageError("--ca and --fingerprint exclude each other")
        case (let file?, nil): server.trust = .authorities(file: absolute(file))
        case (nil, let text?):
            guard let fingerprint = ServerTrust.Fingerprint(text) else {
                throw UsageError("--fingerprint takes 64 hexadecimal digits, as ieumd cert prints them")
            }
            server.trust = .pinned(fingerprint)
        case (nil, nil): break
        }
        switch (arguments.string("client-cert"), arguments.string("client-key")) {
        case (let file?, let key?): server.certificate = ClientCertificate(file: absolute(file), key: absolute(key))
        case (nil, nil): break
        default: throw UsageError("--client-cert and --client-key belong together")
        }
        return server
    }

    /// The path as it holds in every folder: later commands are called from elsewhere.
    private func absolute(_ path: String) -> String { URL(fileURLWithPath: path).standardizedFileURL.path }
}

extension ServerAddress {
    /// The pinned certificate, if one is.
    var fingerprint: String? {
        if case .pinned(let fingerprint) = trust, isSecure { fingerprint.description } else { nil }
    }

    /// The options that another device needs for this server. A file is on this machine only, and left to its player.
    var arguments: String {
        var words = "--server \(self)"
        if let fingerprint { words += " --fingerprint \(fingerprint)" }
        if case .authorities = trust, isSecure { words += " --ca FILE" }
        if !isSecure, !isLoopback { words += " --insecure" }
        return words
    }
}
