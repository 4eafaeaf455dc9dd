/// Which files leave nothing in their session that `DISCARD ALL` would not take away.
///
/// Told by what is known to be harmless: a statement that is not recognised is not plain.
extension SQLScript {
    /// Functions of the server whose effect outlives `DISCARD ALL` (a custom setting is there for ever, if only as an empty
    /// text; the seed of `random()` stays), and those that run SQL which they are given as text.
    static let lastingFunctions = [
        "set_config", "setseed", "query_to_xml", "query_to_xmlschema", "query_to_xml_and_xmlschema", "cursor_to_xml",
        "ts_stat",
        "ts_rewrite", "pg_reload_conf",
    ]

    private static let lastingWords = Set(lastingFunctions + ["temp", "temporary", "pg_temp"])

    /// What a plain statement begins with.
    private static let plainBeginnings: Set<String> = {
        let objects = [
            "TABLE", "INDEX", "UNIQUE INDEX", "VIEW", "OR REPLACE VIEW", "MATERIALIZED VIEW", "SEQUENCE", "TYPE",
            "DOMAIN", "SCHEMA",
            "TRIGGER", "OR REPLACE TRIGGER", "POLICY", "STATISTICS", "UNLOGGED TABLE",
        ]
        let definitions = ["CREATE", "ALTER", "DROP"].flatMap { verb in objects.map { "\(verb) \($0)" } }
        return Set(
            definitions + ["COMMENT ON", "INSERT INTO", "UPDATE", "DELETE FROM", "TRUNCATE", "GRANT", "REVOKE", "LOCK"]
                + ["REFRESH MATERIALIZED VIEW", "VALUES"])
    }()

    /// Whether every statement is known to leave nothing. `bytes` is the text that was cut.
    func isPlain(_ bytes: [UInt8]) -> Bool {
        faults.isEmpty && statements.allSatisfy { Self.isPlain($0, bytes) } && !Self.mentionsLasting(bytes)
    }

    private static func isPlain(_ statement: SQLStatement, _ bytes: [UInt8]) -> Bool {
        let words = statement.words
        if words.first == "SELECT" { return !bytes[statement.range].contains(UInt8(ascii: "(")) }
        return (1...4).contains { plainBeginnings.contains(words.prefix($0).joined(separator: " ")) }
    }

    /// Whether such a name stands anywhere in the text, in a comment too; or one whose letters are written as numbers.
    private static func mentionsLasting(_ bytes: [UInt8]) -> Bool {
        var word: [UInt8] = []
        for byte in bytes + [0] {
            let letter = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(byte) ? byte | 0x20 : byte
            switch letter {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "_"):
                word.append(letter)
            case UInt8(ascii: "&") where word == [UInt8(ascii: "u")]:
                return true
            default:
                if !word.isEmpty, lastingWords.contains(String(decoding: word, as: UTF8.self)) { return true }
                word.removeAll(keepingCapacity: true)
            }
        }
        return false
    }
}
