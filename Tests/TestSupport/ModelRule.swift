import Foundation

/// The push rule a second time, as a pure value, written from Documentation/conflicts.md and not from the SQL.
///
/// Plain on purpose: the cases stand in the order of the table there.
package struct ModelRule {
    /// A game: who, of which type, which one.
    package struct GameKey: Hashable {
        package var player: UUID
        package var collection: String
        package var id: String

        package init(player: UUID, collection: String, id: String) {
            self.player = player
            self.collection = collection
            self.id = id
        }
    }

    /// One save, as a device pushes it.
    package struct Push: Equatable {
        package var game: GameKey
        package var device: UUID
        /// Microseconds since 1970 by the device's clock.
        package var saved: Int64
        /// nil: the device does not say.
        package var base: Int64?
        package var schema: Int32 = 1
        /// nil: a delete.
        package var state: [UInt8]?

        package init(
            game: GameKey, device: UUID, saved: Int64, base: Int64? = nil, schema: Int32 = 1, state: [UInt8]? = nil
        ) {
            self.game = game
            self.device = device
            self.saved = saved
            self.base = base
            self.schema = schema
            self.state = state
        }
    }

    /// One accepted push.
    package struct Version: Equatable {
        package var revision: Int64
        package var push: Push
        package var stamp: Int64
        package var outcome: Outcome
        package var rival: Int64?

        package init(revision: Int64, push: Push, stamp: Int64, outcome: Outcome, rival: Int64? = nil) {
            self.revision = revision
            self.push = push
            self.stamp = stamp
            self.outcome = outcome
            self.rival = rival
        }

        /// What conflicts compare.
        package func isGreater(than other: Version) -> Bool {
            if stamp != other.stamp { return stamp > other.stamp }
            if push.saved != other.push.saved { return push.saved > other.push.saved }
            return Self.bytes(push.device).lexicographicallyPrecedes(Self.bytes(other.push.device)) == false
                && push.device != other.push.device
        }

        private static func bytes(_ id: UUID) -> [UInt8] {
            withUnsafeBytes(of: id.uuid) { Array($0) }
        }
    }

    /// How a push fared.
    package enum Outcome: String {
        case created, advanced, won, lost, repeated
        case baseMismatch = "base-mismatch"
        case savedReused = "saved-reused"
        case savedOutOfRange = "saved-out-of-range"
        case invalidID = "invalid-id"
        case unknownPlayer = "unknown-player"
        case unknownDevice = "unknown-device"
    }

    /// What the device is told.
    package struct Answer: Equatable {
        package var outcome: Outcome
        package var first: Outcome?
        package var revision: Int64?
        package var stamp: Int64?
        package var rival: Int64?
        /// With `lost`, now or the first time: the head as it stands after the batch.
        package var head: Version?

        package init(
            outcome: Outcome, first: Outcome? = nil, revision: Int64? = nil, stamp: Int64? = nil, rival: Int64? = nil,
            head: Version? = nil
        ) {
            self.outcome = outcome
            self.first = first
            self.revision = revision
            self.stamp = stamp
            self.rival = rival
            self.head = head
        }
    }

    /// A player's versions are numbered 1, 2, 3 …; pruned ones are missing from the list, their numbers are not reused.
    package struct Player {
        package var devices: Set<UUID> = []
        package var lastRevision: Int64 = 0
        package var heads: [GameKey: Int64] = [:]
        /// Ascending by revision.
        package private(set) var versions: [Version] = []
        private var byGame: [GameKey: [Version]] = [:]

        package init(devices: Set<UUID> = [], lastRevision: Int64 = 0) {
            self.devices = devices
            self.lastRevision = lastRevision
        }

        package func versions(of game: GameKey) -> [Version] { byGame[game, default: []] }

        package func version(_ revision: Int64) -> Version? {
            var (low, high) = (0, versions.count)
            while low < high {
                let middle = (low + high) / 2
                if versions[middle].revision < revision { low = middle + 1 } else { high = middle }
            }
            return low < versions.count && versions[low].revision == revision ? versions[low] : nil
        }

        package mutating func append(_ version: Version) {
            versions.append(version)
            byGame[version.push.game, default: []].append(version)
        }

        package mutating func prune(_ revision: Int64) {
            guard let version = version(revision) else { return }
            versions.removeAll { $0.revision == revision }
            byGame[version.push.game]?.removeAll { $0.revision == revision }
        }
    }

    /// The server's clock plus this is as late as a stamp may be, unless its base is later.
    package static let tolerance: Int64 = 5_000_000
    /// From the year 1 to the year 9999.
    package static let savedRange: Range<Int64> = -62_135_596_800_000_000..<253_402_300_800_000_000

    package private(set) var players: [UUID: Player] = [:]

    package init() {}

    package mutating func register(player: UUID, devices: Set<UUID>) {
        players[player] = Player(devices: devices)
    }

    package mutating func revoke(device: UUID, of player: UUID) {
        players[player]?.devices.remove(device)
    }

    package mutating func prune(_ revision: Int64, of player: UUID) {
        players[player]?.prune(revision)
    }

    /// Takes a batch that arrived at once, with at most one push of a game. No push of it has seen another's version.
    package mutating func push(_ batch: [Push], arrived: Int64) -> [Answer] {
        var before: [UUID: Player] = [:]
        for push in batch { before[push.game.player] = players[push.game.player] }
        var answers = batch.map { answer($0, players: before, arrived: arrived) }
        for index in batch.indices where answers[index].first == nil {
            store(batch[index], &answers[index])
        }
        for index in batch.indices where answers[index].outcome == .lost || answers[index].first == .lost {
            let player = players[batch[index].game.player]
            answers[index].head = player?.heads[batch[index].game].flatMap { player?.version($0) }
        }
        return answers
    }

    private func answer(_ push: Push, players: [UUID: Player], arrived: Int64) -> Answer {
        guard let player = players[push.game.player] else { return Answer(outcome: .unknownPlayer) }
        guard player.devices.contains(push.device) else { return Answer(outcome: .unknownDevice) }
        guard Self.savedRange.contains(push.saved) else { return Answer(outcome: .savedOutOfRange) }
        let mine = player.versions(of: push.game)
        if let first = mine.first(where: { $0.push.device == push.device && $0.push.saved == push.saved }) {
            guard first.push.state == push.state else {
                return Answer(outcome: .savedReused, revision: first.revision)
            }
            return Answer(
                outcome: .repeated, first: first.outcome, revision: first.revision, stamp: first.stamp,
                rival: first.rival)
        }
        let base = push.base.flatMap { player.version($0) }
        if let base, base.push.game != push.game { return Answer(outcome: .baseMismatch) }
        var stamp = min(push.saved, arrived + Self.tolerance)
        if let base { stamp = max(stamp, base.stamp + 1) }
        guard let head = player.heads[push.game].flatMap({ player.version($0) }) else {
            guard Self.isValid(push.game.collection), Self.isValid(push.game.id) else {
                return Answer(outcome: .invalidID)
            }
            return Answer(outcome: .created, stamp: stamp)
        }
        if push.base == head.revision { return Answer(outcome: .advanced, stamp: stamp) }
        if push.base == 0 { return Answer(outcome: .lost, stamp: stamp, rival: head.revision) }
        let incoming = Version(revision: 0, push: push, stamp: stamp, outcome: .won)
        return Answer(
            outcome: incoming.isGreater(than: head) ? .won : .lost, stamp: stamp, rival: head.revision)
    }

    private mutating func store(_ push: Push, _ answer: inout Answer) {
        guard let stamp = answer.stamp, var player = players[push.game.player] else { return }
        player.lastRevision += 1
        answer.revision = player.lastRevision
        var push = push
        if let base = push.base, base < 0 { push.base = nil }
        player.append(
            Version(
                revision: player.lastRevision, push: push, stamp: stamp, outcome: answer.outcome, rival: answer.rival))
        if answer.outcome != .lost { player.heads[push.game] = player.lastRevision }
        players[push.game.player] = player
    }

    /// 1 to 255 bytes in Unicode's form NFC.
    private static func isValid(_ name: String) -> Bool {
        (1...255).contains(name.utf8.count)
            && name.precomposedStringWithCanonicalMapping.utf8.elementsEqual(name.utf8)
    }
}

extension ModelRule.GameKey {
    /// By bytes, as the database compares, and not by Unicode's equivalence.
    package static func == (one: Self, other: Self) -> Bool {
        one.player == other.player && one.collection.utf8.elementsEqual(other.collection.utf8)
            && one.id.utf8.elementsEqual(other.id.utf8)
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(player)
        for byte in collection.utf8 { hasher.combine(byte) }
        for byte in id.utf8 { hasher.combine(byte) }
    }
}
