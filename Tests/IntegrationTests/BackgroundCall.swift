import Foundation
import TestSupport

/// A call of `ieum` that goes on beside the test; it ends with the object at the latest.
final class BackgroundCall {
    private let process = Process()
    private let talkFile: URL

    fileprivate init(_ arguments: [String], home: URL, folder: URL) throws {
        talkFile = folder.appendingPathComponent("talk-\(UUID().uuidString)")
        try Data().write(to: talkFile)
        process.executableURL = Programs.url("ieum")
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["IEUM_HOME": home.path]) { $1 }
        process.standardOutput = FileHandle.nullDevice
        process.standardError = try FileHandle(forWritingTo: talkFile)
        process.standardInput = FileHandle.nullDevice
        try process.run()
    }

    var isRunning: Bool { process.isRunning }

    /// What it said on stderr until now.
    var talk: String { (try? String(contentsOf: talkFile, encoding: .utf8)) ?? "" }

    /// Waits for its end.
    /// - Returns: the exit code.
    func end(within seconds: Double = 60) throws -> Int32 {
        try eventually(seconds, "the call ends") { !process.isRunning }
        return process.terminationStatus
    }

    deinit {
        if process.isRunning { process.terminate() }
        process.waitUntilExit()
    }
}

extension CommandLineDevice {
    /// Begins a call that goes on beside the test.
    func begin(_ arguments: String...) throws -> BackgroundCall {
        try BackgroundCall(arguments, home: home, folder: folder)
    }
}
