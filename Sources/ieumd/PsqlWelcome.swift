import Postgres

/// What `ieumd psql` says before psql asks for the first command, and how psql then asks.
enum PsqlWelcome {
    /// Settings of psql. A ~/.psqlrc is read later, and wins.
    ///
    /// The prompt names role, host and database, and shows an open transaction by `*`; NULL is told from an empty text.
    static let settings = [
        "--set=PROMPT1=ieum %n@%m/%/%R%x%# ", "--set=PROMPT2=ieum %n@%m/%/%R%x%# ", "--pset=null=∅",
    ]

    /// The views that one may read, with what they are for. Empty where the database cannot be asked: psql will say why.
    static func text(_ conninfo: String) -> String {
        guard let connection = try? BlockingConnection(conninfo, applicationName: "ieumd psql"),
            let views = try? connection.query(
                """
                SELECT c.relname::text, coalesce(obj_description(c.oid, 'pg_class'), '')
                  FROM pg_class AS c
                 WHERE c.relkind = 'v' AND pg_table_is_visible(c.oid) AND has_table_privilege(c.oid, 'SELECT')
                   AND c.relnamespace NOT IN ('pg_catalog'::regnamespace, 'information_schema'::regnamespace)
                 ORDER BY c.relname
                """)
        else { return "" }
        let lines = (0..<views.rowCount).compactMap { row -> (name: String, about: String)? in
            guard let name = try? views.text(row, 0), let about = try? views.text(row, 1) else { return nil }
            return (name, about)
        }
        guard !lines.isEmpty else { return "There are no views here that you may read. Is the database migrated?\n" }
        let width = lines.map(\.name.count).max() ?? 0
        let list = lines.map { line in
            "  " + line.name + String(repeating: " ", count: width - line.name.count + 2)
                + beginning(of: line.about, characters: max(20, 76 - width)) + "\n"
        }
        return "Views:\n" + list.joined()
            + "\\d+ NAME explains one, column by column. TABLE NAME; shows it. Ready questions: \\i SQL/queries/….sql\n\n"
    }

    /// The first sentence, cut to fit a line.
    private static func beginning(of text: String, characters: Int) -> String {
        let end = text.firstIndex { ".:".contains($0) } ?? text.endIndex
        let sentence = text[..<end]
        return sentence.count <= characters ? String(sentence) : sentence.prefix(characters - 1) + "…"
    }
}
