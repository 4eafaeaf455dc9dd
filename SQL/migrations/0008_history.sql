-- 0008_history.sql: what the history tells, as views; 한들's games as columns; what retention may remove; who may look.
-- Locks: the views history and conflicts, for a moment (columns are added at their end). Older daemons: not affected.
--
-- A state is what an app pushed, and may be anything. The functions that look inside take any JSON and never fail: what
-- does not fit is NULL, and a column says why.

-- 1. Looking into states

CREATE FUNCTION state_as_jsonb(state json) RETURNS jsonb
LANGUAGE plpgsql IMMUTABLE STRICT AS $convert$
BEGIN
    RETURN state::jsonb;
EXCEPTION WHEN OTHERS THEN
    RETURN NULL;
END
$convert$;
COMMENT ON FUNCTION state_as_jsonb(json) IS
    'A state as jsonb; NULL where PostgreSQL cannot convert it, which a daemon refuses to store but another program may have stored.';

CREATE FUNCTION differing_keys(one json, other json) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT AS $differing$
DECLARE
    one_object   jsonb := state_as_jsonb(one);
    other_object jsonb := state_as_jsonb(other);
BEGIN
    IF jsonb_typeof(one_object) IS DISTINCT FROM 'object' OR jsonb_typeof(other_object) IS DISTINCT FROM 'object' THEN
        RETURN NULL;
    END IF;
    RETURN ARRAY(SELECT k.key FROM (SELECT jsonb_object_keys(one_object) UNION SELECT jsonb_object_keys(other_object)) AS k (key)
                  WHERE one_object->k.key IS DISTINCT FROM other_object->k.key
                  ORDER BY k.key COLLATE "C");
END
$differing$;
COMMENT ON FUNCTION differing_keys(json, json) IS
    'The top-level keys whose values differ between two states, or that only one of them has. NULL where one is a tombstone, or no object.';

-- 2. History, conflicts, devices, players

CREATE OR REPLACE VIEW history AS
SELECT v.player_id, v.revision, v.collection, v.game_id, d.name AS device, v.outcome, v.saved, v.stamp, v.received,
       v.base, v.rival, v.revision = g.head_revision AS is_head, v.state IS NULL AS is_tombstone, v.schema, v.size,
       v.state, v.device_id, v.saved - v.received AS saved_ahead
  FROM game_versions AS v
  LEFT JOIN devices AS d ON d.player_id = v.player_id AND d.device_id = v.device_id
  LEFT JOIN games AS g ON g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id;
COMMENT ON COLUMN history.device_id IS 'The device that pushed it: names need not be unique.';
COMMENT ON COLUMN history.saved_ahead IS
    'saved minus received. Negative as a rule: the device was offline, or the network took its time. Positive: its clock ran ahead.';

CREATE OR REPLACE VIEW conflicts AS
SELECT v.player_id, v.collection, v.game_id, v.received AS met, v.outcome AS incoming,
       w.revision AS winner_revision, wd.name AS winner_device, w.saved AS winner_saved, w.stamp AS winner_stamp,
       w.state AS winner_state,
       CASE v.outcome WHEN 'lost' THEN v.revision ELSE v.rival END AS loser_revision, ld.name AS loser_device,
       l.saved AS loser_saved, l.stamp AS loser_stamp, l.state AS loser_state,
       g.head_revision,
       differing_keys(w.state, l.state) AS differing_keys, w.size AS winner_size, l.size AS loser_size,
       concat_ws(' and ', CASE WHEN w.revision IS NULL THEN 'winner' END, CASE WHEN l.revision IS NULL THEN 'loser' END) AS pruned
  FROM game_versions AS v
  LEFT JOIN game_versions AS w ON w.player_id = v.player_id
       AND w.revision = CASE v.outcome WHEN 'won' THEN v.revision ELSE v.rival END
  LEFT JOIN game_versions AS l ON l.player_id = v.player_id
       AND l.revision = CASE v.outcome WHEN 'lost' THEN v.revision ELSE v.rival END
  LEFT JOIN devices AS wd ON wd.player_id = w.player_id AND wd.device_id = w.device_id
  LEFT JOIN devices AS ld ON ld.player_id = l.player_id AND ld.device_id = l.device_id
  LEFT JOIN games AS g ON g.player_id = v.player_id AND g.collection = v.collection AND g.game_id = v.game_id
 WHERE v.outcome IN ('won', 'lost');
