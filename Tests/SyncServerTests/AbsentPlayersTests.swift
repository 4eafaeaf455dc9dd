import Testing
import Wire

@testable import SyncServer

@Suite("what is known of players who are gone")
struct AbsentPlayersTests {
    private func player(_ number: UInt8) -> PlayerID {
        PlayerID(.init(uuid: (number, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
    }

    @Test("is given back once, and nothing is kept of whom nothing is known")
    func recalling() {
        var absent = AbsentPlayers()
        let storage = Storage(at: .now)
        absent.remember(player(1), storage, share: 0.01)
        absent.remember(player(2), storage, share: 0)
        #expect(absent.count == 1)
        #expect(absent.recall(player(1)) != nil)
        #expect(absent.recall(player(1)) == nil)
        #expect(absent.recall(player(2)) == nil)
    }

    @Test("is bounded: those who have used least go first")
    func capacity() {
        var absent = AbsentPlayers(capacity: 8)
        for number in UInt8(1)...9 { absent.remember(player(number), Storage(at: .now), share: Double(10 - number)) }
        #expect(absent.count == 7)
        #expect(absent.recall(player(9)) == nil)
        #expect(absent.recall(player(8)) == nil)
        for number in UInt8(1)...7 { #expect(absent.recall(player(number)) != nil) }
    }
}
