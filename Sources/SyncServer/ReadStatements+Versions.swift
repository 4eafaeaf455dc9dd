import Postgres

/// What the reader asks about versions of all games, and about devices.
extension ReadStatements {
    /// Versions later than `$2`, the oldest first: at most `$3` of them, with at most `$4` bytes of states, but one at least;
    /// their states where `$5` says so. Columns as in ``VersionsColumn``; a single row with NULLs where there is nothing.
    ///
    /// Reads one version more than the page has, by its key, and no others.
    static let versionsSince = page("versions-since", isAscending: true, onlyConflicts: false)
    /// The same before `$2`, the newest first.
    static let versionsBefore = page("versions-before", isAscending: false, onlyConflicts: false)
    /// Versions that met a rival, later than `$2`. An index holds only those, in the order of their revisions.
    static let conflictsSince = page("conflicts-since", isAscending: true, onlyConflicts: true)
    /// The same before `$2`, the newest first.
    static let conflictsBefore = page("conflicts-before", isAscending: false, onlyConflicts: true)

    private static let columns = """
        v.revision, v.saved, v.stamp, v.received, v.device_id, v.schema, v.outcome, v.base, v.rival, v.size,
               EXISTS (SELECT FROM games AS g
                        WHERE g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id
                          AND g.head_revision = v.revision),
               v.state IS NULL, v.collection, v.game_id
        """

    private static func page(_ name: String, isAscending: Bool, onlyConflicts: Bool) -> Statement {
        let (comparison, order) = isAscending ? (">", "ASC") : ("<", "DESC")
        let filter = onlyConflicts ? " AND v.outcome IN ('won', 'lost')" : ""
        return Statement(
            name,
            """
            SELECT p.last_revision, p.purged_before, l.more, \(columns),
                   CASE WHEN $5 THEN v.state END
              FROM players AS p
              LEFT JOIN LATERAL (
                   SELECT w.revision, w.place,
                          w.next_bytes IS NOT NULL AND (w.place = $3 OR w.bytes + w.next_bytes > $4) AS more
                     FROM (SELECT o.revision, row_number() OVER o AS place, sum(o.bytes) OVER o AS bytes,
                                  lead(o.bytes) OVER o AS next_bytes
                             FROM (SELECT v.revision, CASE WHEN $5 THEN v.size ELSE 0 END AS bytes
                                     FROM game_versions AS v
                                    WHERE v.player_id = p.player_id AND v.revision \(comparison) $2\(filter)
                                    ORDER BY v.revision \(order) LIMIT $3 + 1) AS o
                           WINDOW o AS (ORDER BY o.revision \(order))) AS w
                    WHERE w.place = 1 OR (w.place <= $3 AND w.bytes <= $4)) AS l ON true
              LEFT JOIN game_versions AS v ON v.player_id = p.player_id AND v.revision = l.revision
             WHERE p.player_id = $1
             ORDER BY l.place
            """, parameterTypes: [.uuid, .int8, .int8, .int8, .bool])
    }

    /// One version, of whatever game.
    static let anyVersion = Statement(
        "version",
        """
        SELECT NULL::bigint, NULL::bigint, false, \(columns), CASE WHEN $3 THEN v.state END
          FROM game_versions AS v
         WHERE v.player_id = $1 AND v.revision = $2
        """, parameterTypes: [.uuid, .int8, .bool])

    /// The player's devices behind `$2`, in the order of their ids, at most `$3`; when each was last heard of and how far its
    /// clock is ahead, as the player's last 1,000 versions tell.
    static let devices = Statement(
        "devices",
        """
        SELECT d.device_id, d.name, d.created, d.revoked, s.seen, (extract(epoch FROM s.ahead) * 1000000)::bigint
          FROM (SELECT d.device_id, d.name, d.created, d.revoked FROM devices AS d
                 WHERE d.player_id = $1 AND d.device_id > $2
                 ORDER BY d.device_id LIMIT $3) AS d
          LEFT JOIN (SELECT r.device_id, max(r.received) AS seen, max(r.saved - r.received) AS ahead
                       FROM (SELECT v.device_id, v.saved, v.received FROM game_versions AS v
                              WHERE v.player_id = $1 ORDER BY v.revision DESC LIMIT 1000) AS r
                      GROUP BY r.device_id) AS s ON s.device_id = d.device_id
         ORDER BY d.device_id
        """, parameterTypes: [.uuid, .uuid, .int8])
}

/// The columns of a page of versions: the player's own, then those of ``HistoryColumn``, then the game and the state.
enum VersionsColumn {
    static let last = 0, purgedBefore = 1, more = 2, shift = 3
    static let collection = shift + 12, game = shift + 13, state = shift + 14
}
