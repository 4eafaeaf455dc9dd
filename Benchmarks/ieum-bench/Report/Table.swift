/// What is printed at the end: ratios first, each beside its target, then the figures that they are made of.
struct Table {
    let figures: Figures

    /// The lines of the table; about one screen.
    var text: String {
        let ratios = rows(Self.targets.map { row(of: $0) })
        let facts = rows(Self.facts.map { row($0.label, $0.key, $0.unit, scale: $0.scale) })
        return (["RATIOS AND LIMITS"] + ratios + ["", "FIGURES (median, least–greatest of the rounds)"] + facts)
            .joined(separator: "\n") + "\n"
    }

    private struct Target {
        var label: String
        var key: String
        var bound: Bound
        var unit = ""
        var scale = 1.0

        enum Bound { case atLeast(Double), atMost(Double), none }
    }

    private static let targets: [Target] =
        [
            Target(
                label: "pushes/s, 512 connections, over single", key: "push_512_over_single", bound: .atLeast(1.5),
                unit: "x"),
            Target(
                label: "pushes/s, 512 connections, over batch", key: "push_512_over_batch", bound: .atLeast(0.5),
                unit: "x"),
            Target(label: "server CPU of a push over single's", key: "cpu_over_single", bound: .atMost(0.7), unit: "x"),
            Target(
                label: "pushes/s over TLS over plain TCP, 64 connections", key: "push_64_tls_over_plain",
                bound: .atLeast(0.8),
                unit: "x"),
            Target(label: "pulls of 20 games over the database's", key: "pull_over_database", bound: .none, unit: "x"),
            Target(label: "push cost, many versions over few", key: "push_cost_1m_over_1k", bound: .none, unit: "x"),
            Target(
                label: "memory of an idle watching connection", key: "idle_rss_bytes_per_connection", bound: .atMost(3),
                unit: "KiB", scale: 1.0 / 1_024),
            Target(label: "notice after the push's reply, p99", key: "notice_p99_ms", bound: .atMost(3), unit: "ms"),
            Target(
                label: "save on the device over SQLite's upsert", key: "client_save_over_sqlite", bound: .atMost(1.5),
                unit: "x"
            ),
            Target(
                label: "cold latest over SQLite's", key: "client_latest_over_sqlite", bound: .none, unit: "x"),
            Target(
                label: "10,000 pulled games over SQLite's", key: "client_pulled_over_sqlite", bound: .none, unit: "x"),
            Target(
                label: "memory that short sessions leave, last third", key: "soak_rss_growth_plain",
                bound: .atMost(1_024),
                unit: "KiB", scale: 1.0 / 1_024),
            Target(
                label: "the same over TLS", key: "soak_rss_growth_tls", bound: .atMost(1_024), unit: "KiB",
                scale: 1.0 / 1_024),
            Target(
                label: "memory of a connection in a crowd", key: "crowd_rss_bytes_per_connection", bound: .atMost(3),
                unit: "KiB", scale: 1.0 / 1_024),
            Target(
                label: "ping in a crowd over alone, p99", key: "crowd_ping_p99_over_alone", bound: .atMost(3), unit: "x"
            ),
            Target(
                label: "push in a crowd over alone, p99", key: "crowd_push_p99_over_alone", bound: .atMost(3), unit: "x"
            ),
        ]
        + Flood.allCases.flatMap { flood in
            ["ping", "push"].map { command in
                Target(
                    label: "\(command) beside \(flood.rawValue) over quiet, p99",
                    key: "flood_\(flood.key)_\(command)_p99_over_quiet", bound: .atMost(3), unit: "x")
            }
        }