COMMENT ON COLUMN conflicts.differing_keys IS
    'The top-level keys in which winner and loser differ, sorted; empty: they say the same. NULL where one is a tombstone, was pruned, or is no object.';
COMMENT ON COLUMN conflicts.winner_size IS 'Octets of the winner''s state; 0 for a tombstone, NULL if it was pruned.';
COMMENT ON COLUMN conflicts.loser_size IS 'Octets of the loser''s state; 0 for a tombstone, NULL if it was pruned.';
COMMENT ON COLUMN conflicts.pruned IS 'Which side retention has removed: empty, winner, loser, or both.';

CREATE VIEW player_devices AS
SELECT d.player_id, d.device_id, d.name, d.created, d.revoked,
       coalesce(v.pushes, 0) AS pushes, coalesce(v.won, 0) AS won, coalesce(v.lost, 0) AS lost,
       v.last_received, v.clock_offset, v.last_offset, coalesce(v.held_down, 0) AS held_down
  FROM devices AS d
  LEFT JOIN (SELECT v.player_id, v.device_id, count(*) AS pushes,
                    count(*) FILTER (WHERE v.outcome = 'won') AS won,
                    count(*) FILTER (WHERE v.outcome = 'lost') AS lost,
                    max(v.received) AS last_received,
                    max(v.saved - v.received) AS clock_offset,
                    (array_agg(v.saved - v.received ORDER BY v.revision DESC))[1] AS last_offset,
                    count(*) FILTER (WHERE v.saved > v.received + interval '5 seconds') AS held_down
               FROM game_versions AS v
              GROUP BY v.player_id, v.device_id) AS v
    ON v.player_id = d.player_id AND v.device_id = d.device_id;
COMMENT ON VIEW player_devices IS 'Every device that ever signed in, what it pushed, and how wrong its clock is. No secrets.';
COMMENT ON COLUMN player_devices.player_id IS 'Whose device it is.';
COMMENT ON COLUMN player_devices.device_id IS 'The device.';
COMMENT ON COLUMN player_devices.name IS 'What its owner calls it.';
COMMENT ON COLUMN player_devices.created IS 'When it was registered or linked, by the server''s clock.';
COMMENT ON COLUMN player_devices.revoked IS 'Since when it may neither log in nor push; NULL while it may.';
COMMENT ON COLUMN player_devices.pushes IS 'Versions of its that are kept.';
COMMENT ON COLUMN player_devices.won IS 'How many of them overtook a head that it had not seen.';
COMMENT ON COLUMN player_devices.lost IS 'How many of them lost against a head that it had not seen.';
COMMENT ON COLUMN player_devices.last_received IS 'When its latest version arrived; NULL: it has none.';
COMMENT ON COLUMN player_devices.clock_offset IS
    'How far its clock is ahead of the server''s, by its fastest push: the greatest of saved minus received. Positive: it ran ahead by so much at least. Negative: it runs behind, or every push came late.';
COMMENT ON COLUMN player_devices.last_offset IS 'The same by its latest push alone: tells whether a wrong clock was put right.';
COMMENT ON COLUMN player_devices.held_down IS
    'Versions that were saved more than 5 seconds ahead of the server''s clock: their stamp was held down, so that the clock gained them nothing.';

CREATE VIEW player_summary AS
SELECT p.player_id, p.created, p.last_revision, p.purged_before, d.devices, g.games, g.deleted, v.versions, v.conflicts,
       v.octets, v.last_received
  FROM players AS p
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE d.revoked IS NULL) AS devices
                       FROM devices AS d WHERE d.player_id = p.player_id) AS d
 CROSS JOIN LATERAL (SELECT count(*) FILTER (WHERE h.state IS NOT NULL) AS games,
                            count(*) FILTER (WHERE h.state IS NULL) AS deleted
                       FROM games AS g
                       JOIN game_versions AS h ON h.player_id = g.player_id AND h.revision = g.head_revision
                      WHERE g.player_id = p.player_id) AS g
 CROSS JOIN LATERAL (SELECT count(*) AS versions, count(*) FILTER (WHERE v.outcome IN ('won', 'lost')) AS conflicts,
                            coalesce(sum(v.size), 0) AS octets, max(v.received) AS last_received
                       FROM game_versions AS v WHERE v.player_id = p.player_id) AS v;
