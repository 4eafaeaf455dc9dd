import Foundation
import Postgres
import Synchronization
import Testing

/// A running `ieumd serve` on a free port, with a data directory of its own. Killed when the object goes.
///
/// `@unchecked`: tests share a daemon by its port and process id, which never change; only the owner stops it.
final class DaemonProcess: @unchecked Sendable {
    /// The port that clients connect to.
    let port: Int
    /// The daemon's process id.
    var processID: pid_t { process.processIdentifier }
    /// The line that it began with on standard output.
    let firstLine: String
    /// Where it keeps its data.
    let directory: URL
    private let process: Process
    private let ownsDirectory: Bool
    /// Stays open, so that the daemon can go on writing.
    private let output: Pipe
    private var reader: LineReader

    /// Starts the daemon and waits for its `listening on` line.
    ///
    /// - Parameters:
    ///   - database: a connection string; nil for a private PostgreSQL in `directory`.
    ///   - directory: the data directory; nil for a new temporary one that is removed at the end.
    ///   - metrics: where `/metrics` answers; port 0 takes a free one, see ``metricsPort()``.
    ///   - environment: what its environment holds besides this process's.
    init(
        database: String? = nil, directory: URL? = nil, host: String = "127.0.0.1", port: Int = 0,
        metrics: String = "off", options: [String] = [], environment: [String: String] = [:]
    ) throws {
        ownsDirectory = directory == nil
        self.directory = try directory ?? TemporaryDirectory.make()
        process = Process()
        process.executableURL = Programs.url("ieumd")
        process.arguments =
            [
                "serve", "--listen", "\(host):\(port)", "--data-directory", self.directory.path, "--metrics", metrics,
            ] + (try database.map { ["--database", try Self.login($0)] } ?? []) + options
        let output = Pipe()
        process.standardOutput = output
        let logURL = self.directory.appendingPathComponent("ieumd.log")
        if !FileManager.default.fileExists(atPath: logURL.path) {
            _ = FileManager.default.createFile(atPath: logURL.path, contents: nil)
        }
        let log = try FileHandle(forWritingTo: logURL)
        _ = try log.seekToEnd()
        process.standardError = log
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        process.standardInput = FileHandle.nullDevice
        try process.run()
        RunningDaemons.add(process.processIdentifier)
        var reader = LineReader(output.fileHandleForReading.fileDescriptor)
        let line = try reader.next(timeout: 120)
        guard let line, line.hasPrefix("listening on "), let port = line.split(separator: ":").last.flatMap({ Int($0) })
        else {
            process.terminate()
            process.waitUntilExit()
            let text = (try? String(contentsOf: logURL, encoding: .utf8)) ?? ""
            throw StartError(description: "ieumd did not start: \(line ?? "no line"); its log:\n\(text.suffix(3000))")
        }
        firstLine = line
        self.reader = reader
        self.port = port
        self.output = output
    }

    /// As whom the daemon connects: as it is said, or, where `IEUM_TEST_DAEMON_LOGIN` names one, as a login that is made a member of
    /// ieum_daemon and may do nothing else.
    private static func login(_ conninfo: String) throws -> String {
        guard let login = ProcessInfo.processInfo.environment["IEUM_TEST_DAEMON_LOGIN"],
            conninfo.components(separatedBy: "user=").count == 2
        else {
            return conninfo
        }
        return try members.withLock { _ in
            let owner = try BlockingConnection(conninfo)
            if try owner.query("SELECT to_regrole('ieum_daemon')").isNull(0, 0) { return conninfo }
            if try owner.query("SELECT to_regrole('\(login)')").isNull(0, 0) {
                try owner.execute("CREATE ROLE \(login) LOGIN")
            }
            try owner.execute("GRANT ieum_daemon TO \(login)")
            return conninfo + " user=\(login)"
        }
    }

    private static let members = Mutex(())

    /// What came on standard output behind the first line, to its end; called after the daemon's end.
    func restOfOutput() -> String {
        var text = ""
        while let line = try? reader.next(timeout: 60) { text += line + "\n" }
        return text
    }

    /// What the daemon wrote on standard error so far.
    var log: String {
        (try? String(contentsOf: directory.appendingPathComponent("ieumd.log"), encoding: .utf8)) ?? ""
    }

    /// The main process of the daemon's private PostgreSQL.
    var postmaster: pid_t? {
        let file = directory.appendingPathComponent("postgres/data/postmaster.pid")
        return (try? String(contentsOf: file, encoding: .utf8))?.split(separator: "\n").first.flatMap { pid_t($0) }
    }

