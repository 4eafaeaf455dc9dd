import Foundation
import Wire

/// What a home has seen of its player's games: the text of `seen.json`.
///
/// It is what a push says as its `base` and where the list of a pull goes on, and no more. The games themselves are in the
/// home's store, whether they were handed out or not: ``DeviceHome/openStore(of:schemaVersion:busyMilliseconds:)``.
package struct Seen: Hashable, Sendable {
    /// The life of the server's database that the numbers here belong to; nil before the first contact.
    package private(set) var epoch: UUID?
    /// Up to where `pull` has listed the changes.
    package private(set) var cursor: Revision = 0
    private(set) var games: [GameKey: Game] = [:]

    /// What was seen of one game.
    struct Game: Hashable, Sendable {
        /// The head that was handed out here last; 0: none.
        var revision: Revision = 0
        /// Whether the game was seen in an earlier epoch only, so that no revision of this one can be named.
        var isFromEarlierEpoch = false
        /// The latest stamp that was heard of.
        var stamp: Timestamp?
        /// A push whose answer did not come.
        var pending: PendingPush?
    }

    /// A push that was sent and not answered: when it is repeated, it must have the same `saved`.
    struct PendingPush: Hashable, Sendable {
        var saved: Timestamp
        /// What was pushed, see ``Seen/digest(of:)``.
        var digest: String
    }

    /// Nothing was seen yet.
    package init() {}

    /// Takes note of the server's epoch. A new one ends what the numbers mean: the cursor goes back to 0, and a game seen
    /// before is pushed without a base until it is seen again.
    /// - Returns: whether the epoch is another one than before.
    @discardableResult
    package mutating func meet(epoch: UUID) -> Bool {
        guard epoch != self.epoch else { return false }
        let isNew = self.epoch != nil
        self.epoch = epoch
        guard isNew else { return false }
        cursor = 0
        for (key, game) in games where game.revision > 0 {
            games[key]?.revision = 0
            games[key]?.isFromEarlierEpoch = true
        }
        return true
    }

    /// Takes note of how far a pull came. Never goes back.
    package mutating func pulled(upTo cursor: Revision) {
        self.cursor = max(self.cursor, cursor)
    }

    /// Starts the feed over, after the server said that the cursor is beyond its end.
    package mutating func startOver() {
        cursor = 0
    }

    /// Takes note of a head that was handed out: with its state, or as a tombstone.
    package mutating func saw(_ key: GameKey, revision: Revision, stamp: Timestamp) {
        var game = games[key] ?? Game()
        game.revision = max(game.revision, revision)
        game.isFromEarlierEpoch = false
        game.stamp = max(game.stamp ?? stamp, stamp)
        games[key] = game
    }

    /// Takes note of a stamp of a version that was not handed out.
    package mutating func heard(of key: GameKey, stamp: Timestamp) {
        var game = games[key] ?? Game()
        game.stamp = max(game.stamp ?? stamp, stamp)
        games[key] = game
    }

    /// The `base` of the next push: the head last seen, 0 for a game never seen, nil for one of an earlier epoch.
    package func base(for key: GameKey) -> Revision? {
        guard let game = games[key] else { return 0 }
        return game.isFromEarlierEpoch ? nil : game.revision
    }

    /// The `base` of a deletion: that of a push, but nil for a game never seen, since nobody deletes what is new.
    package func deletionBase(for key: GameKey) -> Revision? {
        base(for: key).flatMap { $0 == 0 ? nil : $0 }
    }

    /// The `saved` of a push that is saved now: later than every stamp heard of for the game, whatever the clock says; of
    /// the same push sent before without an answer, the same as then.
    package func saved(for key: GameKey, state: [UInt8]?, now: Timestamp) -> Timestamp {
        guard let game = games[key] else { return now }
        if let pending = game.pending, pending.digest == Self.digest(of: state) { return pending.saved }
        return max(now, game.stamp?.advanced(byMicroseconds: 1) ?? now)
    }

    /// Takes note of a push before it is sent.
    package mutating func willPush(_ key: GameKey, state: [UInt8]?, saved: Timestamp) {
        games[key, default: Game()].pending = PendingPush(saved: saved, digest: Self.digest(of: state))
    }

    /// Takes note of the answer to a push, whatever it was.
    package mutating func pushAnswered(_ key: GameKey, saved: Timestamp) {
        guard let game = games[key], game.pending?.saved == saved else { return }
        games[key]?.pending = nil
        if games[key] == Game() { games[key] = nil }
    }

    /// Tells states apart: their length and FNV-1a. Should two states ever have the same, the server refuses the second
    /// (`saved-reused`), and nothing is lost.
    static func digest(of state: [UInt8]?) -> String {
        guard let state else { return "deleted" }
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in state { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "\(state.count)-\(String(hash, radix: 16))"
    }
}

extension Seen {
    private struct Text: Codable {
        var epoch: String?
        var cursor: Revision
        var games: [String: GameText]
    }

    private struct GameText: Codable {
        var revision: Revision
        var earlierEpoch: Bool?
        var stamp: String?
        var pending: PendingText?
    }

    private struct PendingText: Codable {
        var saved: String
        var digest: String
    }

    /// The text of `seen.json`.
    var text: [UInt8] {
        var text = Text(epoch: epoch?.uuidString.lowercased(), cursor: cursor, games: [:])
        for (key, game) in games {
            text.games[key.description] = GameText(
                revision: game.revision, earlierEpoch: game.isFromEarlierEpoch ? true : nil,
                stamp: game.stamp?.description,
                pending: game.pending.map { PendingText(saved: $0.saved.description, digest: $0.digest) })
        }
        return JSONFile.encode(text)
    }

    /// Reads `seen.json`.
    init(text bytes: [UInt8]) throws(JSONFile.Problem) {
        let text = try JSONFile.decode(Text.self, bytes)
        if let epochText = text.epoch {
            guard let uuid = UUID(uuidString: epochText) else { throw JSONFile.Problem("its epoch is no UUID") }
            epoch = uuid
        }
        guard text.cursor >= 0 else { throw JSONFile.Problem("its cursor is negative") }
        cursor = text.cursor
        for (name, game) in text.games {
            games[try Self.key(name)] = try Self.game(game, of: name)
        }
    }

    private static func key(_ name: String) throws(JSONFile.Problem) -> GameKey {
        let words = name.split(separator: " ", omittingEmptySubsequences: false)
        guard words.count == 2, let key = try? GameKey(collection: String(words[0]), id: String(words[1])) else {
            throw JSONFile.Problem("\"\(name)\" names no game")
        }
        return key
    }

    private static func game(_ text: GameText, of name: String) throws(JSONFile.Problem) -> Game {
        func time(_ text: String) throws(JSONFile.Problem) -> Timestamp {
            guard let time = Timestamp(text) else { throw JSONFile.Problem("a time of \"\(name)\" is none") }
            return time
        }
        guard text.revision >= 0 else { throw JSONFile.Problem("the revision of \"\(name)\" is negative") }
        var game = Game(revision: text.revision, isFromEarlierEpoch: text.earlierEpoch ?? false)
        if let stamp = text.stamp { game.stamp = try time(stamp) }
        if let pending = text.pending {
            game.pending = PendingPush(saved: try time(pending.saved), digest: pending.digest)
        }
        return game
    }
}
