import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Connection by TLS")
struct SecureConnectionTests {
    let driver: LoopDriver

    init() throws {
        driver = try LoopDriver()
    }

    @Test("answers of every size arrive whole, and both directions may be full at once", .timeLimit(.minutes(10)))
    func largeAnswers() throws {
        let server = try SecureServer()
        let connection = try driver.connect(server.conninfo)
        let secured = try driver.execute(connection, "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()")
        #expect(try secured.bool(0, 0))
        // Answers around the sizes of a TLS record and of libpq's buffer, each alone, so that no later one pushes it on.
        let text = Statement("text", "SELECT repeat('x', $1)", parameterTypes: [.int4])
        for size: Int32 in [1, 8_100, 8_192, 16_300, 16_384, 24_500, 32_700, 40_000, 65_536, 1_000_000, 20_000_000] {
            var parameters = ParameterList()
            parameters.append(size)
            let rows = try driver.answer { done in connection.execute(text, parameters) { done($0) } }.get()
            #expect(try rows.bytes(0, 0).count == Int(size))
        }
        // And both directions full at once.
        var random = SeededRandom(for: "secure batch")
        var payloads = BinaryArray(of: .bytea)
        let block = random.bytes(1 << 20)
        for _ in 0..<20 { payloads.append(block) }
        var parameters = ParameterList()
        parameters.append(payloads)
        let echo = Statement("echo", "SELECT unnest($1)", parameterTypes: [.byteaArray])
        var results: [Result<QueryResult, DatabaseError>] = []
        for _ in 0..<2 { connection.execute(echo, parameters) { results.append($0) } }
        driver.wait { results.count == 2 }
        for result in results { #expect(try result.get().byteArray(19, 0) == block) }
    }
}

/// A server on a TCP port of the loopback with a certificate of its own: libpq speaks TLS over TCP only, and a private
/// cluster has no TCP.
private final class SecureServer {
    let conninfo: String
    private let folder: TestFolder
    private let process: Int32

    init() throws {
        folder = try TestFolder("secure", inMemory: true)
        try PreparedData.copy(to: folder.path)
        let data = "\(folder.path)/data"
        let port = try FreePort.find()
        let nothing = open("/dev/null", O_RDWR)
        defer { close(nothing) }
        let certificate = try ChildProcess.spawn(
            [
                "openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost",
                "-keyout", "\(data)/server.key", "-out", "\(data)/server.crt",
            ], descriptors: [nothing, nothing, nothing])
        try #require(ChildProcess.wait(certificate) == 0, "openssl (package openssl) could not make a certificate")
        try "host all all 127.0.0.1/32 trust\n".write(toFile: "\(data)/pg_hba.conf", atomically: false, encoding: .utf8)
        let owner = try FileManager.default.attributesOfItem(atPath: data)[.ownerAccountID] as? UInt32 ?? 0
        for name in ["server.key", "server.crt"] {
            chown("\(data)/\(name)", owner, gid_t.max)
            chmod("\(data)/\(name)", 0o600)
        }
        let settings = [
            "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=", "ssl=on", "fsync=off",
        ]
        let become = geteuid() == 0 ? ["setpriv", "--reuid=\(owner)", "--clear-groups"] : []
        let log = open("\(folder.path)/postgres.log", O_WRONLY | O_CREAT, 0o600)
        defer { close(log) }
        process = try ChildProcess.spawn(
            become + [ServerPrograms.find().folder + "/postgres", "-D", data] + settings.flatMap { ["-c", $0] },
            descriptors: [0, log, log])
        conninfo = "host=127.0.0.1 port=\(port) user=postgres dbname=postgres sslmode=require"
        let deadline = ContinuousClock.now + .seconds(60)
        while (try? BlockingConnection(conninfo)) == nil {
            try #require(ContinuousClock.now < deadline, "the server did not start")
        }
    }

    deinit {
        kill(process, SIGINT)
        _ = ChildProcess.wait(process)
    }
}