    /// The port of `/metrics`, as the log tells it.
    func metricsPort() throws -> Int {
        var port: Int?
        try eventually(60, "the daemon logs its metrics port") {
            port = log.split(separator: "\n").last { $0.contains(" event=started ") }
                .flatMap { Int(fields(String($0))["metrics"] ?? "") }
            return port != nil
        }
        return port ?? 0
    }

    /// Ends the daemon with SIGKILL and waits for its end.
    func kill() {
        if process.isRunning { Foundation.kill(processID, SIGKILL) }
        process.waitUntilExit()
        RunningDaemons.remove(processID)
    }

    /// Ends the daemon with SIGTERM, waits, and gives its exit code (negative: the signal that ended it).
    func stop() -> Int32 {
        if process.isRunning { process.terminate() }
        return waitForExit()
    }

    /// Waits for the daemon's own end and gives its exit code (negative: the signal that ended it).
    func waitForExit() -> Int32 {
        process.waitUntilExit()
        RunningDaemons.remove(processID)
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    deinit {
        kill()
        if ownsDirectory { try? FileManager.default.removeItem(at: directory) }
    }
}

/// The daemons that run, so that those which tests share end with the test process.
private enum RunningDaemons {
    private static let ids = Mutex<Set<pid_t>>([])
    private static let endsThemAtExit: Void = {
        atexit { RunningDaemons.ids.withLock { for id in $0 { kill(id, SIGKILL) } } }
    }()

    static func add(_ id: pid_t) {
        _ = endsThemAtExit
        ids.withLock { _ = $0.insert(id) }
    }

    static func remove(_ id: pid_t) { ids.withLock { _ = $0.remove(id) } }
}

struct StartError: Error, CustomStringConvertible {
    let description: String
}

/// Where the programs lie that were built beside the tests.
enum Programs {
    static func url(_ name: String) -> URL {
        let bundle = CommandLine.arguments.first { $0.contains(".xctest") } ?? CommandLine.arguments[0]
        var folder = URL(fileURLWithPath: bundle).deletingLastPathComponent()
        while folder.path.contains(".xctest") { folder.deleteLastPathComponent() }
        return folder.appendingPathComponent(name)
    }

    /// Runs one of our programs to its end and gives what it said.
    static func run(
        _ name: String, _ arguments: [String], environment: [String: String] = [:], input: String? = nil
    ) throws -> (status: Int32, output: String, error: String) {
        try run(url(name), arguments, environment: environment, input: input)
    }

    /// Runs a program of the system, as PATH finds it, to its end and gives what it said.
    static func runInstalled(
        _ words: [String], input: String? = nil
    ) throws -> (status: Int32, output: String, error: String) {
        try run(URL(fileURLWithPath: "/usr/bin/env"), words, input: input)
    }

    private static func run(
        _ program: URL, _ arguments: [String], environment: [String: String] = [:], input: String? = nil
    ) throws -> (status: Int32, output: String, error: String) {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
        let (output, error, inputPipe) = (Pipe(), Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = error
        process.standardInput = input == nil ? FileHandle.nullDevice : inputPipe
        try process.run()
        if let input {
            try inputPipe.fileHandleForWriting.write(contentsOf: Data(input.utf8))
            try inputPipe.fileHandleForWriting.close()
        }
        // Both pipes are drained side by side, or a long text on one would block the program.
        let errorReader = Thread.collecting(error.fileHandleForReading)
        let outputData = output.fileHandleForReading.readDataToEndOfFile()
        let errorData = errorReader()
        process.waitUntilExit()
        let status = process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
        return (status, String(decoding: outputData, as: UTF8.self), String(decoding: errorData, as: UTF8.self))
    }
}

/// Temporary folders that a daemon's unprivileged PostgreSQL can reach.
enum TemporaryDirectory {
    static func make() throws -> URL {
        let url = URL(fileURLWithPath: NSTemporaryDirectory()).appendingPathComponent(
            "ieum-test-" + UUID().uuidString.prefix(8).lowercased())
        try FileManager.default.createDirectory(
            at: url, withIntermediateDirectories: true, attributes: [.posixPermissions: 0o755])
        return url
    }
}

extension Thread {
    /// Reads a handle to its end on a thread of its own; the returned closure waits for it.
    fileprivate static func collecting(_ handle: FileHandle) -> () -> Data {
        final class Box: @unchecked Sendable {
            // Written once before the semaphore is signalled, read after it was waited for.
            var data = Data()
        }
        let box = Box()
        let done = DispatchSemaphore(value: 0)
        let descriptor = handle.fileDescriptor
        Thread.detachNewThread {
            box.data = FileHandle(fileDescriptor: descriptor, closeOnDealloc: false).readDataToEndOfFile()
            done.signal()
        }
        return {
            done.wait()
            withExtendedLifetime(handle) {}
            return box.data
        }
    }
}
