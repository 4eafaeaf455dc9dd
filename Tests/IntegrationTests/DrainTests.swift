import Foundation
import Postgres
import TestSupport
import Testing

@Suite("SIGTERM under load")
struct DrainTests {
    /// Pushes without a pause on one thread and reads on another, until the daemon closes.
    ///
    /// `@unchecked`: what the reading thread writes is read after its end.
    private final class Client: @unchecked Sendable {
        let token: String
        private(set) var stored = 0
        private(set) var refused = 0
        private(set) var problems: [String] = []
        private(set) var last = ""
        private let client: RawClient

        init(_ daemon: DaemonProcess) throws {
            (client, token) = try newPlayer(daemon)
        }

        func write() {
            var number = 0
            // Ends when the daemon has closed.
            while true {
                number += 1
                guard (try? client.send("PUSH g x\(number % 5) {\"n\":\(number)}")) != nil else { return }
            }
        }

        func read(_ count: Shared<Int>) throws {
            while let line = try client.line(timeout: 60) {
                last = line
                if line.hasPrefix("OK outcome=") {
                    stored += 1
                    if fields(line)["revision"] != "\(stored)" { problems.append(line) }
                    count.change { $0 += 1 }
                } else if line.hasPrefix("ERR shutting-down ") || line.hasPrefix("ERR busy ") {
                    refused += 1
                } else if !line.hasPrefix("* BYE ") {
                    problems.append(line)
                }
            }
        }
    }

    @Test("answers all that was accepted, says goodbye, ends with 0; what was not acknowledged is not there")
    func drains() throws {
        let database = try TestDatabase.migrated()
        let daemon = try DaemonProcess(database: database.conninfo)
        let clients = try (0..<8).map { _ in try Client(daemon) }
        let watcher = try newPlayer(daemon).client
        _ = try watcher.ask("WATCH since=0")
        let count = Shared(0)
        let workers = Workers()
        for client in clients {
            workers.start { client.write() }
            workers.start { try client.read(count) }
        }
        try count.wait(60, for: "the clients push") { $0 > 2000 }
        #expect(daemon.stop() == 0)
        try workers.join()
        #expect(try watcher.line()?.hasPrefix("* BYE reason=shutting-down retry-after=") == true)
        #expect(try watcher.line() == nil)
        let second = try DaemonProcess(database: database.conninfo)
        for client in clients {
            #expect(client.problems.prefix(5).isEmpty)
            #expect(client.last.hasPrefix("* BYE reason=shutting-down retry-after="), "\(client.last)")
            let again = try RawClient(port: second.port)
            #expect(fields(try again.ask("LOGIN \(client.token)"))["revision"] == "\(client.stored)")
        }
        #expect(second.stop() == 0)
    }

    @Test("sessions that say nothing hear why, and are waited for no longer than it takes to tell them")
    func silentSessions() async throws {
        try await aside {
            let isSoon = try isInTime(.seconds(2)) {
                let database = try TestDatabase.migrated()
                let daemon = try DaemonProcess(database: database.conninfo)
                let (first, token) = try newPlayer(daemon)
                #expect(try first.ask("WATCH since=0") == "OK revision=0")
                var clients = [first]
                for place in 0..<30 {
                    let client = try RawClient(port: daemon.port)
                    if place % 3 > 0 { #expect(try client.ask("LOGIN \(token)").hasPrefix("OK ")) }
                    if place % 3 > 1 { try client.send("PUSH g x {\"a".utf8) }
                    clients.append(client)
                }
                // One that is closing already, and does not close its own side.
                #expect(try clients[1].ask("QUIT") == "OK")
                #expect(try first.ask("PING") == "OK")
                let begin = ContinuousClock.now
                #expect(kill(daemon.processID, SIGTERM) == 0)
                try eventually(60, "the daemon has told them") { daemon.log.contains("event=stopped") }
                let took = ContinuousClock.now - begin
                #expect(daemon.waitForExit() == 0)
                for (place, client) in clients.enumerated() where place != 1 {
                    var last = ""
                    while let line = try client.line() { last = line }
                    #expect(last.hasPrefix("* BYE reason=shutting-down retry-after="), "\(place): \(last)")
                }
                #expect(!daemon.log.contains("drain-timed-out"))
                return took
            }
            #expect(isSoon)
        }
    }

    @Test("with nothing to do it ends at once, and its private PostgreSQL with it")
    func idle() throws {
        let folder = try TestFolder("drain")
        let daemon = try DaemonProcess(directory: URL(fileURLWithPath: folder.path))
        let postmaster = try #require(daemon.postmaster)
        #expect(daemon.stop() == 0)
        #expect(kill(postmaster, 0) != 0)
        #expect(daemon.log.contains(" event=draining signal=SIGTERM"))
        #expect(daemon.log.contains(" event=stopped"))
    }
}
