import Postgres

/// What the reader asks PostgreSQL. Every statement names its player; each sees one snapshot.
enum ReadStatements {
    /// The columns of a version with its state, in the order of ``VersionColumn``.
    private static let version =
        "revision, saved, stamp, device_id, schema, outcome, base, rival, collection, game_id, state"

    /// A page of a pull: heads later than `$2` in the order of their revisions, at most `$3` of them with `$4` bytes of
    /// states, but one at least. Before them in each row: the player's last revision, and whether the row is the last of
    /// the page with more behind it. A single row with NULLs where there is nothing.
    ///
    /// Walks the player's versions after the cursor: few, where the cursor is recent. `OFFSET 0` keeps the planner from
    /// beginning with the games.
    static let pullRecent = Statement(
        "pull-recent",
        page(
            rows: """
                game_versions v CROSS JOIN LATERAL (
                       SELECT FROM games g
                        WHERE g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id
                          AND g.head_revision = v.revision
                       OFFSET 0) AS g
                """),
        parameterTypes: [.uuid, .int8, .int8, .int8])

    /// The same page, walking the player's games: few, where all versions are many.
    static let pullAll = Statement(
        "pull-all",
        page(
            rows: """
                games g CROSS JOIN LATERAL (
                       SELECT v.revision, v.size FROM game_versions v
                        WHERE v.player_id = g.player_id AND v.revision = g.head_revision
                       OFFSET 0) AS v
                """),
        parameterTypes: [.uuid, .int8, .int8, .int8])

    private static func page(rows: String) -> String {
        """
        SELECT p.last_revision, h.more, h.\(version.split(separator: " ").joined(separator: " h."))
          FROM players p
          LEFT JOIN LATERAL (
               SELECT l.next IS NOT NULL AND (l.place = $3 OR l.bytes_with_next > $4) AS more, v.*
                 FROM (SELECT v.revision, row_number() OVER w AS place,
                              sum(v.size) OVER w AS bytes, lead(v.revision) OVER w AS next,
                              sum(v.size) OVER w + lead(v.size) OVER w AS bytes_with_next
                         FROM \(rows)
                        WHERE player_id = p.player_id AND v.revision > $2
                       WINDOW w AS (ORDER BY v.revision)
                        ORDER BY v.revision LIMIT $3) AS l
                 JOIN game_versions v ON v.player_id = p.player_id AND v.revision = l.revision
                WHERE l.place = 1 OR l.bytes <= $4
                ORDER BY v.revision) AS h ON true
         WHERE p.player_id = $1
         ORDER BY h.revision
        """
    }

    /// A game's head.
    static let head = Statement(
        "get-head",
        """
        SELECT v.\(version.split(separator: " ").joined(separator: " v."))
          FROM games g JOIN game_versions v ON v.player_id = g.player_id AND v.revision = g.head_revision
         WHERE g.player_id = $1 AND g.collection = $2 AND g.game_id = $3
        """, parameterTypes: [.uuid, .text, .text])

    /// One version of a game.
    static let one = Statement(
        "get-version",
        """
        SELECT \(version) FROM game_versions
         WHERE player_id = $1 AND collection = $2 AND game_id = $3 AND revision = $4
        """, parameterTypes: [.uuid, .text, .text, .int8])

    /// A game's versions before `$4`, newest first, at most `$5`. A row with a NULL revision where the game exists and
    /// has no such version; no row where there is no such game.
    static let history = Statement(
        "history",
        """
        SELECT v.revision, v.saved, v.stamp, v.received, v.device_id, v.schema, v.outcome, v.base, v.rival, v.size,
               v.revision = g.head_revision, v.state IS NULL
          FROM games g
          LEFT JOIN LATERAL (
               SELECT * FROM game_versions v
                WHERE v.player_id = g.player_id AND v.collection = g.collection AND v.game_id = g.game_id
                  AND v.revision < $4
                ORDER BY v.revision DESC LIMIT $5) AS v ON true
         WHERE g.player_id = $1 AND g.collection = $2 AND g.game_id = $3
         ORDER BY v.revision DESC
        """, parameterTypes: [.uuid, .text, .text, .int8, .int8])

    /// The last revision of a player.
    static let lastRevision = Statement(
        "last-revision", "SELECT last_revision FROM players WHERE player_id = $1", parameterTypes: [.uuid])
}

/// The columns of a version with its state.
enum VersionColumn {
    static let revision = 0, saved = 1, stamp = 2, device = 3, schema = 4, outcome = 5, base = 6, rival = 7
    static let collection = 8, game = 9, state = 10
}

/// The columns of a history's row.
enum HistoryColumn {
    static let revision = 0, saved = 1, stamp = 2, received = 3, device = 4, schema = 5, outcome = 6, base = 7
    static let rival = 8, size = 9, isHead = 10, isTombstone = 11
}
