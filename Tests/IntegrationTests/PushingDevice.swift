import Foundation
import TestSupport
import Wire

/// What pushing devices and the test that drives them tell each other.
struct Load: Sendable {
    /// Where the daemon listens; nil while it is away.
    var port: Int?
    /// Answers of all devices that acknowledged a new save.
    var acknowledged = 0
    /// New saves that each device may make.
    var quota = 0
    /// Devices make nothing new any more and end when all that they sent was acknowledged.
    var isEnding = false
    /// Connections that ended without having been told to.
    var losses = 0
    /// Pushes that were told to come back later.
    var unavailable = 0
    /// Answers that must not be.
    var problems: [String] = []
}

/// A device that pushes saves, many at a time, over connections that may break, as a good client does: what has no
/// answer is pushed again, and now and then something that has.
///
/// `@unchecked`: it belongs to the thread that runs it, and to the test after that thread's end.
final class PushingDevice: @unchecked Sendable {
    struct Save: Hashable {
        var game: String
        var saved: Int64
        var base: Int64?

        var line: String {
            "PUSH handle.game \(game) saved=\(Timestamp(clamping: saved))" + (base.map { " base=\($0)" } ?? "")
                + " {\"saved\":\(saved)}"
        }
    }

    private static let window = 32
    private static let firstSave: Int64 = 1_750_000_000_000_000

    let name: String
    let token: String
    let player: String
    let device: String
    let games: [String]
    /// What the server has acknowledged, with the revision that it gave.
    private(set) var acknowledged: [Save: Int64] = [:]
    private let load: Shared<Load>
    private var random: SeededRandom
    private var made = 0
    private var unanswered: [Save] = []
    private var latest: [String: Int64] = [:]
    private var order: [Save] = []

    /// - Parameter signIn: the answer to the device's `REGISTER` or `LINK`.
    init(_ name: String, signIn: String, games: Int, seed: UInt64, load: Shared<Load>) throws {
        let answer = fields(signIn)
        guard let token = answer["token"], let player = answer["player"], let device = answer["device"] else {
            throw WaitError(description: "no sign-in: \(signIn)")
        }
        (self.name, self.token, self.player, self.device) = (name, token, player, device)
        self.games = (0..<games).map { "game\($0)" }
        self.load = load
        random = SeededRandom(seed: seed)
    }

    /// Pushes until the load is ending and everything was acknowledged.
    func run() throws {
        while true {
            let port = try load.wait(120, for: "\(name) waits for a daemon") { $0.port != nil }.port ?? 0
            var underWay: [Save] = []
            do {
                let client = try RawClient(port: port)
                guard try signIn(client) else { continue }
                if try push(over: client, &underWay) { return }
            } catch let error as SocketError where error.isTimeout {
                throw error
            } catch is SocketError {
                // The daemon may be coming up, or going.
            }
            unanswered = underWay + unanswered
            let hasFailedAt = load.change { load -> Int? in
                load.losses += 1
                return load.port == port ? port : nil
            }
            // Until the test has noted the daemon's end there is nothing to connect to.
            if let hasFailedAt { try pauseBeforeReconnect(to: hasFailedAt) }
        }
    }

    /// Lets a daemon that has just gone be noticed, without a busy loop.
    private func pauseBeforeReconnect(to port: Int) throws {
        _ = try? load.wait(0.05, for: "the test notes the daemon's end") { $0.port != port }
    }

    private func signIn(_ client: RawClient) throws -> Bool {
        let answer = try client.ask("LOGIN \(token)", timeout: 60)
        if answer.hasPrefix("OK ") { return true }
        if !answer.hasPrefix("ERR unavailable ") { problem("LOGIN: \(answer)") }
        return false
    }

    /// - Returns: whether everything is done; false when the connection ended.
    private func push(over client: RawClient, _ underWay: inout [Save]) throws -> Bool {
        while true {
            var lines = ""
            while underWay.count < Self.window, let save = next() {
                underWay.append(save)
                lines += save.line + "\n"
            }
            if !lines.isEmpty { try client.send(lines.utf8) }
            if underWay.isEmpty {
                let state = try load.wait(120, for: "\(name) waits for more to do") { [made] in
                    $0.isEnding || $0.quota > made
                }
                if state.isEnding { return true }
                continue
            }
            let answer = try client.reply(timeout: 60).last ?? ""
            take(answer, to: underWay.removeFirst())
        }
    }

