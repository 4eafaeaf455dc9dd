import Testing

@testable import SyncServer

@Suite("rates")
struct TokenBucketTests {
    private let start = ContinuousClock.now

    @Test(
        "read their texts",
        arguments: [
            ("20/s", 20.0, 20.0), ("12/min", 0.2, 12.0), ("120/h:20", 1.0 / 30, 20.0), ("500/s:10000", 500.0, 10_000.0),
            ("0.5/s", 0.5, 1.0),
        ])
    func texts(text: String, perSecond: Double, burst: Double) throws {
        let rate = try #require(Rate(text))
        #expect(abs(rate.perSecond - perSecond) < 1e-9)
        #expect(rate.burst == burst)
    }

    @Test(
        "and nothing else",
        arguments: [
            "", "20", "20/", "/s", "20/d", "x/s", "nan/s", "inf/s", "0/s", "-1/s", "1/s:", "1/s:0", "1/s:x", "1/s:inf",
            "1/s:2:3", "1e3/s", "0x10/s", "+1/s", ".", "./s", "1/s:1e3",
        ])
    func badTexts(text: String) {
        #expect(Rate(text) == nil)
    }

    @Test("over any time no more is given than burst and rate allow, and waiting as told is enough")
    func bound() throws {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            let rate = try #require(
                Rate(perSecond: .random(in: 0.1...100, using: &random), burst: .random(in: 1...50, using: &random)))
            var bucket = TokenBucket(at: start)
            var now = start
            var taken = 0.0
            for _ in 0..<300 {
                let count = Double.random(in: 0.5...min(5, rate.burst), using: &random)
                if let wait = bucket.take(count, of: rate, at: now) {
                    #expect(wait > .zero)
                    now += wait + .microseconds(1)
                    #expect(bucket.take(count, of: rate, at: now) == nil, "after the wait that it told")
                }
                taken += count
                let seconds = (now - start) / .seconds(1)
                #expect(taken <= rate.burst + seconds * rate.perSecond + 1e-3)
                now += .milliseconds(Int.random(in: 0...200, using: &random))
            }
        }
    }

    @Test("what is larger than the burst is given to a full bucket, and paid back")
    func debt() throws {
        let rate = try #require(Rate(perSecond: 10, burst: 100))
        var bucket = TokenBucket(at: start)
        #expect(bucket.take(1_000, of: rate, at: start) == nil)
        let told = bucket.take(1, of: rate, at: start)
        let wait = try #require(told)
        #expect(abs(wait / .seconds(1) - 90.1) < 0.01)
        #expect(bucket.take(1, of: rate, at: start + .seconds(91)) == nil)
    }

    @Test("a rate that gives next to nothing tells of a year, and no more")
    func slowest() throws {
        let rate = try #require(Rate("0.\(String(repeating: "0", count: 300))1/h:1"))
        var bucket = TokenBucket(at: start)
        #expect(bucket.take(1, of: rate, at: start) == nil)
        #expect(bucket.take(1, of: rate, at: start) == .seconds(31_536_000))
        #expect(bucket.wait(for: 1, of: rate, at: start) == .seconds(31_536_000))
    }

    @Test("a clock that stands still or goes back gives nothing and takes nothing")
    func clock() throws {
        let rate = try #require(Rate(perSecond: 10, burst: 1))
        var bucket = TokenBucket(at: start + .seconds(10))
        #expect(bucket.take(1, of: rate, at: start) == nil)
        #expect(bucket.take(1, of: rate, at: start) != nil)
        #expect(bucket.take(1, of: rate, at: start + .seconds(10)) != nil)
    }

    @Test("keys do not touch one another; more keys than there is room for share one bucket")
    func table() throws {
        let rate = try #require(Rate(perSecond: 1, burst: 2))
        var table = RateTable<Int>(rate, capacity: 2_000, at: start)
        for key in 0..<2_000 {
            #expect(table.take(key, at: start) == nil)
            #expect(table.take(key, at: start) == nil)
            #expect(table.take(key, at: start) != nil)
        }
        #expect(table.count == 2_000)
        let strangers = (2_000..<2_100).filter { table.take($0, at: start) == nil }
        #expect(strangers.count == 2, "they share one")
        // All are full again: they are forgotten, and there is room.
        #expect(table.take(5_000, at: start + .seconds(60)) == nil)
        #expect(table.count == 1)
    }

    @Test("without a rate nothing is bounded and nothing kept")
    func unbounded() {
        var table = RateTable<Int>(nil, at: start)
        for _ in 0..<1_000 { #expect(table.take(1, at: start) == nil) }
        #expect(table.count == 0)
    }
}
