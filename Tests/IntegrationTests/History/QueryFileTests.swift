import Foundation
import TestSupport
import Testing

@Suite("the ready questions in SQL/queries")
struct QueryFileTests {
    private static let folder = URL(filePath: #filePath).deletingLastPathComponent()
        .appending(path: "../../../SQL/queries").standardizedFileURL

    /// What the answer to each question holds, asked of the story in ``HandleHistory/played()``.
    private static let answers: [String: [String]] = [
        "activity.sql": [#"handle\.game \| +11 \| +2 \| +3 \| +8 \| +8 \| +1 \|"#],
        "biggest_players.sql": [#"11111111-.* \| +10 \| +6 \|"#, #"22222222-.* \| +1 \| +1 \|"#],
        "carried_on.sql": [#"handle\.game \| +8 \| +2 \| +25\.0"#],
        "conflicts_by_day.sql": [#"handle\.game \| +11 \| +0 \| +1 \| +9\.09"#],
        "conflicts_of_player.sql": [#"c +\| lost +\| +4 \| phone .* 5 \| tablet .*\{answerBoard,"#],
        "game_history.sql": [#" 4 \| phone +\| created \| head"#, #" 5 \| tablet \| lost "#],
        "games.sql": [#"handle\.game \| f +\| +8 \| phone"#, #"handle\.game \| c +\| +4 \| phone"#],
        "handle_boards.sql": [#"⬛🟩⬛⬛🟩 마음.*│ +won"#, "🟩🟩🟩🟩🟩 사람", #"│ +5 │ tablet │ lost "#],
        "handle_day.sql": [#" 3 \| 사람 +\| 11111111-.* \| +3 \| t "#, #" 3 \| 사람 +\| 22222222-.* \| +6 \| f "#],
        "handle_distribution.sql": [#"1 +\| +1 \| +25\.0 \| 🟩"#, #"lost +\| +1 \| +25\.0"#],
        "handle_hardest.sql": [#"사람 +\| +3 \| +66\.7 \| +2\.50"#, #"나물 +\| +1 \| +100\.0 \| +1\.00"#],
        "handle_openings.sql": [#"마음 +\| +3 \| +2 \|"#, #"나물 +\| +1 \| +1 \| +5\.00 \| +0\.00 \| +1\.00"#],
        "handle_player.sql": [#" 3 \| +3 \| +100\.0 \| +3 \| +3 \|"#, #" 2 \| +1 \| 🟩"#],
        "handle_problems.sql": [
            #"the state is not an object: array +\| +1 \|"#, "answer is of type number, not string",
        ],
        "handle_unfinished.sql": [#"11111111-.* \| d +\| +4 \| +0 \| +0 \| +0 \| phone"#],
        "player.sql": [#" 10 \| +0 \| +2 \| +6 \| +1 \| +10 \| +1 \|"#, #"tablet \| bbbbbbbb-.* \| +3 \|"#],
        "prunable.sql": [#"1: under 7 days +\| +3 \| .* \| +1"#],
        "restorable.sql": [
            #"lost a conflict \| handle\.game \| c +\| +5 \| tablet"#, #"was deleted +\| handle\.game \| g +\| +9 "#,
        ],
        "schemas.sql": [#"handle\.game \| +1 \| +7 \| +2 \|"#],
        "silent_devices.sql": [#"22222222-.* \| tablet \|"#],
        "wrong_clocks.sql": [#"11111111-.* \| tablet \| .* \| +1 \| +3 \| +0"#],
    ]

    @Test("every file says what it answers and how it is called, and answers that, to a reader")
    func answers() throws {
        let history = try HandleHistory.played()
        let files = try FileManager.default.contentsOfDirectory(at: Self.folder, includingPropertiesForKeys: nil)
        #expect(Set(files.map(\.lastPathComponent)) == Set(Self.answers.keys))
        for file in files {
            let name = file.lastPathComponent
            let lines = try String(contentsOf: file, encoding: .utf8).split(separator: "\n")
            #expect(
                lines[0].hasPrefix("-- \(name): ") && lines[0].hasSuffix("?"), "\(name)")
            #expect(lines[1].hasPrefix("-- Variables: "), "\(name)")
            #expect(lines[2].hasPrefix("-- Example: ieumd psql -f SQL/queries/\(name)"), "\(name)")
            let result = try Programs.run(
                "ieumd",
                [
                    "psql", "--database", history.database.conninfo, "-X", "-v", "ON_ERROR_STOP=1", "-v",
                    "player=\(history.player)", "-v", "game=c", "-v", "days=\(name == "silent_devices.sql" ? -1 : 7)",
                    "-f", file.path,
                ], environment: ["PGOPTIONS": "-c role=ieum_reader"])
            #expect(result.status == 0 && result.error == "", "\(name): \(result.error)")
            for answer in Self.answers[name] ?? [] {
                let isFound = try result.output.firstMatch(of: Regex(answer)) != nil
                #expect(isFound, "\(name) lacks \(answer):\n\(result.output)")
            }
        }
    }

    @Test(
        "a question that needs a player says so, and so does psql's exit code", arguments: ["player", "game_history"])
    func missingVariable(name: String) throws {
        let history = try HandleHistory()
        let result = try Programs.run(
            "ieumd",
            [
                "psql", "-f", Self.folder.appending(path: "\(name).sql").path, "-X", "--database",
                history.database.conninfo,
            ])
        #expect(result.status == 3)
        #expect(result.output == "" && result.error.contains("needs a player"))
    }
}
