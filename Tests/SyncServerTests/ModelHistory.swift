import Foundation
import TestSupport

/// What the devices of one player do over time: a random source of pushes, good ones and bad ones.
///
/// It knows of the server only what the rule's other half, ``ModelRule``, says of its player.
struct ModelHistory {
    typealias Push = ModelRule.Push

    let player: UUID
    let devices: [UUID]
    let games: [ModelRule.GameKey]
    /// By how much each device's clock is wrong.
    let skews: [Int64]
    private(set) var sent: [Push] = []

    /// Moments of saving are drawn from so few microseconds that devices often save in the same one.
    private static let moments: Range<Int64> = 0..<6
    private static let hour: Int64 = 3_600_000_000
    private static let wrongClocks: [Int64] = [0, 0, 0, 0, -4_000_000, 4_000_000, -hour, hour, 10 * 365 * 24 * hour]

    init(using random: inout some RandomNumberGenerator) {
        let player = UUID.random(using: &random)
        self.player = player
        devices = (0..<3).map { _ in UUID.random(using: &random) }
        games = ["handle.game", "한글"].flatMap { collection in
            ["today", "어제"].map { ModelRule.GameKey(player: player, collection: collection, id: $0) }
        }
        skews = devices.map { _ in Self.wrongClocks.randomElement(using: &random) ?? 0 }
    }

    /// One push of each of some games, as if sent around `now`.
    mutating func next(
        knowing server: ModelRule.Player, now: Int64, using random: inout some RandomNumberGenerator
    ) -> [Push] {
        var pushes: [Push] = []
        for game in games.shuffled(using: &random).prefix([1, 1, 1, 2, 4].randomElement(using: &random) ?? 1) {
            let push = next(of: game, knowing: server, now: now, using: &random)
            // Two may have got the same bad name.
            if !pushes.contains(where: { $0.game == push.game }) { pushes.append(push) }
        }
        sent += pushes
        return pushes
    }

    private func next(
        of game: ModelRule.GameKey, knowing server: ModelRule.Player, now: Int64,
        using random: inout some RandomNumberGenerator
    ) -> Push {
        let index = Int.random(in: devices.indices, using: &random)
        var push = Push(
            game: game, device: devices[index],
            saved: now + skews[index] + Int64.random(in: Self.moments, using: &random),
            base: base(of: game, server, using: &random), schema: .random(in: 0...3, using: &random),
            state: .random(in: 0..<10, using: &random) == 0 ? nil : Self.state(using: &random))
        let earlier = sent.filter { $0.game == game }.randomElement(using: &random)
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<12:
            push = earlier ?? push
        case 12..<15:
            push = earlier ?? push
            push.base = base(of: game, server, using: &random)
        case 15..<20:
            push = earlier ?? push
            push.state = push.state == nil || Bool.random(using: &random) ? Self.state(using: &random) : nil
        case 20..<22: push.device = .random(using: &random)
        case 22: push.saved = [.min, .max, ModelRule.savedRange.upperBound].randomElement(using: &random) ?? 0
        case 23:
            let extremes = [ModelRule.savedRange.lowerBound, ModelRule.savedRange.upperBound - 1]
            push.saved = extremes.randomElement(using: &random) ?? 0
        case 24: push.game.player = .random(using: &random)
        case 25: push.game.id = Self.badNames.randomElement(using: &random) ?? ""
        default: break
        }
        return push
    }

    /// Empty, too long, and not in Unicode's form NFC.
    private static let badNames = ["", String(repeating: "x", count: 256), "\u{1112}\u{1161}\u{11AB}"]

    private func base(
        of game: ModelRule.GameKey, _ server: ModelRule.Player, using random: inout some RandomNumberGenerator
    ) -> Int64? {
        let head = server.heads[game]
        switch Int.random(in: 0..<100, using: &random) {
        case 0..<45: return head
        case 45..<60: return nil
        case 60..<70: return 0
        case 70..<86:
            return server.versions(of: game).randomElement(using: &random)?.revision ?? head
        case 86..<93: return .random(in: 0...server.lastRevision, using: &random)
        case 93..<98: return server.lastRevision + 1 + Int64.random(in: 0..<50, using: &random)
        default: return .random(in: Int64.min..<0, using: &random)
        }
    }

    /// JSON with odd spacing and doubled keys, which must be kept byte for byte.
    static func state(using random: inout some RandomNumberGenerator) -> [UInt8] {
        let space = ["", " ", "\t ", "  "]
        func blank() -> String { space.randomElement(using: &random) ?? "" }
        let values = ["1", "1.0", "1e0", "null", "\"ㅎ\"", "\"\\u314e\"", "[ ]", "{}", "9007199254740993"]
        let pairs = (0..<Int.random(in: 0...3, using: &random)).map { _ in
            "\(blank())\"\(["a", "b", "a b"].randomElement(using: &random) ?? "a")\"\(blank()):\(blank())"
                + (values.randomElement(using: &random) ?? "0")
        }
        return Array("\(blank()){\(pairs.joined(separator: blank() + ","))\(blank())}\(blank())".utf8)
    }
}

extension UUID {
    /// A random one that comes again for the same seed.
    static func random(using random: inout some RandomNumberGenerator) -> UUID {
        let (one, two) = (random.next(), random.next())
        func byte(_ word: UInt64, _ index: UInt64) -> UInt8 { UInt8(truncatingIfNeeded: word >> (8 * index)) }
        return UUID(
            uuid: (
                byte(one, 0), byte(one, 1), byte(one, 2), byte(one, 3), byte(one, 4), byte(one, 5), byte(one, 6),
                byte(one, 7), byte(two, 0), byte(two, 1), byte(two, 2), byte(two, 3), byte(two, 4), byte(two, 5),
                byte(two, 6), byte(two, 7)
            ))
    }
}
