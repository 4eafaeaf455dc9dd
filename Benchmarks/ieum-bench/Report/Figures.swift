/// The figures of one run, in the order in which they were measured: flat, so that a script can read them.
struct Figures {
    private(set) var entries: [(key: String, samples: Samples)] = []

    /// Adds a figure that was measured once.
    mutating func set(_ key: String, _ value: Double) {
        var samples = Samples()
        samples.add(value)
        set(key, samples)
    }

    /// Adds a figure that was measured several times.
    mutating func set(_ key: String, _ samples: Samples) {
        entries.removeAll { $0.key == key }
        entries.append((key, samples))
    }

    /// A figure's samples, if it was measured.
    subscript(key: String) -> Samples? { entries.first { $0.key == key }?.samples }

    /// One JSON object with a number for each key: the median.
    var json: String {
        let lines = entries.map { "  \"\($0.key)\": \(Self.number($0.samples.median))" }
        return "{\n\(lines.joined(separator: ",\n"))\n}\n"
    }

    /// A number with at least five significant digits, never in exponential form.
    private static func number(_ value: Double) -> String {
        guard value.isFinite else { return "null" }
        return fixed(value, digits: abs(value) >= 1_000 ? 0 : abs(value) >= 10 ? 2 : 4)
    }
}

/// A number with so many digits behind the point.
func fixed(_ value: Double, digits: Int) -> String {
    guard value.isFinite, abs(value) < 1e15 else { return "-" }
    let power = (0..<digits).reduce(1.0) { power, _ in power * 10 }
    let scaled = Int64((abs(value) * power).rounded())
    let sign = value < 0 && scaled != 0 ? "-" : ""
    let whole = String(scaled / Int64(power))
    guard digits > 0 else { return sign + whole }
    let fraction = String(scaled % Int64(power))
    return "\(sign)\(whole).\(String(repeating: "0", count: digits - fraction.count))\(fraction)"
}

/// A number with a comma after every three digits: 18,302.
func grouped(_ value: Double) -> String {
    let digits = Array(fixed(value, digits: 0))
    var text = ""
    for (index, digit) in digits.enumerated() {
        if index > 0, (digits.count - index) % 3 == 0, digits[index - 1] != "-" { text.append(",") }
        text.append(digit)
    }
    return text
}
