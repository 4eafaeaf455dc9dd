/// A figure measured several times: what is shown is the median, with the smallest and the greatest.
struct Samples {
    private(set) var values: [Double] = []

    /// The middle value; the mean of the two middle ones of an even number; zero of none.
    var median: Double {
        let sorted = values.sorted()
        guard let last = sorted.last else { return 0 }
        let middle = sorted.count / 2
        return sorted.count % 2 == 1
            ? sorted[middle] : (sorted[middle - 1] + (middle < sorted.count ? sorted[middle] : last)) / 2
    }

    var min: Double { values.min() ?? 0 }
    var max: Double { values.max() ?? 0 }

    mutating func add(_ value: Double) {
        values.append(value)
    }
}

/// The value that a share of the values, sorted in rising order, does not exceed (nearest rank); nil of none.
func percentile<Value>(_ sorted: [Value], _ share: Double) -> Value? {
    guard !sorted.isEmpty else { return nil }
    let rank = Int((share * Double(sorted.count)).rounded(.up))
    return sorted[Swift.min(Swift.max(rank, 1), sorted.count) - 1]
}