COMMENT ON VIEW player_summary IS 'One row per player: what there is of them. Counts a player''s versions when asked: name the player, or take the time.';
COMMENT ON COLUMN player_summary.player_id IS 'The player.';
COMMENT ON COLUMN player_summary.created IS 'When the player signed up, by the server''s clock.';
COMMENT ON COLUMN player_summary.last_revision IS 'The greatest revision given out: pushes that were ever accepted.';
COMMENT ON COLUMN player_summary.purged_before IS 'Versions below this revision may have been pruned; 0: none ever was.';
COMMENT ON COLUMN player_summary.devices IS 'Devices that may log in.';
COMMENT ON COLUMN player_summary.games IS 'Games that are not deleted.';
COMMENT ON COLUMN player_summary.deleted IS 'Games whose head is a tombstone.';
COMMENT ON COLUMN player_summary.versions IS 'Versions that are kept.';
COMMENT ON COLUMN player_summary.conflicts IS 'How many of them met a rival.';
COMMENT ON COLUMN player_summary.octets IS 'Octets of all kept states.';
COMMENT ON COLUMN player_summary.last_received IS 'When the latest version arrived; NULL: there is none.';

COMMENT ON VIEW daily_activity IS
    'Pushes by day and collection. Ask for days, day >= current_date - 7: an index finds them. Without, it reads every version.';
COMMENT ON COLUMN players.purged_before IS
    'Versions below this revision may have been pruned: bases there may be unknown. Heads, tombstones among them, never go, so no cursor misses a change. 0: nothing was ever pruned.';

-- 3. 한들: the collection handle.game, whose state is the Codable form of Game

CREATE FUNCTION hangul_word(letters text) RETURNS text
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $compose$
DECLARE
    leads  CONSTANT text[] := string_to_array('ㄱ ㄱㄱ ㄴ ㄷ ㄷㄷ ㄹ ㅁ ㅂ ㅂㅂ ㅅ ㅅㅅ ㅇ ㅈ ㅈㅈ ㅊ ㅋ ㅌ ㅍ ㅎ', ' ');
    vowels CONSTANT text[] := string_to_array('ㅏ ㅏㅣ ㅑ ㅑㅣ ㅓ ㅓㅣ ㅕ ㅕㅣ ㅗ ㅗㅏ ㅗㅏㅣ ㅗㅣ ㅛ ㅜ ㅜㅓ ㅜㅓㅣ ㅜㅣ ㅠ ㅡ ㅡㅣ ㅣ', ' ');
    tails  CONSTANT text[] := string_to_array(
        'ㄱ ㄱㄱ ㄱㅅ ㄴ ㄴㅈ ㄴㅎ ㄷ ㄹ ㄹㄱ ㄹㅁ ㄹㅂ ㄹㅅ ㄹㅌ ㄹㅍ ㄹㅎ ㅁ ㅂ ㅂㅅ ㅅ ㅅㅅ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ', ' ');
    -- What a syllable is made of. Of several readings a regular expression takes the one whose earlier parts are longest.
    parts  CONSTANT text := format('(%s)(%s)(%s)?', array_to_string(leads, '|'), array_to_string(vowels, '|'),
                                   array_to_string(tails, '|'));
    whole  CONSTANT text := '(?:' || replace(parts, '(', '(?:') || ')*';
    word   text := '';
    rest   text;
    single text;   -- letters at the end that fill no syllable
    found  text[];
BEGIN
    IF length(letters) > 64 THEN
        RETURN letters;
    END IF;
    found := regexp_match(letters, '^(' || whole || ')(.*)$');
    rest := found[1];
    single := found[2];
    WHILE rest <> '' LOOP
        found := regexp_match(rest, '^' || parts || '(' || whole || ')$');
        word := word || chr(44032 + ((array_position(leads, found[1]) - 1) * 21 + array_position(vowels, found[2]) - 1) * 28
                                  + coalesce(array_position(tails, found[3]), 0));
        rest := found[4];
    END LOOP;
    RETURN word || single;
END
$compose$;
COMMENT ON FUNCTION hangul_word(text) IS
    'Puts basic letters of Hangul together into syllables, as the game shows them: ㅅㅏㄹㅏㅁ is 사람. What fills no syllable stays as it is.';

