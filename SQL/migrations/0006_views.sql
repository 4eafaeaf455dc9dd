-- 0006_views.sql: the everyday questions as views, for psql.
-- Locks: none (new views). Older daemons: not affected.

CREATE VIEW current_games AS
SELECT g.player_id, g.collection, g.game_id, g.head_revision AS revision, d.name AS device, v.saved, v.received,
       v.schema, v.size, v.state
  FROM games AS g
  JOIN game_versions AS v ON v.player_id = g.player_id AND v.revision = g.head_revision
  LEFT JOIN devices AS d ON d.player_id = v.player_id AND d.device_id = v.device_id
 WHERE v.state IS NOT NULL;
COMMENT ON VIEW current_games IS 'Every game as it is now, without the deleted ones: what a device that pulls would get.';
COMMENT ON COLUMN current_games.player_id IS 'Whose game it is.';
COMMENT ON COLUMN current_games.collection IS 'The type of the game.';
COMMENT ON COLUMN current_games.game_id IS 'The game, unique in its player''s collection.';
COMMENT ON COLUMN current_games.revision IS 'The revision of its head.';
COMMENT ON COLUMN current_games.device IS 'Name of the device that pushed the head.';
COMMENT ON COLUMN current_games.saved IS 'When the head was saved, by that device''s clock.';
COMMENT ON COLUMN current_games.received IS 'When it arrived, by the server''s clock.';
COMMENT ON COLUMN current_games.schema IS 'The app''s schema version of the state.';
COMMENT ON COLUMN current_games.size IS 'Octets of the state.';
COMMENT ON COLUMN current_games.state IS 'The game itself. Ask it with state->>''key''.';

CREATE VIEW history AS
SELECT v.player_id, v.revision, v.collection, v.game_id, d.name AS device, v.outcome, v.saved, v.stamp, v.received,
       v.base, v.rival, v.revision = g.head_revision AS is_head, v.state IS NULL AS is_tombstone, v.schema, v.size,
       v.state
  FROM game_versions AS v
  LEFT JOIN devices AS d ON d.player_id = v.player_id AND d.device_id = v.device_id
  LEFT JOIN games AS g ON g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id;
COMMENT ON VIEW history IS 'Every accepted version, with the name of its device. Sort by revision within a player.';
COMMENT ON COLUMN history.player_id IS 'Whose game it is.';
COMMENT ON COLUMN history.revision IS 'The version''s number in its player''s feed.';
COMMENT ON COLUMN history.collection IS 'The type of the game.';
COMMENT ON COLUMN history.game_id IS 'The game, unique in its player''s collection.';
COMMENT ON COLUMN history.device IS 'Name of the device that pushed it.';
COMMENT ON COLUMN history.outcome IS 'created, advanced, won or lost.';
COMMENT ON COLUMN history.saved IS 'When it was saved, by the device''s clock.';
COMMENT ON COLUMN history.stamp IS 'What conflicts compare: saved, corrected by what the server knows.';
COMMENT ON COLUMN history.received IS 'When it arrived, by the server''s clock.';
COMMENT ON COLUMN history.base IS 'The revision that the device had last seen, as it said.';
COMMENT ON COLUMN history.rival IS 'For won and lost: the revision it met.';
COMMENT ON COLUMN history.is_head IS 'Whether it is the game as it is now.';
COMMENT ON COLUMN history.is_tombstone IS 'Whether this version deleted the game.';
COMMENT ON COLUMN history.schema IS 'The app''s schema version of the state.';
COMMENT ON COLUMN history.size IS 'Octets of the state; 0 for a tombstone.';
COMMENT ON COLUMN history.state IS 'The state as pushed; NULL for a tombstone.';

CREATE VIEW conflicts AS
SELECT v.player_id, v.collection, v.game_id, v.received AS met, v.outcome AS incoming,
       w.revision AS winner_revision, wd.name AS winner_device, w.saved AS winner_saved, w.stamp AS winner_stamp,
       w.state AS winner_state,
       CASE v.outcome WHEN 'lost' THEN v.revision ELSE v.rival END AS loser_revision, ld.name AS loser_device,
       l.saved AS loser_saved, l.stamp AS loser_stamp, l.state AS loser_state,
       g.head_revision
  FROM game_versions AS v
  LEFT JOIN game_versions AS w ON w.player_id = v.player_id
       AND w.revision = CASE v.outcome WHEN 'won' THEN v.revision ELSE v.rival END
  LEFT JOIN game_versions AS l ON l.player_id = v.player_id
       AND l.revision = CASE v.outcome WHEN 'lost' THEN v.revision ELSE v.rival END
  LEFT JOIN devices AS wd ON wd.player_id = w.player_id AND wd.device_id = w.device_id
  LEFT JOIN devices AS ld ON ld.player_id = l.player_id AND ld.device_id = l.device_id
  LEFT JOIN games AS g ON g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id
 WHERE v.outcome IN ('won', 'lost');