    private static let facts: [(label: String, key: String, unit: String, scale: Double)] = [
        ("pushes/s, 1 connection", "push_1_per_s", "/s", 1),
        ("pushes/s, 16 connections", "push_16_per_s", "/s", 1),
        ("pushes/s, 64 connections", "push_64_per_s", "/s", 1),
        ("pushes/s, 256 connections", "push_256_per_s", "/s", 1),
        ("pushes/s, 512 connections", "push_512_per_s", "/s", 1),
        ("push reply at 512, p50", "push_512_p50_ms", "ms", 1),
        ("push reply at 512, p99", "push_512_p99_ms", "ms", 1),
        ("single, rows/s", "single_per_s", "/s", 1),
        ("batch, rows/s", "batch_per_s", "/s", 1),
        ("CPU of a push: daemon", "daemon_cpu_ms_per_1000", "µs", 1),
        ("CPU of a push: PostgreSQL", "postgres_cpu_ms_per_1000", "µs", 1),
        ("CPU of a push: generator (not counted)", "generator_cpu_ms_per_1000", "µs", 1),
        ("CPU of a row: single", "single_cpu_ms_per_1000", "µs", 1),
        ("CPU of a row: batch", "batch_cpu_ms_per_1000", "µs", 1),
        ("pushes/s over TLS, 64 connections", "push_64_tls_per_s", "/s", 1),
        ("pushes/s over plain TCP beside it", "push_64_plain_per_s", "/s", 1),
        ("CPU of a push over TLS: daemon", "push_64_tls_daemon_cpu_ms_per_1000", "µs", 1),
        ("CPU of a push over plain TCP: daemon", "push_64_plain_daemon_cpu_ms_per_1000", "µs", 1),
        ("pulls of 20 games, daemon", "pull_per_s", "/s", 1),
        ("pulls of 20 games, prepared SELECT", "database_pull_per_s", "/s", 1),
        ("notice, idle, p50", "notice_p50_ms", "ms", 1),
        ("notice, 64 writers, p50", "notice_64_p50_ms", "ms", 1),
        ("notice, 64 writers, p99", "notice_64_p99_ms", "ms", 1),
        ("versions stored: few", "push_cost_few_versions", "", 1),
        ("versions stored: many", "push_cost_many_versions", "", 1),
        ("save on the device, p50", "client_save_p50_us", "µs", 1),
        ("save on the device, p99", "client_save_p99_us", "µs", 1),
        ("the same bytes by SQLite, p50", "sqlite_upsert_p50_us", "µs", 1),
        ("the same bytes by SQLite, p99", "sqlite_upsert_p99_us", "µs", 1),
        ("open and latest, cold", "client_latest_cold_us", "µs", 1),
        ("the same by SQLite", "sqlite_latest_cold_us", "µs", 1),
        ("10,000 pulled games, one observer", "client_pulled_10k_ms", "ms", 1),
        ("the same by SQLite, nobody told", "sqlite_pulled_10k_ms", "ms", 1),
        ("ping in a crowd, p99", "crowd_ping_p99_ms", "ms", 1),
        ("push in a crowd, p99", "crowd_push_p99_ms", "ms", 1),
        ("ping beside garbage, quiet, p99", "flood_garbage_ping_quiet_p99_ms", "ms", 1),
        ("ping beside garbage, p99", "flood_garbage_ping_p99_ms", "ms", 1),
        ("push beside garbage, quiet, p99", "flood_garbage_push_quiet_p99_ms", "ms", 1),
        ("push beside garbage, p99", "flood_garbage_push_p99_ms", "ms", 1),
        ("the machine: 8 KB forced to its disk", "forced_write_us", "µs", 1),
        ("the machine: load before, of others", "load_before", "", 1),
    ]

    /// Label, value, remark; nil for what was not measured.
    private typealias Row = (label: String, value: String, remark: String)

    private func row(of target: Target) -> Row? {
        guard var row = row(target.label, target.key, target.unit, scale: target.scale),
            let value = figures[target.key]?.median
        else { return nil }
        let shown = value * target.scale
        switch target.bound {
        case .none: row.remark = Self.noBound + row.remark
        case .atLeast(let bound): row.remark = Self.verdict("at least", bound, shown >= bound) + row.remark
        case .atMost(let bound): row.remark = Self.verdict("at most", bound, shown <= bound) + row.remark
        }
        return row
    }

    private func row(_ label: String, _ key: String, _ unit: String, scale: Double) -> Row? {
        guard let samples = figures[key] else { return nil }
        func show(_ value: Double) -> String {
            let value = value * scale
            return abs(value) >= 1_000
                ? grouped(value) : fixed(value, digits: abs(value) >= 100 ? 0 : abs(value) >= 10 ? 1 : 2)
        }
        let spread = samples.values.count > 1 ? "(\(show(samples.min))–\(show(samples.max)))" : ""
        return (label, "\(show(samples.median)) \(unit)", spread)
    }

    private static func verdict(_ word: String, _ bound: Double, _ isMet: Bool) -> String {
        let text = "\(word) \(short(bound))"
        return text + String(repeating: " ", count: max(0, 13 - text.count)) + (isMet ? "pass  " : "MISS  ")
    }

    private static let noBound = "no target          "

    private static func short(_ value: Double) -> String { fixed(value, digits: value == value.rounded() ? 0 : 1) }

    private func rows(_ rows: [Row?]) -> [String] {
        let rows = rows.compactMap { $0 }
        let width = rows.map { $0.label.count }.max() ?? 0
        let valueWidth = rows.map { $0.value.count }.max() ?? 0
        return rows.map { row in
            let label = row.label + String(repeating: " ", count: width - row.label.count)
            let value = String(repeating: " ", count: valueWidth - row.value.count) + row.value
            let line = "  \(label)  \(value)  \(row.remark)"
            return String(line[..<(line.lastIndex { $0 != " " }.map { line.index(after: $0) } ?? line.endIndex)])
        }
    }
}