CREATE FUNCTION handle_rows(answer_board jsonb)
RETURNS TABLE (row_number integer, letters text, tiles text, is_submitted boolean, is_right boolean)
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $rows$
    SELECT r.place::integer, string_agg(coalesce(k.key->>'jamo', ''), '' ORDER BY k.place),
           string_agg(CASE k.key->>'mark' WHEN 'rightPlace' THEN '🟩' WHEN 'wrongPlace' THEN '🟨' WHEN 'absent' THEN '⬛'
                                          ELSE '⬜' END, '' ORDER BY k.place),
           bool_and(coalesce(k.key->>'mark' IN ('rightPlace', 'wrongPlace', 'absent'), false)),
           bool_and(coalesce(k.key->>'mark' = 'rightPlace', false))
      FROM jsonb_array_elements(CASE jsonb_typeof(answer_board) WHEN 'array' THEN answer_board ELSE '[]' END)
           WITH ORDINALITY AS r (keys, place),
           jsonb_array_elements(CASE jsonb_typeof(r.keys) WHEN 'array' THEN r.keys ELSE '[]' END)
           WITH ORDINALITY AS k (key, place)
     GROUP BY r.place
     ORDER BY r.place
$rows$;
COMMENT ON FUNCTION handle_rows(jsonb) IS
    'The rows of a board of 한들 from the top, counted from 1: letters, marks as tiles, whether the row was submitted, whether it is the answer.';

CREATE FUNCTION handle_game(state json)
RETURNS TABLE (
    id text, played timestamptz, game_number bigint, answer text, jamo_count integer, current_row integer,
    current_column integer, is_finished boolean, did_win boolean, did_lose boolean, guesses integer,
    answer_board jsonb, key_board jsonb, problem text)
LANGUAGE plpgsql STABLE ROWS 1 AS $game$
#variable_conflict use_column
DECLARE
    game  jsonb;
    rows  integer;   -- of the board
    wrong integer;   -- the first row that does not fit
    number numeric;
    jamo  CONSTANT text[] := array_append(   -- an empty cell has none
        string_to_array('ㄱ ㄴ ㄷ ㄹ ㅁ ㅂ ㅅ ㅇ ㅈ ㅊ ㅋ ㅌ ㅍ ㅎ ㅏ ㅑ ㅓ ㅕ ㅗ ㅛ ㅜ ㅠ ㅡ ㅣ', ' '), '');
    marks CONSTANT text[] := ARRAY['none', 'absent', 'wrongPlace', 'rightPlace'];
