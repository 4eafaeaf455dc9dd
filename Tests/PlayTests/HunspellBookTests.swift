import Foundation
import TestSupport
import Testing

@testable import Play

@Suite("The dictionary")
struct HunspellBookTests {
    private func ask(_ book: HunspellBook, _ texts: [String]) async -> PlaySession.Verdict {
        await withCheckedContinuation { answer in book.lookUp(texts) { answer.resume(returning: $0) } }
    }

    /// Measures from the question to the answer, where it comes in: a task may wait long for its turn beside other tests.
    private func timeTaken(_ book: HunspellBook, _ texts: [String]) async -> (PlaySession.Verdict, Duration) {
        await withCheckedContinuation { answer in
            let start = ContinuousClock.now
            book.lookUp(texts) { answer.resume(returning: ($0, start.duration(to: .now))) }
        }
    }

    @Test("knows words, does not know others, and takes one of several readings; nothing is taken for a command")
    func real() async {
        let book = HunspellBook(environment: ["PATH": "/usr/bin:/bin"], patience: .seconds(60))
        #expect(await ask(book, ["창피"]) == .word)
        #expect(await ask(book, ["꼮"]) == .noWord)
        #expect(await ask(book, ["꼮", "창피"]) == .word)
        #expect(await ask(book, []) == .noWord)
        #expect(await ask(book, ["*꼮"]) == .noWord)
        #expect(await ask(book, ["창피"]) == .word)
    }

    @Test(
        "is unknown, in time, when the program is missing, says nothing, ends, or talks nonsense",
        arguments: [
            nil, "exec sleep 600", "exit 1", "echo nonsense; exec sleep 600", "echo @; exit 0", "exec cat /dev/zero",
        ])
    func hostile(script: String?) async throws {
        let folder = try TestFolder("hunspell")
        if let script {
            let path = folder.path + "/hunspell"
            try "#!/bin/sh\n\(script)\n".write(toFile: path, atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        }
        let book = HunspellBook(environment: ["PATH": folder.path], patience: .milliseconds(200))
        for _ in 0..<2 {
            let (verdict, time) = await timeTaken(book, ["창피"])
            #expect(verdict == .unknown)
            #expect(time < .seconds(30))
        }
    }

    @Test("a program that ended since the last question is started anew, and the ended one is not left behind")
    func ending() async throws {
        let folder = try TestFolder("hunspell")
        let path = folder.path + "/hunspell"
        let script = "#!/bin/sh\necho $$ > \(folder.path)/id\necho @\nread word\nprintf '*\\n\\n'\n"
        try script.write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        let book = HunspellBook(environment: ["PATH": folder.path], patience: .seconds(60))
        /// The state of the last program that was started, as proc(5) has it; nil when nothing of it is left.
        func state() throws -> Character? {
            let id = try String(contentsOfFile: folder.path + "/id", encoding: .utf8)
            let stat = try? String(contentsOfFile: "/proc/\(id.dropLast())/stat", encoding: .utf8)
            return stat?.split(separator: ")").last?.dropFirst().first
        }
        for _ in 0..<3 {
            var verdict = await ask(book, ["창피"])
            // A program that another test starts just then has the script open for writing for a moment (ETXTBSY).
            let limit = ContinuousClock.now + .seconds(60)
            while verdict == .unknown, .now < limit, !FileManager.default.fileExists(atPath: folder.path + "/id") {
                verdict = await ask(book, ["창피"])
            }
            #expect(verdict == .word)
            let deadline = ContinuousClock.now + .seconds(60)
            while try state() != "Z", .now < deadline { try await Task.sleep(for: .milliseconds(5)) }
        }
        book.end()
        #expect(try state() == nil)
    }

    @Test("a program that does not answer holds up nobody who leaves")
    func leaving() async throws {
        let folder = try TestFolder("hunspell")
        let path = folder.path + "/hunspell"
        try "#!/bin/sh\nexec sleep 300\n".write(toFile: path, atomically: true, encoding: .utf8)
        try FileManager.default.setAttributes([.posixPermissions: 0o755], ofItemAtPath: path)
        let book = HunspellBook(environment: ["PATH": folder.path], patience: .seconds(300))
        let verdict = await withCheckedContinuation { continuation in
            book.lookUp(["창피"]) { continuation.resume(returning: $0) }
            book.end()
        }
        #expect(verdict == .unknown)
        #expect(await timeTaken(book, ["창피"]).0 == .unknown, "and nothing is asked afterwards")
    }
}
