import Foundation
import Synchronization
import Testing
import Wire

@testable import IeumClient

@Suite("A signed-in device")
struct SignedInDeviceTests {
    private let folder: TemporaryFolder
    private let key: GameKey
    private let state = Array("{\"answer\":\"사람\"}".utf8)
    private let hello: [Peer.Step] = [.say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(revision: 9))]

    init() throws {
        folder = try TemporaryFolder()
        key = try GameKey(collection: "handle.game", id: "today")
    }

    private func pushes(_ peer: Peer) -> [String] {
        peer.heard.flatMap { $0 }.filter { $0.hasPrefix("PUSH") }
    }

    private func option(_ name: String, of line: String) -> String? {
        line.split(separator: " ").first { $0.hasPrefix(name + "=") }.map { String($0.dropFirst(name.count + 1)) }
    }

    @Test("cut off at any byte of a push's answer, it sends the same push once more and takes that answer")
    func cutAnywhere() throws {
        let answer = Said.receipt(.created, 10)
        for cut in 0..<answer.count {
            let folder = try TemporaryFolder()
            let peer = Peer(
                hello + [.hear("PUSH"), .say(Array(answer.prefix(cut))), .close],
                hello + [.hear("PUSH"), .say(Said.receipt(.repeated, first: .created, 10))])
            let home = try folder.home(at: peer.address)
            let device = try SignedInDevice(home: home)
            var reasons: [ClientError] = []
            let (push, receipt) = try device.push(.init(game: key, state: state)) { reasons.append($0) }
            #expect(receipt.outcome == .repeated)
            #expect(reasons == [.connectionClosed(nil)])
            let lines = pushes(peer)
            #expect(lines.count == 2, "cut at \(cut)")
            #expect(Set(lines).count == 1, "cut at \(cut)")
            #expect(option("saved", of: lines.first ?? "") == push.saved?.description)
            #expect(option("base", of: lines.first ?? "") == "0")
            #expect(try home.seen().base(for: key) == 10)
        }
    }

    @Test("without an answer to the second try either, the next call of the same push has the same time")
    func unanswered() throws {
        let peer = Peer(
            hello + [.hear("PUSH"), .close], hello + [.hear("PUSH"), .close],
            hello + [.hear("PUSH"), .say(Said.receipt(.created, 10)), .hear("PUSH"), .say(Said.receipt(.advanced, 11))])
        let home = try folder.home(at: peer.address)
        #expect(throws: ClientError.connectionClosed(nil)) {
            try SignedInDevice(home: home).push(.init(game: key, state: state))
        }
        let device = try SignedInDevice(home: home)
        _ = try device.push(.init(game: key, state: state))
        _ = try device.push(.init(game: key, state: state))
        let saved = pushes(peer).map { option("saved", of: $0) }
        try #require(saved.count == 4)
        #expect(Set(saved[..<3]).count == 1)
        // Answered by now: the same state again is another save.
        #expect(saved[3] != saved[2])
        #expect(option("base", of: pushes(peer)[3]) == "10")
    }

    @Test("a refused push is over; one that may have been stored all the same keeps its time")
    func refused() throws {
        let peer = Peer(
            hello + [
                .hear("PUSH"), .say("ERR invalid-json offset=1 \"no\"\n"), .hear("PUSH"),
                .say("ERR unavailable retry-after=1 \"no\"\n"), .hear("PUSH"), .say(Said.receipt(.created, 10)),
            ])
        let device = try SignedInDevice(home: folder.home(at: peer.address))
        for code in [WireError.Code.invalidJSON, .unavailable] {
            #expect {
                try device.push(.init(game: key, state: state))
            } throws: { error in
                guard case ClientError.server(let refusal) = error else { return false }
                return refusal.code == code
            }
        }
        _ = try device.push(.init(game: key, state: state))
        let saved = pushes(peer).map { option("saved", of: $0) }
        #expect(saved[0] != saved[1])
        #expect(saved[1] == saved[2])
    }

    @Test("pushes with the head that it was given last as base, and with nothing that it was only told of")
    func bases() throws {
        let head = PushReceipt.Head(
            revision: 11, saved: .latest, stamp: .latest.advanced(byMicroseconds: -5), device: Said.token.device,
            schema: 0,
            state: Array("{}".utf8))
        let peer = Peer(
            hello + [
                .hear("PUSH"), .say(Said.receipt(.created, 10)), .hear("PUSH"),
                .say(Said.receipt(.lost, 12, rival: 11, head: head)),
                .hear("PUSH"), .say(Said.receipt(.lost, 13, rival: 11, head: head)), .hear("GET"),
                .say(Said.game(key, 11, "{}")), .say("END\n"), .hear("PUSH"), .say(Said.receipt(.advanced, 14)),
                .hear("GET"), .say(Said.game(key, 12, "{}")), .say("END\n"), .hear("PUSH"),
                .say(Said.receipt(.won, 15, rival: 14)),
                .hear("PUSH"), .say(Said.receipt(.advanced, 16)), .hear("PUSH"), .say(Said.receipt(.won, 17)),
                .hear("DELETE"),
                .say(Said.receipt(.advanced, 18)),
            ])
        let device = try SignedInDevice(home: folder.home(at: peer.address))
        let draft = SignedInDevice.Draft(game: key, state: state)
        #expect(try device.push(draft).receipt.outcome == .created)
        #expect(try device.push(draft).receipt.head == head)
        let afterLoss = try device.push(draft)
        // Later than the head's stamp, so that it wins as soon as the player has seen the head.
        #expect(afterLoss.push.saved == head.stamp.advanced(byMicroseconds: 1))
        _ = try device.get(key)
        _ = try device.push(draft)
        // An old version is looked at, not carried on.
        _ = try device.get(key, revision: 12)
        _ = try device.push(draft)
        var chosen = draft
        chosen.base = .revision(3)
        _ = try device.push(chosen)
        chosen.base = .none
        _ = try device.push(chosen)
        _ = try device.push(.init(game: key, state: nil))
        let bases = peer.heard.flatMap { $0 }.filter { $0.hasPrefix("PUSH") || $0.hasPrefix("DELETE") }
            .map { option("base", of: $0) }
        #expect(bases == ["0", "10", "10", "11", "14", "3", nil, "17"])
    }

    @Test("after a restore it claims no base for games seen before, and starts its cursor over")
    func newEpoch() throws {
        let restored: [Peer.Step] = [.say(Said.greeting(epoch: Said.otherEpoch)), .hear("LOGIN"), .say(Said.signIn())]
        let peer = Peer(
            hello + [.hear("PUSH"), .say(Said.receipt(.created, 10))],
            restored + [.hear("PUSH"), .say(Said.receipt(.created, 1))], restored)
        let home = try folder.home(at: peer.address)
        let before = try SignedInDevice(home: home)
        _ = try before.push(.init(game: key, state: state))
        try home.updateSeen { $0.pulled(upTo: 10) }
        #expect(!before.isEpochNew)
        #expect(try home.seen().cursor == 10)
        let after = try SignedInDevice(home: home)
        #expect(after.isEpochNew)
        #expect(try home.seen().cursor == 0)
        _ = try after.push(.init(game: key, state: state))
        #expect(option("base", of: pushes(peer)[1]) == nil)
        #expect(try !SignedInDevice(home: home).isEpochNew)
    }

    @Test("names are brought into normal form C before they go out")
    func normalizes() throws {
        let key = try GameKey(normalizing: "c", "\u{1112}\u{1161}\u{11AB}")
        #expect(Array(key.id.unicodeScalars) == ["\u{D55C}"])
    }
}