BEGIN
    IF state IS NULL THEN
        problem := 'deleted';
        RETURN NEXT;
        RETURN;
    END IF;
    game := state_as_jsonb(state);
    IF game IS NULL THEN
        problem := 'the state cannot be read as jsonb';
        RETURN NEXT;
        RETURN;
    END IF;
    IF jsonb_typeof(game) <> 'object' THEN
        problem := 'the state is not an object: ' || jsonb_typeof(game);
        RETURN NEXT;
        RETURN;
    END IF;

    IF jsonb_typeof(game->'id') = 'string' THEN id := game->>'id'; END IF;
    IF jsonb_typeof(game->'answer') = 'string' THEN answer := game->>'answer'; END IF;
    IF jsonb_typeof(game->'isGameFinished') = 'boolean' THEN is_finished := (game->'isGameFinished')::boolean; END IF;
    IF jsonb_typeof(game->'didPlayerWin') = 'boolean' THEN did_win := (game->'didPlayerWin')::boolean; END IF;
    IF jsonb_typeof(game->'didPlayerLose') = 'boolean' THEN did_lose := (game->'didPlayerLose')::boolean; END IF;
    IF jsonb_typeof(game->'keyBoard') = 'object' THEN key_board := game->'keyBoard'; END IF;
    IF jsonb_typeof(game->'timestamp') = 'string'
       AND game->>'timestamp' ~ '^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,6})?Z$' THEN
        BEGIN
            played := (game->>'timestamp')::timestamptz;
        EXCEPTION WHEN OTHERS THEN
            played := NULL;   -- the 30th of February
        END;
    END IF;
    IF jsonb_typeof(game->'gameNumber') = 'number' THEN
        number := (game->'gameNumber')::numeric;
        IF number = trunc(number) AND number BETWEEN -9223372036854775808 AND 9223372036854775807 THEN
            game_number := number::bigint;
        END IF;
    END IF;
    IF jsonb_typeof(game->'jamoCount') = 'number' THEN
        number := (game->'jamoCount')::numeric;
        IF number = trunc(number) AND number BETWEEN 1 AND 2147483647 THEN
            jamo_count := number::integer;
        END IF;
    END IF;

    IF jsonb_typeof(game->'answerBoard') = 'array' THEN
        rows := jsonb_array_length(game->'answerBoard');
        SELECT min(r.place) INTO wrong
          FROM jsonb_array_elements(game->'answerBoard') WITH ORDINALITY AS r (keys, place)
         WHERE jsonb_typeof(r.keys) <> 'array'
            OR EXISTS (SELECT FROM jsonb_array_elements(CASE jsonb_typeof(r.keys) WHEN 'array' THEN r.keys ELSE '[]' END) AS k (key)
                        WHERE (jsonb_typeof(k.key) = 'object' AND k.key->>'jamo' = ANY (jamo)
                               AND k.key->>'mark' = ANY (marks)) IS NOT TRUE);
        IF wrong IS NULL THEN
            answer_board := game->'answerBoard';
            SELECT count(*) INTO guesses FROM handle_rows(answer_board) AS r WHERE r.is_submitted;
        END IF;
    END IF;
    IF jsonb_typeof(game->'currentRow') = 'number' THEN
        number := (game->'currentRow')::numeric;
        IF number = trunc(number) AND number BETWEEN 0 AND coalesce(rows, 6) THEN
            current_row := number::integer;
        END IF;
    END IF;
    IF jsonb_typeof(game->'currentColumn') = 'number' THEN
        number := (game->'currentColumn')::numeric;
        IF number = trunc(number) AND number BETWEEN 0 AND coalesce(jamo_count, 5) THEN
            current_column := number::integer;
        END IF;
    END IF;

    SELECT string_agg(
               CASE WHEN NOT game ? f.key THEN f.key || ' is missing'
                    WHEN jsonb_typeof(game->f.key) <> f.type THEN format('%s is of type %s, not %s', f.key, jsonb_typeof(game->f.key), f.type)
                    WHEN f.key = 'answerBoard' THEN format('answerBoard does not fit in row %s', wrong)
                    ELSE f.key || ' is out of range' END, '; ' ORDER BY f.place)
      INTO problem
      FROM (VALUES (1, 'id', 'string', id IS NULL), (2, 'timestamp', 'string', played IS NULL),
                   (3, 'gameNumber', 'number', game_number IS NULL), (4, 'answer', 'string', answer IS NULL),
                   (5, 'jamoCount', 'number', jamo_count IS NULL), (6, 'currentRow', 'number', current_row IS NULL),
                   (7, 'currentColumn', 'number', current_column IS NULL),
                   (8, 'isGameFinished', 'boolean', is_finished IS NULL),
                   (9, 'didPlayerWin', 'boolean', did_win IS NULL),
                   (10, 'didPlayerLose', 'boolean', did_lose IS NULL AND coalesce(jsonb_typeof(game->'didPlayerLose'), 'null') <> 'null'),
                   (11, 'answerBoard', 'array', answer_board IS NULL),
                   (12, 'keyBoard', 'object', key_board IS NULL)) AS f (place, key, type, is_unfit)
     WHERE f.is_unfit;
    RETURN NEXT;
END
$game$;
COMMENT ON FUNCTION handle_game(json) IS
    'A state of 한들 as columns: one row for any JSON and for NULL. What is missing, of another type or out of range is NULL, and problem says why; NULL there: all fits. Use it on any version: SELECT g.* FROM history, handle_game(state) AS g.';

CREATE FUNCTION handle_board(answer_board jsonb, with_words boolean DEFAULT false) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $board$
    SELECT string_agg(r.tiles || CASE WHEN with_words THEN ' ' || hangul_word(r.letters) ELSE '' END, E'\n' ORDER BY r.row_number)
      FROM handle_rows(answer_board) AS r
     WHERE r.is_submitted
$board$;
COMMENT ON FUNCTION handle_board(jsonb, boolean) IS
    'Draws the submitted rows of a board, a line each, as 🟩 right place, 🟨 wrong place, ⬛ absent; with the words behind them if asked for. NULL: nothing was submitted.';

