/// How long to wait before the next try: a random time up to a bound that doubles with each try ("full jitter"), so that
/// the clients of a server that comes back do not all come at once.
package struct Backoff: Hashable, Sendable {
    private let first: Duration
    private let limit: Duration
    private var bound: Duration

    /// Starts with waits up to `first`, ends with waits up to `limit`.
    package init(first: Duration = .seconds(1), limit: Duration = .seconds(60)) {
        self.first = first
        self.limit = limit
        bound = first
    }

    /// The next wait, at least as long as the server asked for, if it did.
    package mutating func next(atLeast asked: Duration? = nil, using random: inout some RandomNumberGenerator)
        -> Duration
    {
        let wait = bound * Double.random(in: 0...1, using: &random)
        bound = min(bound * 2, limit)
        guard let asked else { return wait }
        return min(max(asked, .zero), .seconds(3_600)) + wait
    }

    /// Something worked: the next trouble starts from the beginning.
    package mutating func reset() {
        bound = first
    }
}
