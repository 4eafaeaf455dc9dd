/// How long to wait before the next try: growing limits, and a random time below each ("full jitter").
///
/// Many clients that lost the same server thus come back spread out and not all at once. Source: AWS Architecture Blog,
/// "Exponential Backoff And Jitter".
public struct Backoff: Sendable {
    /// The longest wait after the first failure.
    public let base: Duration
    /// The longest wait of all.
    public let limit: Duration
    /// Failures since the last success.
    public private(set) var failures = 0

    /// Makes a backoff without failures.
    public init(base: Duration = .milliseconds(50), limit: Duration = .seconds(5)) {
        self.base = max(base, .zero)
        self.limit = max(limit, base)
    }

    /// The wait after one more failure: anything from zero to `base` doubled for each failure before, `limit` at most.
    public mutating func next(using random: inout some RandomNumberGenerator) -> Duration {
        // Twenty doublings are a million bases; more would only overflow.
        let ceiling = min(base * (1 << min(failures, 20)), limit)
        failures = min(failures + 1, 1 << 20)
        return ceiling * Double.random(in: 0...1, using: &random)
    }

    /// Forgets the failures after a success.
    public mutating func reset() {
        failures = 0
    }
}