CREATE FUNCTION handle_board(state json, with_words boolean DEFAULT false) RETURNS text
LANGUAGE sql STABLE STRICT AS $board$
    SELECT handle_board(g.answer_board, with_words) FROM handle_game(state) AS g
$board$;
COMMENT ON FUNCTION handle_board(json, boolean) IS
    'Draws the board of a state of 한들: SELECT revision, handle_board(state) FROM history. NULL where nothing was submitted or the state does not fit.';

CREATE VIEW handle_games AS
SELECT g.player_id, g.game_id, g.head_revision AS revision, d.name AS device, v.saved, v.received, s.played, s.game_number,
       s.answer, s.jamo_count, s.current_row, s.current_column, s.is_finished, s.did_win, s.did_lose, s.guesses,
       handle_board(s.answer_board) AS board, s.answer_board, s.key_board, s.problem
  FROM games AS g
  JOIN game_versions AS v ON v.player_id = g.player_id AND v.revision = g.head_revision
  LEFT JOIN devices AS d ON d.player_id = v.player_id AND d.device_id = v.device_id
 CROSS JOIN LATERAL handle_game(v.state) AS s
 WHERE g.collection = 'handle.game';
COMMENT ON VIEW handle_games IS
    'Every game of 한들 as it is now, its fields as columns. What does not fit is NULL and problem says why; a deleted game has only NULLs.';
COMMENT ON COLUMN handle_games.player_id IS 'Whose game it is.';
COMMENT ON COLUMN handle_games.game_id IS 'The game, as the server names it.';
COMMENT ON COLUMN handle_games.revision IS 'The revision of its head.';
COMMENT ON COLUMN handle_games.device IS 'Name of the device that pushed the head.';
COMMENT ON COLUMN handle_games.saved IS 'When the head was saved, by that device''s clock.';
COMMENT ON COLUMN handle_games.received IS 'When it arrived, by the server''s clock.';
COMMENT ON COLUMN handle_games.played IS 'When it was last played, as the game itself says (timestamp).';
COMMENT ON COLUMN handle_games.game_number IS 'Number of the day whose word is asked (gameNumber).';
COMMENT ON COLUMN handle_games.answer IS 'The word to be guessed (answer).';
COMMENT ON COLUMN handle_games.jamo_count IS 'Letters in a row (jamoCount), 1 or more.';
COMMENT ON COLUMN handle_games.current_row IS 'The row that is being typed, from 0 up to the number of rows (currentRow).';
COMMENT ON COLUMN handle_games.current_column IS 'The column of the next letter, from 0 up to jamo_count (currentColumn).';
COMMENT ON COLUMN handle_games.is_finished IS 'Whether the game is over (isGameFinished).';
COMMENT ON COLUMN handle_games.did_win IS 'Whether it was won (didPlayerWin).';
COMMENT ON COLUMN handle_games.did_lose IS 'Whether it was lost (didPlayerLose): only games of the app''s first version say.';
COMMENT ON COLUMN handle_games.guesses IS 'Rows that were submitted.';
COMMENT ON COLUMN handle_games.board IS 'The submitted rows as lines of 🟩🟨⬛.';
COMMENT ON COLUMN handle_games.answer_board IS 'The board (answerBoard): rows of keys, each {"jamo", "mark"}. NULL if any row does not fit.';
COMMENT ON COLUMN handle_games.key_board IS 'The keyboard (keyBoard), not looked into.';
COMMENT ON COLUMN handle_games.problem IS
    'What does not fit, for example "currentRow is of type string, not number". NULL: all fits. "deleted": the head is a tombstone.';

CREATE VIEW handle_guesses AS
SELECT h.player_id, h.game_id, h.revision, h.game_number, h.answer, r.row_number AS guess,
       hangul_word(r.letters) AS word, r.letters, r.tiles AS marks, r.is_right, h.played
  FROM handle_games AS h
 CROSS JOIN LATERAL handle_rows(h.answer_board) AS r
 WHERE r.is_submitted;
COMMENT ON VIEW handle_guesses IS
    'One row per submitted guess of 한들''s games as they are now. A game whose board does not fit has none: handle_games.problem says why.';
