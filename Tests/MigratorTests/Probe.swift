import Foundation
import Postgres
import Synchronization
import Testing

/// A process that runs the migrator's command line, with what it printed.
final class Probe: Sendable {
    struct Result {
        var status: Int32
        var output: String
        var errors: String
    }

    private struct Ending {
        var status: Int32?
        var output = Data()
        var errors = Data()
    }

    let processID: Int32
    private let ending = Mutex(Ending())
    private let done = DispatchGroup()

    /// Starts it. `--dir` and `--set test` are put in for commands of a folder.
    init(_ arguments: [String], database: String, environment: [String: String] = [:]) throws {
        let process = Process()
        process.executableURL = try Self.executable()
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["PROBE_DATABASE": database]) { $1 }
            .merging(environment) { $1 }
        let (output, errors) = (Pipe(), Pipe())
        process.standardOutput = output
        process.standardError = errors
        process.standardInput = FileHandle.nullDevice
        try process.run()
        processID = process.processIdentifier
        collect(output) { $0.output = $1 }
        collect(errors) { $0.errors = $1 }
        done.enter()
        Thread.detachNewThread { [self] in
            process.waitUntilExit()
            let isSignal = process.terminationReason == .uncaughtSignal
            ending.withLock { $0.status = isSignal ? -process.terminationStatus : process.terminationStatus }
            done.leave()
        }
    }

    private func collect(_ pipe: Pipe, _ store: @escaping @Sendable (inout Ending, Data) -> Void) {
        done.enter()
        let handle = pipe.fileHandleForReading
        Thread.detachNewThread { [self] in
            let data = (try? handle.readToEnd()) ?? Data()
            ending.withLock { store(&$0, data) }
            done.leave()
        }
    }

    func signal(_ number: Int32) {
        kill(processID, number)
    }

    /// Waits for its end. A status below zero is the signal that ended it.
    @discardableResult
    func wait() throws -> Result {
        guard done.wait(timeout: .now() + 120) == .success else {
            signal(SIGKILL)
            throw ProbeError(description: "the probe did not end within two minutes")
        }
        return ending.withLock {
            Result(
                status: $0.status ?? -1, output: String(decoding: $0.output, as: UTF8.self),
                errors: String(decoding: $0.errors, as: UTF8.self))
        }
    }

    static func executable() throws -> URL {
        // The tests' own program lies beside it.
        let own = URL(filePath: try FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe"))
        let bundle = CommandLine.arguments.firstIndex(of: "--test-bundle-path").map { CommandLine.arguments[$0 + 1] }
        let folder = bundle.map { URL(filePath: $0) } ?? own
        let probe = folder.deletingLastPathComponent().appending(path: "migrate-probe")
        guard FileManager.default.isExecutableFile(atPath: probe.path) else {
            throw ProbeError(description: "there is no \(probe.path)")
        }
        return probe
    }
}

struct ProbeError: Error, CustomStringConvertible {
    var description: String
}

extension Bench {
    /// Starts a process with the folder as its set.
    func start(_ command: String, _ arguments: String...) throws -> Probe {
        try Probe([command, "--dir", path, "--set", "test"] + arguments, database: database.conninfo)
    }

    /// Runs a process with the folder as its set, to its end.
    func run(_ command: String, _ arguments: String...) throws -> Probe.Result {
        try Probe([command, "--dir", path, "--set", "test"] + arguments, database: database.conninfo).wait()
    }
}

/// A lock at which statements of a test wait until it is opened.
final class Gate {
    /// The statement that waits.
    static func statement(_ number: Int) -> String {
        "SELECT pg_advisory_xact_lock_shared(4242, \(number));"
    }

    private let connection: BlockingConnection
    private let number: Int

    /// Closes a gate of a database.
    init(_ number: Int, _ bench: Bench) throws {
        connection = try bench.database.connect()
        self.number = number
        try connection.execute("SELECT pg_advisory_lock(4242, \(number))")
    }

    /// Waits until somebody stands before the gate, and gives their process on the server.
    func waitForArrival() throws -> Int32 {
        try poll("classid = 4242 AND objid = \(number) AND NOT granted")
    }

    /// The server's process that holds the migrator's lock.
    func lockHolder() throws -> Int32 {
        try poll("classid = \(0x6D69_6772) AND granted")
    }

    func open() throws {
        try connection.execute("SELECT pg_advisory_unlock(4242, \(number))")
    }

    @discardableResult
    func execute(_ sql: String) throws -> QueryResult? {
        try connection.execute(sql).last
    }

    private func poll(_ condition: String) throws -> Int32 {
        let sql = """
            SELECT pid FROM pg_locks
            WHERE locktype = 'advisory' AND \(condition)
                AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
            """
        let deadline = ContinuousClock.now + .seconds(60)
        while ContinuousClock.now < deadline {
            if let result = try connection.execute(sql).last, result.rowCount > 0 { return try result.int4(0, 0) }
            usleep(5000)
        }
        throw ProbeError(description: "nobody came to gate \(number) within a minute")
    }
}
