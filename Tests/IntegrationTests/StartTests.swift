import Foundation
import Testing

@Suite("starting")
struct StartTests {
    @Test("a daemon whose own PostgreSQL loses sessions while it starts waits for it, and serves then")
    func lostProcesses() async throws {
        try await aside {
            let directory = try TemporaryDirectory.make()
            defer { try? FileManager.default.removeItem(at: directory) }
            // Once with nobody about, so that no migration is cut off: which of them can be, is another question.
            #expect(try DaemonProcess(directory: directory).stop() == 0)
            let killer = Killer(directory)
            let workers = Workers()
            workers.start { try killer.run(times: 4) }
            let daemon = try DaemonProcess(directory: directory, options: ["--request-timeout", "120"])
            try workers.join()
            #expect(killer.killed.current == 4)
            try eventually(60, "it takes pushes") {
                let client = try RawClient(port: daemon.port)
                guard try client.ask("REGISTER").hasPrefix("OK ") else { return false }
                return try client.ask("PUSH g x base=0 {}").hasPrefix("OK outcome=created")
            }
        }
    }

    /// Kills sessions on the private PostgreSQL's database, which then ends all others and takes none until it has recovered.
    private struct Killer: Sendable {
        let killed = Shared(0)
        private let file: URL

        init(_ directory: URL) {
            file = directory.appendingPathComponent("postgres/data/postmaster.pid")
        }

        func run(times: Int) throws {
            var seen: Set<pid_t> = []
            for _ in 0..<times {
                var victim: pid_t?
                try eventually(60, "somebody has a session") {
                    // Looked for often: the sessions of a start are short.
                    for _ in 0..<50 where victim == nil {
                        victim = sessions().first { !seen.contains($0) }
                        if victim == nil { usleep(200) }
                    }
                    return victim != nil
                }
                guard let victim else { return }
                seen.insert(victim)
                if kill(victim, SIGKILL) == 0 { killed.change { $0 += 1 } }
            }
        }

        private func sessions() -> [pid_t] {
            guard let lines = try? String(contentsOf: file, encoding: .utf8),
                let postmaster = lines.split(separator: "\n").first.flatMap({ pid_t($0) }),
                let list = try? String(
                    contentsOfFile: "/proc/\(postmaster)/task/\(postmaster)/children", encoding: .utf8)
            else { return [] }
            return list.split(separator: " ").compactMap { pid_t($0) }.filter {
                (try? String(contentsOfFile: "/proc/\($0)/cmdline", encoding: .utf8))?.contains(" ieum [local]") == true
            }
        }
    }
}
