-- 0011_retention.sql: which old versions may go, in one place. `ieumd prune` calls it. Documentation/history.md tells it to people.
-- Locks: none (a new function). Older daemons: not affected.
--
-- One call looks at one page of versions in the order of the table's key, in one short transaction, and says where it
-- stopped. It keeps no state: a run that was cut off is begun again, and finds what is left.
--
-- What it picks in its first statement stays pickable, whatever is pushed meanwhile: a version that is not the head never
-- becomes it again, and a new conflict is one with the head. It locks the players, one after the other in the order of
-- their ids, as push() does, and deletes in a later statement.

CREATE FUNCTION prune_versions(
    older_than timestamptz, keep integer, after_player uuid, after_revision bigint, page integer, dry_run boolean)
RETURNS TABLE (
    next_player uuid, next_revision bigint, seen bigint, deleted bigint, octets bigint, tombstones bigint, losers bigint,
    players bigint, first_player uuid, last_player uuid)
LANGUAGE plpgsql
SET plan_cache_mode = force_generic_plan   -- every look-up is by key, whatever the statistics say
SET enable_seqscan = off
SET enable_bitmapscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
SET jit = off
AS $prune$
#variable_conflict use_column
DECLARE
    picked_players   uuid[];
    picked_revisions bigint[];
    lock record;
BEGIN
    IF older_than IS NULL OR coalesce(keep, -1) < 0 OR coalesce(page, 0) < 1 THEN
        RAISE EXCEPTION 'prune_versions needs a moment, keep of 0 or more, and a page of 1 or more'
            USING ERRCODE = 'invalid_parameter_value';
    END IF;

    -- 1. Look at a page, and pick.
    SELECT count(*), (array_agg(v.player_id ORDER BY v.player_id DESC, v.revision DESC))[1],
           (array_agg(v.revision ORDER BY v.player_id DESC, v.revision DESC))[1],
           array_agg(v.player_id ORDER BY v.player_id, v.revision) FILTER (WHERE v.may_go),
           array_agg(v.revision ORDER BY v.player_id, v.revision) FILTER (WHERE v.may_go)
      INTO seen, next_player, next_revision, picked_players, picked_revisions
      FROM (SELECT v.player_id, v.revision,
                   v.received < older_than
                   AND NOT EXISTS (   -- the head
                       SELECT FROM games AS g
                        WHERE g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id
                          AND g.head_revision = v.revision)
                   AND NOT EXISTS (   -- a side of a conflict that is young, though the version itself is old
                       SELECT FROM game_versions AS c
                        WHERE c.player_id = v.player_id AND c.rival = v.revision AND c.outcome IN ('won', 'lost')
                          AND c.received >= older_than)
                   AND (keep = 0 OR keep <= (   -- the game's newest; those saved last are looked at first
                       SELECT count(*)
                         FROM (SELECT FROM game_versions AS n
                                WHERE n.player_id = v.player_id AND n.game_id = v.game_id AND n.collection = v.collection
                                  AND n.revision > v.revision
                                ORDER BY n.saved DESC LIMIT keep) AS n)) AS may_go
              FROM (SELECT v.player_id, v.revision, v.received, v.collection, v.game_id
                      FROM game_versions AS v
                     WHERE (v.player_id, v.revision) > (after_player, after_revision)
                     ORDER BY v.player_id, v.revision LIMIT page
                    OFFSET 0) AS v
            OFFSET 0) AS v;

    IF picked_players IS NULL OR dry_run THEN
        SELECT count(*), coalesce(sum(v.size), 0), count(*) FILTER (WHERE v.state IS NULL),
               count(*) FILTER (WHERE v.outcome = 'lost' OR EXISTS (
                   SELECT FROM game_versions AS c
                    WHERE c.player_id = v.player_id AND c.rival = v.revision AND c.outcome = 'won')),
               count(DISTINCT v.player_id), (array_agg(v.player_id ORDER BY v.player_id))[1],
               (array_agg(v.player_id ORDER BY v.player_id DESC))[1]
          INTO deleted, octets, tombstones, losers, players, first_player, last_player
          FROM unnest(picked_players, picked_revisions) AS i (player_id, revision)
          JOIN game_versions AS v ON v.player_id = i.player_id AND v.revision = i.revision;
        RETURN NEXT;
        RETURN;
    END IF;

    -- 2. Mark, which locks: below the mark something may be missing.
    FOR lock IN
        SELECT i.player_id, max(i.revision) + 1 AS mark
          FROM unnest(picked_players, picked_revisions) AS i (player_id, revision)
         GROUP BY i.player_id ORDER BY i.player_id
    LOOP
        UPDATE players AS p SET purged_before = greatest(p.purged_before, lock.mark) WHERE p.player_id = lock.player_id;
    END LOOP;

    -- 3. Delete. Another run may have been quicker.
    WITH gone AS (
        DELETE FROM game_versions AS v
         USING (SELECT player_id, revision FROM unnest(picked_players, picked_revisions) AS i (player_id, revision)) AS i
         WHERE v.player_id = i.player_id AND v.revision = i.revision
        RETURNING v.player_id, v.size, v.state IS NULL AS is_tombstone,
                  v.outcome = 'lost' OR EXISTS (
                      SELECT FROM game_versions AS c
                       WHERE c.player_id = v.player_id AND c.rival = v.revision AND c.outcome = 'won') AS is_loser)
    SELECT count(*), coalesce(sum(g.size), 0), count(*) FILTER (WHERE g.is_tombstone), count(*) FILTER (WHERE g.is_loser),
           count(DISTINCT g.player_id), (array_agg(g.player_id ORDER BY g.player_id))[1],
           (array_agg(g.player_id ORDER BY g.player_id DESC))[1]
      INTO deleted, octets, tombstones, losers, players, first_player, last_player
      FROM gone AS g;
    RETURN NEXT;
END
$prune$;
COMMENT ON FUNCTION prune_versions(timestamptz, integer, uuid, bigint, integer, boolean) IS
    'Removes, from one page of versions behind a key, those that arrived before a moment, except heads, both sides of conflicts that are younger, and the newest versions of each game (keep of them). Marks players.purged_before. Returns the last key it looked at (NULL: it is at the end) and what it removed; dry_run removes nothing. seen below page: there was no more.';
REVOKE EXECUTE ON FUNCTION prune_versions(timestamptz, integer, uuid, bigint, integer, boolean) FROM PUBLIC;
