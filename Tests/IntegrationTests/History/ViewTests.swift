import Foundation
import Handle
import Postgres
import TestSupport
import Testing

@Suite("the views")
struct ViewTests {
    @Test("every table, view, function and column carries a comment, and every view can be read by ieum_reader")
    func comments() throws {
        let history = try HandleHistory()
        #expect(
            try history.column(
                """
                SELECT c.relname || '.' || a.attname FROM pg_class AS c
                  JOIN pg_attribute AS a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
                 WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
                   AND (col_description(c.oid, a.attnum) IS NULL OR obj_description(c.oid, 'pg_class') IS NULL)
                """) == [])
        #expect(
            try history.column(
                """
                SELECT p.oid::regprocedure FROM pg_proc AS p
                 WHERE p.pronamespace = 'public'::regnamespace AND obj_description(p.oid, 'pg_proc') IS NULL
                """) == [])
        #expect(
            try history.column(
                """
                SELECT c.relname FROM pg_class AS c WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'v'
                   AND NOT has_table_privilege('ieum_reader', c.oid, 'SELECT')
                """) == [])
    }

    @Test("a conflict shows both sides and the keys that differ")
    func conflicts() throws {
        let history = try HandleHistory.played()
        #expect(
            try history.column(
                """
                SELECT concat_ws(' ', game_id, incoming, winner_device, winner_revision, loser_device, loser_revision,
                                 differing_keys, winner_size > loser_size)
                  FROM conflicts WHERE pruned = ''
                """) == ["c lost phone 4 tablet 5 {answerBoard,currentRow,didPlayerWin,isGameFinished,keyBoard} t"])
        try history.connection.execute("UPDATE game_versions SET revision = 99 WHERE revision = 4")
        #expect(
            try history.column(
                "SELECT concat_ws(' ', pruned, winner_state IS NULL, differing_keys IS NULL) FROM conflicts")
                == ["winner t t"])
        try history.connection.execute("DELETE FROM game_versions WHERE revision = 5")
        #expect(try history.column("SELECT count(*)::text FROM conflicts") == ["0"])
    }

    @Test("devices show by how much their clocks are ahead")
    func clocks() throws {
        let history = try HandleHistory.played()
        #expect(
            try history.column(
                """
                SELECT concat_ws(' ', name, pushes, lost, held_down, round(extract(epoch FROM clock_offset) / 60))
                  FROM player_devices WHERE player_id = '\(history.player)' ORDER BY name
                """) == ["phone 7 0 0 0", "tablet 3 1 1 10"])
    }

    @Test("games, guesses, board and statistics of 한들 are what the game's own rules say")
    func handle() throws {
        let history = try HandleHistory.played()
        #expect(
            try history.column(
                """
                SELECT concat_ws(' ', game_id, game_number, answer, current_row, is_finished, did_win, guesses, problem IS NULL)
                  FROM handle_games WHERE player_id = '\(history.player)' AND game_id < 'e' ORDER BY game_id
                """) == ["a 1 사람 2 t t 2 t", "b 2 나물 1 t t 1 t", "c 3 사람 3 t t 3 t", "d 4 사람 0 f f 0 t"])
        let game = try HandleHistory.game("c", 3, "사람", guesses: ["마음", "나물", "사람"])
        let drawn = game.answerBoard.prefix(3).map { $0.map(\.mark.tile).joined() }
        #expect(
            try history.column("SELECT board FROM handle_games WHERE game_id = 'c'") == [drawn.joined(separator: "\n")])
        #expect(
            try history.column(
                "SELECT guess || ' ' || word || ' ' || letters || ' ' || marks FROM handle_guesses WHERE game_id = 'c' ORDER BY guess"
            ) == [
                "1 마음 ㅁㅏㅇㅡㅁ \(drawn[0])", "2 나물 ㄴㅏㅁㅜㄹ \(drawn[1])", "3 사람 ㅅㅏㄹㅏㅁ 🟩🟩🟩🟩🟩",
            ])
        #expect(
            try history.column(
                """
                SELECT concat_ws(' ', played, won, win_percent, current_streak, longest_streak, in_1, in_2, in_3, in_4)
                  FROM handle_statistics ORDER BY player_id
                """) == ["3 3 100.0 3 3 1 1 1 0", "1 0 0.0 0 0 0 0 0 0"])
    }

    @Test("streaks end with a lost game, and the longest is kept")
    func streaks() throws {
        let history = try HandleHistory()
        for (number, isWon) in [true, true, true, false, true, false, true, true].enumerated() {
            let guesses = isWon ? ["사람"] : Array(repeating: "마음", count: 6)
            try history.push(HandleHistory.game("s\(number)", number + 1, "사람", guesses: guesses))
        }
        let streaks = "SELECT current_streak || ' ' || longest_streak FROM handle_statistics"
        #expect(try history.column(streaks) == ["2 3"])
        try history.push(HandleHistory.game("s9", 9, "사람", guesses: Array(repeating: "마음", count: 6)))
        #expect(try history.column(streaks) == ["0 3"])
    }

    @Test("letters become the syllables that the game shows")
    func words() throws {
        var random = SeededRandom(for: "letters to syllables")
        let history = try HandleHistory()
        var samples = AnswerWords.all.map(\.letters)
        for _ in 0..<2_000 {
            samples.append(
                (0..<Int.random(in: 0...9, using: &random)).compactMap { _ in
                    Jamo.allCases.randomElement(using: &random)
                })
        }
        let values = samples.map { "('\($0.map(\.rawValue).joined())')" }.joined(separator: ",")
        let got = try history.column("SELECT hangul_word(w) FROM (VALUES \(values)) AS v (w)")
        #expect(got == samples.map { Hangul.composed($0) })
    }

    @Test("a state that does not fit gives NULLs and its reason, and no view fails, whatever the JSON")
    func hostile() throws {
        var random = SeededRandom(for: "hostile states")
        let history = try HandleHistory()
        var states = HostileStates.chosen
        for _ in 0..<1_500 { states.append(HostileStates.random(using: &random)) }
        for (number, state) in states.enumerated() {
            // Straight into the function: a daemon refuses some of these, another program may not.
            #expect(try history.push("h\(number)", state).outcome == "created", "\(state.prefix(200))")
            if number % 3 == 0 {
                try history.push(
                    "h\(number)", HostileStates.random(using: &random), by: HandleHistory.tablet, saved: -9)
            }
        }
        try history.push("h1", nil)
        for view in try history.column(
            "SELECT relname FROM pg_class WHERE relkind = 'v' AND relnamespace = 'public'::regnamespace")
        {
            // As text, so that every column is computed and written out.
            #expect(try history.connection.execute("SELECT v::text FROM \(view) AS v").count == 1, "\(view)")
        }
        #expect(try history.column("SELECT count(*)::text FROM handle_games") == ["\(states.count)"])
        #expect(
            try history.column(
                """
                SELECT game_id FROM handle_games
                 WHERE problem IS NULL AND (played, game_number, answer, jamo_count, current_row, current_column,
                                            is_finished, did_win, answer_board) IS NULL
                """) == [])
        for (number, reason) in HostileStates.reasons {
            #expect(try history.column("SELECT problem FROM handle_games WHERE game_id = 'h\(number)'") == [reason])
        }
        _ = try history.connection.execute(
            "SELECT handle_board(state, true), differing_keys(state, '{}'), handle_rows(state_as_jsonb(state)) FROM history"
        )
    }
}