    private func next() -> Save? {
        if !unanswered.isEmpty { return unanswered.removeFirst() }
        if let save = order.randomElement(using: &random), Int.random(in: 0..<20, using: &random) == 0 { return save }
        let state = load.current
        guard !state.isEnding, made < state.quota, let game = games.randomElement(using: &random) else { return nil }
        made += 1
        let base = Bool.random(using: &random) ? latest[game] : nil
        return Save(game: game, saved: Self.firstSave + Int64(made), base: base)
    }

    private func take(_ answer: String, to save: Save) {
        let values = fields(answer)
        guard answer.hasPrefix("OK "), let revision = values["revision"].flatMap({ Int64($0) }) else {
            if answer.hasPrefix("ERR unavailable "), values["retry-after"] != nil {
                load.change { $0.unavailable += 1 }
            } else {
                problem("\(save): \(answer)")
            }
            unanswered.append(save)
            return
        }
        if let known = acknowledged[save] {
            if known != revision || values["outcome"] != "repeated" { problem("\(save) again: \(answer)") }
            return
        }
        acknowledged[save] = revision
        order.append(save)
        latest[save.game] = revision
        load.change { $0.acknowledged += 1 }
    }

    private func problem(_ text: String) { load.change { $0.problems.append("\(name): \(text)") } }
}

extension PushingDevice {
    /// Pushes everything once more, and says what is not a repetition of its first answer.
    func repeatsThatDiffer(over client: RawClient) throws -> [String] {
        var wrong: [String] = []
        let saves = Array(acknowledged)
        for start in stride(from: 0, to: saves.count, by: 100) {
            let part = saves[start..<min(start + 100, saves.count)]
            try client.send(part.map { $0.key.line + "\n" }.joined().utf8)
            for (save, revision) in part {
                let answer = try client.reply(timeout: 60).last ?? ""
                let values = fields(answer)
                if values["outcome"] != "repeated" || values["revision"] != "\(revision)" {
                    wrong.append("\(save) revision \(revision): \(answer)")
                }
            }
        }
        return wrong
    }
}

/// What the server holds of a player: each version once, as `HISTORY` tells it.
struct StoredVersions {
    struct Key: Hashable {
        var game: String
        var device: String
        var saved: String
    }

    /// The revisions of each key; one of each is right.
    private(set) var revisions: [Key: [Int64]] = [:]
    /// The head of each game.
    private(set) var heads: [String: Int64] = [:]

    /// Reads the history of these games, page by page.
    init(_ games: [String], over client: RawClient) throws {
        for game in games {
            var page = ""
            while true {
                try client.send("HISTORY handle.game \(game) limit=1000\(page)")
                let lines = try client.reply(timeout: 60)
                for line in lines.dropLast() {
                    let values = fields(line)
                    let key = Key(game: game, device: values["device"] ?? "", saved: values["saved"] ?? "")
                    let revision = values["revision"].flatMap { Int64($0) } ?? 0
                    revisions[key, default: []].append(revision)
                    if values["head"] == "true" { heads[game] = revision }
                }
                let end = fields(lines.last ?? "")
                guard end["more"] == "true", let before = end["before"] else { break }
                page = " before=\(before)"
            }
        }
    }

    /// All revisions, in order.
    var all: [Int64] { revisions.values.joined().sorted() }

    /// What contradicts that every save that a device was told of is there once, under the revision that it was told.
    func contradictions(to device: PushingDevice) -> [String] {
        device.acknowledged.compactMap { save, revision in
            let key = Key(
                game: save.game, device: device.device, saved: "\(Timestamp(clamping: save.saved))")
            let found = revisions[key, default: []]
            return found == [revision] ? nil : "\(save) was acknowledged as \(revision), and is stored as \(found)"
        }
    }
}
