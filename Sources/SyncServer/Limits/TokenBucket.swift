/// How much may be done: so much a second, and so much at once after a pause.
public struct Rate: Hashable, Sendable {
    /// What one second gives back.
    public var perSecond: Double
    /// The most that can gather.
    public var burst: Double

    /// A rate; nil when nothing is bounded.
    public init?(perSecond: Double, burst: Double) {
        guard perSecond > 0, burst > 0 else { return nil }
        self.perSecond = perSecond
        self.burst = burst
    }

    /// Reads `20/s`, `12/min`, `40/h`, and `500/s:10000` with what may come at once; without that it is as many as before
    /// the slash.
    public init?(_ text: String) {
        let parts = text.split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
        let words = parts.first?.split(separator: "/", maxSplits: 1, omittingEmptySubsequences: false) ?? []
        guard words.count == 2, let count = Self.number(words[0]),
            let seconds = ["s": 1.0, "min": 60, "h": 3_600][words[1]]
        else { return nil }
        guard parts.count == 2 else {
            self.init(perSecond: count / seconds, burst: max(1, count))
            return
        }
        guard let burst = Self.number(parts[1]), burst >= 1 else { return nil }
        self.init(perSecond: count / seconds, burst: burst)
    }

    /// Reads digits, with a point among them or without.
    private static func number(_ text: Substring) -> Double? {
        guard text.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
            let number = Double(text),
            number.isFinite
        else { return nil }
        return number
    }

    /// How long it takes until so many are given back: a year at the longest, which is as good as for ever.
    func time(for count: Double) -> Duration { .seconds(min(count / perSecond, 31_536_000)) }
}

/// What is left of a rate at a moment.
struct TokenBucket {
    private var spent: Double = 0
    private var moment: ContinuousClock.Instant

    init(at now: ContinuousClock.Instant) {
        moment = now
    }

    /// Takes tokens, unless there are too few.
    ///
    /// More than the bucket holds is given when it is full, and the debt is paid back before the next: nothing is impossible,
    /// only slow.
    /// - Returns: nil when they were taken; else how long to wait.
    mutating func take(_ count: Double, of rate: Rate, at now: ContinuousClock.Instant) -> Duration? {
        refill(rate, at: now)
        let missing = spent + min(count, rate.burst) - rate.burst
        guard missing > 0 else {
            spent += count
            return nil
        }
        return rate.time(for: missing)
    }

    /// How long to wait until so many can be taken; nil: now.
    mutating func wait(for count: Double, of rate: Rate, at now: ContinuousClock.Instant) -> Duration? {
        refill(rate, at: now)
        let missing = spent + min(count, rate.burst) - rate.burst
        return missing > 0 ? rate.time(for: missing) : nil
    }

    /// Whether nothing of it is used, so that a new one is the same.
    mutating func isFull(_ rate: Rate, at now: ContinuousClock.Instant) -> Bool {
        refill(rate, at: now)
        return spent == 0
    }

    private mutating func refill(_ rate: Rate, at now: ContinuousClock.Instant) {
        guard now > moment else { return }
        spent = max(0, spent - (now - moment) / .seconds(1) * rate.perSecond)
        moment = now
    }
}

/// A bucket for each of many keys, in bounded memory: a key whose bucket is full is forgotten.
///
/// When more keys than it holds are under way at once, those that come new share one bucket.
struct RateTable<Key: Hashable> {
    private let rate: Rate?
    private let capacity: Int
    private var buckets: [Key: TokenBucket] = [:]
    private var others: TokenBucket
    private var nextSweep = 1_024

    /// - Parameter rate: nil bounds nothing.
    init(_ rate: Rate?, capacity: Int = 65_536, at now: ContinuousClock.Instant) {
        self.rate = rate
        self.capacity = capacity
        others = TokenBucket(at: now)
    }

    var count: Int { buckets.count }

    /// Takes one, or says how long to wait.
    mutating func take(_ key: Key, _ count: Double = 1, at now: ContinuousClock.Instant) -> Duration? {
        guard let rate else { return nil }
        if buckets[key] != nil { return buckets[key]?.take(count, of: rate, at: now) }
        sweepIfGrown(rate, now)
        guard buckets.count < capacity else { return others.take(count, of: rate, at: now) }
        var bucket = TokenBucket(at: now)
        let wait = bucket.take(count, of: rate, at: now)
        buckets[key] = bucket
        return wait
    }

    /// How long to wait before so many can be taken; nil: now.
    mutating func wait(_ key: Key, for count: Double = 1, at now: ContinuousClock.Instant) -> Duration? {
        guard let rate else { return nil }
        if buckets[key] != nil { return buckets[key]?.wait(for: count, of: rate, at: now) }
        return buckets.count < capacity ? nil : others.wait(for: count, of: rate, at: now)
    }

    private mutating func sweepIfGrown(_ rate: Rate, _ now: ContinuousClock.Instant) {
        guard buckets.count >= min(nextSweep, capacity) else { return }
        var kept: [Key: TokenBucket] = [:]
        for (key, bucket) in buckets {
            var bucket = bucket
            if !bucket.isFull(rate, at: now) { kept[key] = bucket }
        }
        buckets = kept
        nextSweep = max(1_024, 2 * kept.count)
    }
}
