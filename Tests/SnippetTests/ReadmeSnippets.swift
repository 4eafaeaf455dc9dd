// snippet
import Foundation
import IeumClient

struct Score: Persistable {
    static let collection = "my.score"
    var id = "mine"
    var timestamp = Date()
    var points = 0
    static var defaults: Score? { Score() }
}

// hide

/// The README's program: compiled here; the same calls run in GuideSnippets.swift and Examples/guess.
enum ReadmeSnippets {
    static func program() async throws {
        // show
        let store = try GameStore(at: URL(fileURLWithPath: "scores.sqlite"))
        var score = try store.object(Score.self, id: "mine") ?? Score()
        score.points += 1
        score.timestamp = Date()
        try store.save(score)  // on disk when it returns, online or not

        let server = "127.0.0.1:4386"
        if !FileManager.default.fileExists(atPath: "token") {
            let token = try await SyncEngine.register(at: server, deviceName: "phone")
            try token.write(toFile: "token", atomically: true, encoding: .utf8)
            try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: "token")
        }
        let token = try String(contentsOfFile: "token", encoding: .utf8)
        let sync = try SyncEngine(store: store, server: server, token: token)
        try await sync.waitUntilSynced()  // a game would go on instead
        print("\(score.points) points, here and on the server")
        // end
    }
}
