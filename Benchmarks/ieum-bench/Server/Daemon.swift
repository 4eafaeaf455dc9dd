/// A running `ieumd` on a database of its own.
final class Daemon {
    /// Where it listens on 127.0.0.1.
    let port: UInt16

    /// What a connection to it needs when it speaks TLS.
    let tls: SecureClient?

    private let process: ChildProcess

    /// Starts a daemon and waits until it listens.
    /// - Parameters:
    ///   - program: the path of `ieumd`.
    ///   - log: the file that takes what it says on stderr.
    ///   - certificate: the files of its certificate and key; nil for plain TCP.
    ///   - options: more for `ieumd serve`.
    init(
        _ conductor: Conductor, program: String, database: String, log: String,
        certificate: (file: String, key: String)? = nil, options: [String] = []
    ) throws {
        tls = try certificate.map { _ in try SecureClient() }
        process = try ChildProcess(
            conductor,
            [program, "serve", "--listen", "127.0.0.1:0", "--metrics", "off", "--database", database]
                + (certificate.map { ["--tls-cert", $0.file, "--tls-key", $0.key] } ?? []) + options,
            log: log)
        let line = try process.firstLine(atMost: .seconds(60))
        guard line.hasPrefix("listening on "), let port = line.split(separator: ":").last.flatMap({ UInt16($0) }) else {
            throw BenchError("the daemon said \(line) instead of where it listens")
        }
        self.port = port
    }

    /// Its process, for the meter.
    var pid: Int32 { process.pid }

    /// Its resident memory in bytes.
    func memory() throws -> Double { try residentBytes(process.pid) }

    /// Has it finish its work and end.
    func stop() throws {
        try process.stop()
    }
}
