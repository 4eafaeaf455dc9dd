import Foundation
import Testing

@testable import ieum_bench

@Suite("Figures and their table")
struct FiguresTests {
    @Test(
        "the median is the middle, or the mean of the two middle ones",
        arguments: [
            ([], 0), ([3], 3), ([3, 1], 2), ([9, 1, 2], 2), ([4, 1, 3, 2], 2.5), ([5, 1, 4, 2, 3], 3),
        ] as [([Double], Double)])
    func median(values: [Double], expected: Double) {
        var samples = Samples()
        for value in values { samples.add(value) }
        #expect(samples.median == expected)
    }

    @Test(
        "a percentile is the nearest rank",
        arguments: [(0.5, 50), (0.99, 99), (1, 100), (0, 1), (0.001, 1), (0.995, 100)] as [(Double, Int)])
    func percentiles(share: Double, expected: Int) {
        #expect(percentile(Array(1...100), share) == expected)
    }

    @Test("nothing has no percentile")
    func emptyPercentile() {
        #expect(percentile([Int](), 0.5) == nil)
    }

    @Test(
        "numbers are rounded, not cut, and never exponential",
        arguments: [
            (1.005, 1, "1.0"), (0.949, 1, "0.9"), (0.95, 1, "1.0"), (-0.04, 1, "0.0"), (-1.25, 1, "-1.3"),
            (123_456_789, 0, "123456789"), (0.00049, 4, "0.0005"), (2, 2, "2.00"), (.infinity, 2, "-"), (.nan, 0, "-"),
        ] as [(Double, Int, String)])
    func fixedNumbers(value: Double, digits: Int, expected: String) {
        #expect(fixed(value, digits: digits) == expected)
    }

    @Test(
        "thousands are grouped",
        arguments: [
            (0, "0"), (999, "999"), (1_000, "1,000"), (18_302.4, "18,302"), (1_234_567, "1,234,567"),
            (-1_000, "-1,000"),
            (-100, "-100"),
        ] as [(Double, String)])
    func groupedNumbers(value: Double, expected: String) {
        #expect(grouped(value) == expected)
    }

    @Test("the JSON is flat, in order, and holds the medians")
    func json() throws {
        var figures = Figures()
        figures.set("b", 1_234.56)
        var samples = Samples()
        for value in [0.5, 0.25, 0.125] { samples.add(value) }
        figures.set("a", samples)
        figures.set("none", .nan)
        #expect(figures.json == "{\n  \"b\": 1235,\n  \"a\": 0.2500,\n  \"none\": null\n}\n")
        let parsed = try JSONSerialization.jsonObject(with: Data(figures.json.utf8)) as? [String: Any]
        #expect(parsed?.count == 3)
    }

    @Test(
        "a target is met at its bound, on the right side",
        arguments: [
            ("push_512_over_single", 1.5, "pass"), ("push_512_over_single", 1.499, "MISS"),
            ("cpu_over_single", 0.7, "pass"),
            ("cpu_over_single", 0.701, "MISS"), ("idle_rss_bytes_per_connection", 3_072, "pass"),
            ("idle_rss_bytes_per_connection", 3_073, "MISS"), ("notice_p99_ms", 3.1, "MISS"),
        ] as [(String, Double, String)])
    func targets(key: String, value: Double, verdict: String) {
        var figures = Figures()
        figures.set(key, value)
        let text = Table(figures: figures).text
        #expect(text.contains("pass") == (verdict == "pass"))
        #expect(text.contains("MISS") == (verdict == "MISS"))
    }

    @Test("what was not measured is not in the table")
    func absent() {
        #expect(Table(figures: Figures()).text.split(separator: "\n").count == 2)
    }
}
