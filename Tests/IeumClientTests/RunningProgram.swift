import Foundation
import TestSupport

/// A process of the program `ieum` that was built beside the tests, for one home. Its output goes to files.
final class RunningProgram {
    private let process = Process()
    private let folder: TemporaryFolder

    /// Starts it.
    /// - Parameter output: where stdout goes instead of to a file.
    init(_ arguments: [String], home: String, output: FileHandle? = nil) throws {
        folder = try TemporaryFolder()
        // Of what a shell runs in the background these two are ignored, and so they would be of all that it starts.
        for number in [SIGINT, SIGQUIT] { Glibc.signal(number, SIG_DFL) }
        process.executableURL = try Self.program()
        process.arguments = arguments
        process.environment = Sanitizer.environment.merging(["IEUM_HOME": home, "PATH": "/usr/bin:/bin"]) { $1 }
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try output ?? Self.file(folder.path + "/data")
        process.standardError = try Self.file(folder.path + "/talk")
        try process.run()
    }

    deinit {
        if process.isRunning { kill(process.processIdentifier, SIGKILL) }
        process.waitUntilExit()
    }

    /// What it wrote on stdout so far.
    var data: String { (try? String(contentsOfFile: folder.path + "/data", encoding: .utf8)) ?? "" }
    /// What it wrote on stderr so far.
    var talk: String { (try? String(contentsOfFile: folder.path + "/talk", encoding: .utf8)) ?? "" }

    /// Waits for what nobody tells of, such as what it wrote; throws when it ends before, or a minute has passed.
    func wait(_ purpose: String, until isReached: () -> Bool) throws {
        let deadline = ContinuousClock.now + .seconds(60)
        while !isReached() {
            guard process.isRunning, .now < deadline else { throw Unreached(description: "\(purpose): \(data)\(talk)") }
            usleep(2_000)
        }
    }

    /// A program did not do what a test waited for.
    struct Unreached: Error, CustomStringConvertible {
        let description: String
    }

    /// Sends it a signal.
    func signal(_ number: Int32) {
        kill(process.processIdentifier, number)
    }

    /// Waits for its end.
    /// - Returns: the exit code; of one that a signal ended, the signal's number, negative.
    func end() -> Int32 {
        process.waitUntilExit()
        return process.terminationReason == .exit ? process.terminationStatus : -process.terminationStatus
    }

    private static func file(_ path: String) throws -> FileHandle {
        _ = FileManager.default.createFile(atPath: path, contents: nil)
        return try FileHandle(forWritingTo: URL(fileURLWithPath: path))
    }

    /// A program that was built beside the tests.
    static func program(_ name: String = "ieum") throws -> URL {
        struct Missing: Error {}
        let bundle = CommandLine.arguments.first { $0.contains(".xctest") } ?? CommandLine.arguments[0]
        var folder = URL(fileURLWithPath: bundle).deletingLastPathComponent()
        while folder.path.contains(".xctest") { folder.deleteLastPathComponent() }
        let program = folder.appendingPathComponent(name)
        guard FileManager.default.isExecutableFile(atPath: program.path) else { throw Missing() }
        return program
    }
}
