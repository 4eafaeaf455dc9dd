import Foundation
import IeumClient

guard let name = CommandLine.arguments.dropFirst().first else {
    print("usage: guess DEVICE [CODE]")
    exit(2)
}
let server = ProcessInfo.processInfo.environment["IEUM_SERVER"] ?? "127.0.0.1:4386"
let device = try Device(name: name)
let store = try device.openStore()
let token = try await device.token(at: server, code: CommandLine.arguments.dropFirst(2).first)
let sync = try SyncEngine(store: store, server: server, token: token)

// Shows the game last played: now, and whenever it changes, here or on another device.
let shown = store.observe(Game.self, sortedBy: .descending(\.timestamp)) { change in
    if case .error(let error) = change { print("the games cannot be read: \(error)") }
    if let game = change.elements?.first { print("game: \(game.board)") }
}

// Says when the server has everything, and when it cannot be reached.
Task {
    for await status in sync.status {
        if status == .upToDate { print("synced") }
        if status == .offline { print("offline") }
    }
}

// Tells of conflicts, and remembers the side that lost.
var lost: SyncVersion?
Task {
    for await event in sync.events {
        switch event {
        case .conflict(let conflict):
            lost = conflict.loser
            let game = lost.flatMap { try? store.object(Game.self, in: $0) }
            print("conflict: \(conflict.hasMineWon ? "this" : "another") device won; lost: \(game?.board ?? "-")")
        case .refused(let refusal): print("not taken by the server: \(refusal.error)")
        case .signedOut: print("signed out: delete \(device.name)/token, and start with a code")
        }
    }
}

// Reading a line blocks, so it has a thread of its own.
let lines = AsyncStream<String> { lines in
    Thread.detachNewThread {
        while let line = readLine() { lines.yield(line) }
        lines.finish()
    }
}

print("A number is a guess. Or: pair, offline, online, back, quit.")
for await line in lines {
    do {
        switch line {
        case "pair": print("code: \(try await sync.pairingCode())")
        case "offline": sync.stop()
        case "online": sync.start()
        case "back": if let version = lost { try sync.restore(version) }
        case "quit": exit(0)
        default:
            guard let number = Int(line) else { continue }
            var game = try store.latest(Game.self) ?? Game()
            if game.isOver { game = Game() }
            game.guess(number)
            try store.save(game)
        }
    } catch {
        print("that failed: \(error)")
    }
}
