import CLibPQ
import Glibc

/// Where a database is and how to connect to it: a connection string of libpq's with our defaults around it.
///
/// The string may be a URI or `keyword=value` pairs; what it leaves out comes from the `PG…` environment variables and
/// then from defaults. Ours differ from libpq's where a silent network would otherwise be noticed only after hours:
/// `connect_timeout` 10 s, TCP keepalives after 15 s, every 5 s, 3 times, and `tcp_user_timeout` 30 s. The string may
/// override these. `client_encoding` is always UTF8: this module reads and writes nothing else.
/// Source: PostgreSQL, chapter "libpq", section "Parameter Key Words".
public struct ConnectionSettings: Sendable {
    /// The keywords in the order they apply, later ones first in rank.
    private var keywords: [(name: String, value: String)] = []

    /// Reads a connection string.
    ///
    /// - Parameters:
    ///   - conninfo: the string; empty means environment and defaults.
    ///   - applicationName: what `pg_stat_activity` shows, unless the string names another.
    ///   - sessionSettings: server settings that the session starts with, such as `lock_timeout` and `5s`; they win
    ///     over the string's own `options`.
    /// - Throws: kind `.protocol`, without a word of the string, which may hold a password.
    public init(
        _ conninfo: String, applicationName: String = "ieum", sessionSettings: KeyValuePairs<String, String> = [:]
    ) throws(DatabaseError) {
        keywords = [
            ("application_name", applicationName), ("connect_timeout", "10"), ("keepalives", "1"),
            ("keepalives_idle", "15"), ("keepalives_interval", "5"), ("keepalives_count", "3"),
            ("tcp_user_timeout", "30000"),
        ]
        for (name, value) in try Self.parse(conninfo) { self[name] = value }
        self["client_encoding"] = "UTF8"
        guard !sessionSettings.isEmpty else { return }
        let options = sessionSettings.map { "-c \($0.key)=\(Self.escapeOption($0.value))" }
        // Settings of our own take nothing away from those that libpq would have taken from the environment.
        let others = self["options"] ?? getenv("PGOPTIONS").map { String(cString: $0) } ?? ""
        self["options"] = ([others] + options).filter { !$0.isEmpty }.joined(separator: " ")
    }

    /// A keyword's value, or nil where libpq's own default or the environment decides.
    public subscript(keyword: String) -> String? {
        get { keywords.last { $0.name == keyword }?.value }
        set {
            keywords.removeAll { $0.name == keyword }
            if let newValue { keywords.append((keyword, newValue)) }
        }
    }

    /// The time in which a connection must stand, from `connect_timeout`; nil for none.
    public var connectTimeout: Duration? {
        // As libpq reads it: zero and less mean no limit, and one second counts as two.
        guard let seconds = self["connect_timeout"].flatMap({ Int32($0) }), seconds > 0 else { return nil }
        return .seconds(max(Int(seconds), 2))
    }

    /// The settings as one connection string. It holds the password if there is one.
    public var conninfo: String {
        keywords.map { "\($0.name)=\(Self.quote($0.value))" }.joined(separator: " ")
    }

    /// Quotes a value for a `keyword=value` connection string.
    public static func quote(_ value: String) -> String {
        "'\(String(value.flatMap { $0 == "'" || $0 == "\\" ? ["\\", $0] : [$0] }))'"
    }

    /// Lends the keywords and values as the two nil-terminated arrays that libpq takes.
    func withCArrays<Value>(
        _ body: (UnsafePointer<UnsafePointer<CChar>?>, UnsafePointer<UnsafePointer<CChar>?>) -> Value
    ) -> Value {
        withCStringArray(keywords.map(\.name)) { names in
            withCStringArray(keywords.map(\.value)) { values in body(names, values) }
        }
    }

    private static func parse(_ conninfo: String) throws(DatabaseError) -> [(String, String)] {
        // libpq's own message quotes the string, and with it a password perhaps.
        let refusal = DatabaseError(
            .protocol, "the connection string cannot be read",
            hint: "Write postgres://user@host:port/database or host=… port=… dbname=… user=….")
        guard !conninfo.utf8.contains(0) else { throw refusal }
        var message: UnsafeMutablePointer<CChar>?
        let options = PQconninfoParse(conninfo, &message)
        PQfreemem(message)
        guard let options else { throw refusal }
        defer { PQconninfoFree(options) }
        var found: [(String, String)] = []
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                found.append((String(cString: keyword), String(cString: value)))
            }
            option += 1
        }
        return found
    }

    /// Spaces and backslashes separate the server's options unless a backslash comes before them.
    private static func escapeOption(_ value: String) -> String {
        String(value.flatMap { $0 == " " || $0 == "\\" ? ["\\", $0] : [$0] })
    }
}

/// Lends texts as a nil-terminated array of C strings.
func withCStringArray<Value>(
    _ texts: [String], _ body: (UnsafePointer<UnsafePointer<CChar>?>) -> Value
) -> Value {
    var bytes: [CChar] = []
    var offsets: [Int] = []
    for text in texts {
        offsets.append(bytes.count)
        bytes.append(contentsOf: text.utf8CString)
    }
    let pointers = UnsafeMutablePointer<UnsafePointer<CChar>?>.allocate(capacity: texts.count + 1)
    defer { pointers.deallocate() }
    return bytes.withUnsafeBufferPointer { buffer in
        for (index, offset) in offsets.enumerated() {
            (pointers + index).initialize(to: buffer.baseAddress.map { $0 + offset })
        }
        (pointers + texts.count).initialize(to: nil)
        return body(pointers)
    }
}

extension ConnectionSettings: CustomStringConvertible, CustomDebugStringConvertible {
    /// Host, port, database and user; never a password.
    public var description: String {
        ["host", "hostaddr", "port", "dbname", "user"].compactMap { keyword in
            self[keyword].map { "\(keyword)=\($0)" }
        }.joined(separator: " ")
    }

    /// The same as the description, so that a debugger's print shows no password either.
    public var debugDescription: String { description }
}
