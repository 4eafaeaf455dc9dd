import Foundation
import TestSupport
import Testing

@testable import IeumClient

@Suite("Processes on a store")
struct StoreProcessTests {
    private struct Count: Persistable {
        static let collection = "count"
        var id: String
        var timestamp: Date
        var number: Int
    }

    private let folder: TestFolder
    private let url: URL

    init() throws {
        folder = try TestFolder("store-process")
        url = URL(fileURLWithPath: folder.path + "/games.sqlite")
    }

    @Test("killed in the middle of saves, a process has lost none that had returned")
    func killed() throws {
        var random = SeededRandom(for: "killed saves")
        var last = 0
        for _ in 0..<12 {
            let probe = try SavingProbe(url, "x", limit: .max)
            let target = last + Int.random(in: 1...40, using: &random)
            while probe.said < target { try #require(try probe.hear(), "it ended after \(probe.said)") }
            probe.kill()
            try probe.hearAll()
            let store = try GameStore(at: url)
            #expect(store.damagedCopy == nil)
            let number = try #require(try store.object(Count.self, id: "x")).number
            // The last save may be on the disk without having been said.
            #expect(number == probe.said || number == probe.said + 1)
            #expect(try store.changes(of: Count.collection).map(\.change) == [Int64(number)])
            last = number
        }
    }

    @Test("three processes that begin a store and save in it at a time lose nothing")
    func together() throws {
        let probes = try ["a", "b", "c"].map { try SavingProbe(url, $0, limit: 40) }
        for probe in probes { try probe.hearAll() }
        #expect(probes.map { $0.end() } == [0, 0, 0])
        let store = try GameStore(at: url)
        #expect(try store.objects(Count.self).map(\.number) == [40, 40, 40])
        #expect(try store.changes(of: Count.collection).map(\.change).max() == 120)
    }
}

/// A process that saves, and says what it has saved.
private final class SavingProbe {
    private let process = Process()
    private let output = Pipe()
    private var rest: [UInt8] = []
    private(set) var said = 0

    init(_ url: URL, _ id: String, limit: Int) throws {
        process.executableURL = try RunningProgram.program("store-probe")
        process.arguments = [url.path, id, "\(limit)"]
        process.standardOutput = output
        try process.run()
    }

    deinit {
        if process.isRunning { kill() }
        process.waitUntilExit()
    }

    func kill() { Glibc.kill(process.processIdentifier, SIGKILL) }

    func end() -> Int32 {
        process.waitUntilExit()
        return process.terminationStatus
    }

    /// Waits for more; false at the end.
    func hear() throws -> Bool {
        struct Ended: Error {}
        let data = output.fileHandleForReading.availableData
        rest += data
        while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
            said = Int(String(decoding: rest[..<end], as: UTF8.self)) ?? said
            rest.removeSubrange(...end)
        }
        if data.isEmpty, process.isRunning == false, process.terminationReason == .exit, process.terminationStatus != 0
        {
            throw Ended()
        }
        return !data.isEmpty
    }

    func hearAll() throws { while try hear() {} }
}
