/// PostgreSQL's settings for a private cluster: what `postgresql.conf` would say.
///
/// Where the cluster listens is not to be set: it is always and only the Unix socket of its folder.
public struct ClusterSettings: Sendable {
    /// Names and values as in `postgresql.conf`, unquoted.
    public var values: [String: String]
    /// Whether a fresh cluster is written to the disk before its first start.
    var syncsInitialData: Bool

    /// Keeps what was acknowledged: PostgreSQL's own defaults of fsync and full-page writes stay, and sizes are modest,
    /// for a machine that does something else too. An operator's `ALTER SYSTEM` has the last word over these.
    public static let durable = ClusterSettings(
        values: [
            "shared_buffers": "128MB",
            "max_connections": "100",
            "max_wal_size": "2GB",
            "wal_compression": "on",
            "jit": "off",
            "log_line_prefix": "%m [%p] ",
            "timezone": "UTC",
            "log_timezone": "UTC",
        ], syncsInitialData: true)

    /// For tests ONLY, and only for those that do not test durability: nothing is forced to the disk, so a crash of
    /// the machine may lose everything. Transactions behave as ever, and `synchronous_commit` stays on.
    public static let throwaway = durable.with([
        "fsync": "off", "full_page_writes": "off", "shared_buffers": "64MB", "max_connections": "800",
        "max_wal_size": "512MB",
    ]).withoutInitialSync()

    /// The settings with some changed or added.
    public func with(_ changes: [String: String]) -> ClusterSettings {
        var copy = self
        copy.values.merge(changes) { $1 }
        return copy
    }

    private func withoutInitialSync() -> ClusterSettings {
        var copy = self
        copy.syncsInitialData = false
        return copy
    }

    /// The configuration file: the cluster's own file first, and then these.
    func file(including dataFile: String) -> String {
        var lines = [
            "# Written anew at every start. For settings of your own use ALTER SYSTEM: it has the last word.",
            "include \(Self.quote(dataFile))",
        ]
        for (name, value) in values.sorted(by: { $0.key < $1.key }) {
            lines.append("\(name) = \(Self.quote(value))")
        }
        return lines.joined(separator: "\n") + "\n"
    }

    private static func quote(_ value: String) -> String {
        "'\(String(value.flatMap { $0 == "'" ? ["'", "'"] : $0 == "\\" ? ["\\", "\\"] : [$0] }))'"
    }
}
