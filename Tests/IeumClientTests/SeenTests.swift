import Testing
import Wire

@testable import IeumClient

@Suite("What a home has seen")
struct SeenTests {
    private let key: GameKey
    private let other: GameKey
    private let early = Timestamp(clamping: 1_000)

    init() throws {
        key = try GameKey(collection: "handle.game", id: "오늘")
        other = try GameKey(collection: "handle.game", id: "b")
    }

    @Test("a game never seen is pushed as a new one, a seen one with the head that was handed out")
    func base() {
        var seen = Seen()
        #expect(seen.base(for: key) == 0)
        seen.saw(key, revision: 7, stamp: early)
        seen.saw(key, revision: 5, stamp: early)
        #expect(seen.base(for: key) == 7)
        #expect(seen.deletionBase(for: key) == 7)
        #expect(seen.base(for: other) == 0)
        #expect(seen.deletionBase(for: other) == nil)
    }

    @Test("a head that was only heard of is no base")
    func heardOf() {
        var seen = Seen()
        seen.heard(of: key, stamp: early)
        #expect(seen.base(for: key) == 0)
        seen.saw(key, revision: 3, stamp: early)
        seen.heard(of: key, stamp: Said.stamp)
        #expect(seen.base(for: key) == 3)
    }

    @Test("a push is saved later than every stamp heard of, whatever the clock says")
    func saved() {
        var seen = Seen()
        let now = Timestamp(clamping: 5_000)
        #expect(seen.saved(for: key, state: [1], now: now) == now)
        seen.heard(of: key, stamp: Timestamp(clamping: 9_000))
        #expect(seen.saved(for: key, state: [1], now: now) == Timestamp(clamping: 9_001))
        #expect(seen.saved(for: other, state: [1], now: now) == now)
        #expect(seen.saved(for: key, state: [1], now: Said.stamp) == Said.stamp)
    }

    @Test("a push without an answer keeps its time for the same state, and for no other")
    func pending() {
        var seen = Seen()
        let first = Timestamp(clamping: 5_000)
        seen.willPush(key, state: [1], saved: first)
        let later = Timestamp(clamping: 6_000)
        #expect(seen.saved(for: key, state: [1], now: later) == first)
        #expect(seen.saved(for: key, state: [2], now: later) == later)
        #expect(seen.saved(for: key, state: nil, now: later) == later)
        #expect(seen.base(for: key) == 0)
        seen.pushAnswered(key, saved: later)
        #expect(seen.saved(for: key, state: [1], now: later) == first)
        seen.pushAnswered(key, saved: first)
        #expect(seen.saved(for: key, state: [1], now: later) == later)
        #expect(seen == Seen())
    }

    @Test("a new epoch takes the cursor back, and the bases away from games seen before, but not from new ones")
    func epoch() {
        var seen = Seen()
        let isFirstNew = seen.meet(epoch: Said.epoch)
        seen.saw(key, revision: 7, stamp: early)
        seen.pulled(upTo: 9)
        let isSameNew = seen.meet(epoch: Said.epoch)
        #expect(seen.cursor == 9)
        let isOtherNew = seen.meet(epoch: Said.otherEpoch)
        #expect([isFirstNew, isSameNew, isOtherNew] == [false, false, true])
        #expect(seen.cursor == 0)
        #expect(seen.base(for: key) == nil)
        #expect(seen.base(for: other) == 0)
        seen.saw(key, revision: 2, stamp: early)
        #expect(seen.base(for: key) == 2)
    }

    @Test("its text reads back as the same")
    func roundTrip() throws {
        var seen = Seen()
        #expect(try Seen(text: seen.text) == seen)
        seen.meet(epoch: Said.epoch)
        seen.saw(key, revision: 7, stamp: Said.stamp)
        seen.meet(epoch: Said.otherEpoch)
        seen.saw(other, revision: .max, stamp: early)
        seen.willPush(other, state: nil, saved: .latest)
        seen.willPush(try GameKey(collection: "c", id: "👩‍👩‍👧"), state: [0x7B, 0x7D], saved: .earliest)
        seen.pulled(upTo: 12)
        #expect(try Seen(text: seen.text) == seen)
    }
}
