import Arguments
import EventLoop
import Foundation

/// `ieumd cert self-signed`: a certificate for trying TLS out, which clients pin by its fingerprint.
struct CertCommand {
    static let spec = CommandSpec(
        "ieumd cert self-signed", "make a certificate and its key for trying TLS out",
        options: [
            OptionSpec(
                "host", "NAMES",
                help: "names and addresses of this server, with commas (left out: localhost and this machine's name)"),
            OptionSpec("days", "N", default: "365", help: "how long it is valid"),
            OptionSpec("dir", "DIR", help: "where server.pem and server.key go (left out: tls in the data directory)"),
        ],
        examples: ["ieumd cert self-signed --host games.example.org,192.0.2.1 --dir /etc/ieum"],
        exitCodes: [(0, "made"), (1, "failed"), (2, "usage, or there are files already")])

    private let hosts: [String]
    private let days: Int
    private let directory: String

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        guard arguments.first == "self-signed" else {
            throw UsageError(
                arguments.isEmpty ? "what kind of certificate?" : "there is no certificate \"\(arguments[0])\"",
                usage: Self.spec.usage)
        }
        let parsed = try ParsedArguments(arguments.dropFirst(), of: Self.spec, environment: environment)
        hosts = parsed.string("host").map { $0.split(separator: ",").map(String.init) } ?? Self.standardHosts
        guard !hosts.isEmpty else { throw UsageError("--host takes names with commas", usage: Self.spec.usage) }
        days = try parsed.integer("days", in: 1...3_650) ?? 365
        directory = parsed.string("dir") ?? DatabaseChoice.standardDirectory(environment) + "/tls"
    }

    private static var standardHosts: [String] {
        let name = ProcessInfo.processInfo.hostName
        return ["localhost", "127.0.0.1", "::1"] + (name.isEmpty || name == "localhost" ? [] : [name])
    }

    /// Makes the files; gives the exit code.
    func run() -> Int32 {
        let (certificatePath, keyPath) = ("\(directory)/server.pem", "\(directory)/server.key")
        do {
            let issued = try CertificateMaker.make(CertificateMaker.Request(hosts: hosts, days: days))
            try FileManager.default.createDirectory(
                atPath: directory, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
            // The certificate last: with it the pair is complete.
            try write(issued.keyText(), to: keyPath, mode: 0o600)
            do {
                try write(issued.certificateText(), to: certificatePath, mode: 0o644)
            } catch {
                unlink(keyPath)
                throw error
            }
            tell(issued.fingerprint, certificatePath, keyPath)
            return 0
        } catch let error as TLSError {
            Console.error(error.message, hint: nil)
        } catch let error as EventLoopError where error.number == EEXIST {
            Console.error(
                "\(error.call) is there already",
                hint: "Keep it, or choose another folder with --dir, or remove server.pem and server.key.")
            return 2
        } catch let error as EventLoopError {
            Console.error(
                "\(error.call) cannot be written: \(error.message)", hint: "Choose another folder with --dir.")
        } catch {
            Console.error("the folder \(directory) cannot be made", hint: "Choose another one with --dir.")
        }
        return 1
    }

    private func write(_ bytes: [UInt8], to path: String, mode: mode_t) throws(EventLoopError) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)
        guard descriptor >= 0 else { throw EventLoopError(call: path) }
        defer { close(descriptor) }
        let count = bytes.withUnsafeBytes { Foundation.write(descriptor, $0.baseAddress, $0.count) }
        guard count == bytes.count, fsync(descriptor) == 0 else {
            let error = EventLoopError(call: path)
            unlink(path)
            throw error
        }
    }

    private func tell(_ fingerprint: CertificateFingerprint, _ certificate: String, _ key: String) {
        let host = hosts.first { $0 != "localhost" && !$0.hasPrefix("127.") && $0 != "::1" } ?? hosts[0]
        let address = host.contains(":") ? "[\(host)]" : host
        Console.output(
            """
            certificate  \(certificate)
            key          \(key)
            valid for    \(hosts.joined(separator: ", ")), \(days) days
            fingerprint  \(fingerprint)

            Serve with it:
              ieumd serve --listen 0.0.0.0:4386 --tls-cert \(certificate) --tls-key \(key)
            Join from a device, by the fingerprint:
              ieum register --server tls://\(address):4386 --fingerprint \(fingerprint) --device NAME
              ieum link CODE --server tls://\(address):4386 --fingerprint \(fingerprint) --device NAME

            """)
    }
}