COMMENT ON VIEW conflicts IS
    'Every meeting of two versions of a game of which neither device had seen the other''s: who won, who lost. The losers are all still here, until retention prunes them.';
COMMENT ON COLUMN conflicts.player_id IS 'Whose game it is.';
COMMENT ON COLUMN conflicts.collection IS 'The type of the game.';
COMMENT ON COLUMN conflicts.game_id IS 'The game, unique in its player''s collection.';
COMMENT ON COLUMN conflicts.met IS 'When the second of the two arrived, by the server''s clock.';
COMMENT ON COLUMN conflicts.incoming IS 'How the second of the two fared: won (it overtook the head) or lost (the head stayed).';
COMMENT ON COLUMN conflicts.winner_revision IS 'The version that won.';
COMMENT ON COLUMN conflicts.winner_device IS 'Name of the device that pushed the winner.';
COMMENT ON COLUMN conflicts.winner_saved IS 'When the winner was saved, by its device''s clock.';
COMMENT ON COLUMN conflicts.winner_stamp IS 'The winner''s stamp, which was compared.';
COMMENT ON COLUMN conflicts.winner_state IS 'The winner''s state; NULL if it deleted the game, or was pruned.';
COMMENT ON COLUMN conflicts.loser_revision IS 'The version that lost. Restore it by pushing its state again with the head''s revision as base.';
COMMENT ON COLUMN conflicts.loser_device IS 'Name of the device that pushed the loser.';
COMMENT ON COLUMN conflicts.loser_saved IS 'When the loser was saved, by its device''s clock.';
COMMENT ON COLUMN conflicts.loser_stamp IS 'The loser''s stamp, which was compared.';
COMMENT ON COLUMN conflicts.loser_state IS 'The loser''s state; NULL if it deleted the game, or was pruned.';
COMMENT ON COLUMN conflicts.head_revision IS 'The game''s head today, which may be a later version than the winner.';

CREATE VIEW daily_activity AS
SELECT (v.received AT TIME ZONE 'UTC')::date AS day, v.collection,
       count(*) AS pushes,
       count(DISTINCT v.player_id) AS players,
       count(DISTINCT (v.player_id, v.device_id)) AS devices,
       count(DISTINCT (v.player_id, v.game_id)) AS games,
       count(*) FILTER (WHERE v.outcome = 'created') AS created,
       count(*) FILTER (WHERE v.outcome = 'won') AS won,
       count(*) FILTER (WHERE v.outcome = 'lost') AS lost,
       count(*) FILTER (WHERE v.state IS NULL) AS deleted,
       sum(v.size) AS octets
  FROM game_versions AS v
 GROUP BY 1, 2;
COMMENT ON VIEW daily_activity IS 'Pushes by day and collection. Reads every version: on a big database add WHERE day …, or keep a copy.';
COMMENT ON COLUMN daily_activity.day IS 'The day of arrival, in UTC.';
COMMENT ON COLUMN daily_activity.collection IS 'The type of the games.';
COMMENT ON COLUMN daily_activity.pushes IS 'Accepted versions.';
COMMENT ON COLUMN daily_activity.players IS 'Players that pushed.';
COMMENT ON COLUMN daily_activity.devices IS 'Devices that pushed.';
COMMENT ON COLUMN daily_activity.games IS 'Games that were pushed.';
COMMENT ON COLUMN daily_activity.created IS 'New games.';
COMMENT ON COLUMN daily_activity.won IS 'Conflicts in which the incoming version won.';
COMMENT ON COLUMN daily_activity.lost IS 'Conflicts in which the incoming version lost.';
COMMENT ON COLUMN daily_activity.deleted IS 'Tombstones.';
COMMENT ON COLUMN daily_activity.octets IS 'Octets of state that arrived.';
