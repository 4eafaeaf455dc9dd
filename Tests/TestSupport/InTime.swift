/// Whether `attempt` takes less than `limit`, at one of `tries` tries.
///
/// For rules about time: a machine that stands still for a moment makes one try late, a program that is late makes all of them.
public func isInTime(_ limit: Duration, tries: Int = 5, _ attempt: () throws -> Duration) rethrows -> Bool {
    for _ in 0..<tries where try attempt() < limit { return true }
    return false
}

extension Collection where Element: Comparable {
    /// The middle one in order, the upper one of two; nil when there is none. What a moment's standstill does to a few does not
    /// move it.
    public var median: Element? {
        isEmpty ? nil : sorted()[count / 2]
    }
}