COMMENT ON COLUMN handle_guesses.player_id IS 'Who guessed.';
COMMENT ON COLUMN handle_guesses.game_id IS 'The game.';
COMMENT ON COLUMN handle_guesses.revision IS 'The revision of the game''s head.';
COMMENT ON COLUMN handle_guesses.game_number IS 'Number of the day whose word is asked.';
COMMENT ON COLUMN handle_guesses.answer IS 'The word to be guessed.';
COMMENT ON COLUMN handle_guesses.guess IS 'Which guess it was, from 1.';
COMMENT ON COLUMN handle_guesses.word IS 'The guess in syllables; letters that fill none stay single.';
COMMENT ON COLUMN handle_guesses.letters IS 'The guess as its basic letters.';
COMMENT ON COLUMN handle_guesses.marks IS 'A tile a letter: 🟩 right place, 🟨 wrong place, ⬛ absent.';
COMMENT ON COLUMN handle_guesses.is_right IS 'Whether it was the answer.';
COMMENT ON COLUMN handle_guesses.played IS 'When the game was last played.';

CREATE VIEW handle_statistics AS
SELECT s.player_id, count(*) AS played, count(*) FILTER (WHERE s.did_win) AS won,
       round(100.0 * count(*) FILTER (WHERE s.did_win) / count(*), 1) AS win_percent,
       coalesce(max(s.streak) FILTER (WHERE s.did_win AND s.is_last_run), 0) AS current_streak,
       coalesce(max(s.streak) FILTER (WHERE s.did_win), 0) AS longest_streak,
       count(*) FILTER (WHERE s.did_win AND s.guesses = 1) AS in_1, count(*) FILTER (WHERE s.did_win AND s.guesses = 2) AS in_2,
       count(*) FILTER (WHERE s.did_win AND s.guesses = 3) AS in_3, count(*) FILTER (WHERE s.did_win AND s.guesses = 4) AS in_4,
       count(*) FILTER (WHERE s.did_win AND s.guesses = 5) AS in_5, count(*) FILTER (WHERE s.did_win AND s.guesses = 6) AS in_6,
       max(s.moment) AS last_played
  FROM (SELECT r.*, row_number() OVER (PARTITION BY r.player_id, r.run, r.did_win ORDER BY r.place) AS streak,
               r.run = max(r.run) OVER (PARTITION BY r.player_id) AS is_last_run
          FROM (SELECT f.*, count(*) FILTER (WHERE NOT f.did_win) OVER (PARTITION BY f.player_id ORDER BY f.place) AS run
                  FROM (SELECT h.player_id, h.did_win, h.guesses, coalesce(h.played, h.saved) AS moment,
                               row_number() OVER (PARTITION BY h.player_id
                                                  ORDER BY coalesce(h.played, h.saved), h.revision) AS place
                          FROM handle_games AS h
                         WHERE h.is_finished AND h.did_win IS NOT NULL) AS f) AS r) AS s
 GROUP BY s.player_id;
COMMENT ON VIEW handle_statistics IS
    'One row per player with finished games of 한들: wins, streaks, and in how many guesses. Games that do not say whether they are finished and won are left out: handle_games.problem says why.';
COMMENT ON COLUMN handle_statistics.player_id IS 'The player.';
COMMENT ON COLUMN handle_statistics.played IS 'Finished games.';
COMMENT ON COLUMN handle_statistics.won IS 'How many of them were won.';
COMMENT ON COLUMN handle_statistics.win_percent IS 'The same in percent.';
COMMENT ON COLUMN handle_statistics.current_streak IS
    'Games won in a row up to the last one, in the order in which they were last played. A day without a game breaks nothing.';
COMMENT ON COLUMN handle_statistics.longest_streak IS 'The most games won in a row.';
COMMENT ON COLUMN handle_statistics.in_1 IS 'Games won with the first guess.';
COMMENT ON COLUMN handle_statistics.in_2 IS 'Games won with the second guess.';
COMMENT ON COLUMN handle_statistics.in_3 IS 'Games won with the third guess.';
COMMENT ON COLUMN handle_statistics.in_4 IS 'Games won with the fourth guess.';
COMMENT ON COLUMN handle_statistics.in_5 IS 'Games won with the fifth guess.';
COMMENT ON COLUMN handle_statistics.in_6 IS 'Games won with the sixth guess. A won game whose board does not fit is in none of these.';
COMMENT ON COLUMN handle_statistics.last_played IS 'When the last of them was played.';
