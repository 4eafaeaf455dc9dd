import Foundation
import TestSupport
import Testing

@Suite("ieumd psql")
struct PsqlTests {
    @Test("on a terminal it lists the views and asks with a prompt that names the database")
    func terminal() throws {
        let database = try TestDatabase.migrated()
        let ieumd = Programs.url("ieumd").path
        // script(1) gives the program a terminal of its own.
        let command = "'\(ieumd)' psql --database \"\(database.conninfo)\" -X -P pager=off"
        let result = try Programs.runInstalled([
            "sh", "-c", #"printf 'SELECT NULL AS gap;\n\\q\n' | script -qec "$1" /dev/null"#, "sh", command,
        ])
        for view in ["conflicts", "handle_games", "player_devices"] {
            #expect(result.output.contains("  \(view) "), "\(result.output)")
        }
        #expect(result.output.contains("Every accepted version, with the name of its device"))
        #expect(result.output.contains("/\(database.name)=# "), "\(result.output)")
        #expect(result.output.contains("∅"))
    }

    @Test(
        "from a pipe, with -c and with -f, there is nothing but psql's answer",
        arguments: [["-XAtc", "SELECT 7"], ["-X", "-A", "-t", "--command=SELECT 7"], ["-XAt"]])
    func clean(arguments: [String]) throws {
        let database = try TestDatabase.migrated()
        for separator in [[], ["--"]] {
            let result = try Programs.run(
                "ieumd", ["psql", "--database", database.conninfo] + separator + arguments, input: "SELECT 7\n;\n")
            #expect(result.status == 0 && result.error == "")
            #expect(result.output == "7\n")
        }
        let word = try Programs.run("ieumd", ["psql", "--database", database.conninfo, "player.sql"])
        #expect(word.status == 2 && word.error.contains("-f player.sql"))
    }
}
