import Foundation
import TestSupport
import Testing

/// One daemon for the tests that do it no harm.
private let sharedDaemon = Result { try DaemonProcess() }

@Suite("the history on the command line")
struct HistoryCommandTests {
    private let daemon: DaemonProcess
    private let phone: CommandLineDevice
    private let tablet: CommandLineDevice

    /// Two devices whose game met: revision 2 by the tablet is the head, 3 by the phone lost.
    init() throws {
        daemon = try sharedDaemon.get()
        phone = try CommandLineDevice(registeredAt: daemon, name: "내 전화 \u{1B}[31m".filter { $0 != "\u{1B}" })
        tablet = try CommandLineDevice(linkedTo: phone, at: daemon, name: "tablet")
        _ = try phone.push(#"{"row":0,"board":[{"mark":"a"}],"같은":1}"#, "--saved", "2026-11-29T19:02:00Z")
        _ = try tablet.run("get", "handle.game", "today")
        _ = try tablet.push(#"{"row":2,"board":[{"mark":"b"},2],"같은":1.0}"#, "--saved", "2026-11-29T20:12:00Z")
        _ = try phone.push(#"{"row":1,"board":[{"mark":"c"}],"같은":1,"x y":null}"#, "--saved", "2026-11-29T20:10:00Z")
    }

    @Test("history names the devices of others")
    func history() throws {
        let versions = try #require(
            try phone.run("history", "handle.game", "today", "--json").object()["versions"] as? [[String: Any]])
        #expect(versions.compactMap { $0["deviceName"] as? String } == ["내 전화 [31m", "tablet", "내 전화 [31m"])
        #expect(try phone.run("history", "handle.game", "today").data.contains("  tablet  "))
    }

    @Test("show tells of one version, by its revision alone")
    func show() throws {
        let shown = try phone.run("show", "3")
        #expect(shown.status == 0, "\(shown)")
        #expect(shown.data.hasPrefix("handle.game today, revision 3\n"))
        #expect(shown.data.contains("outcome   lost, met revision 2\n"))
        #expect(shown.data.contains("  \"x y\": null\n}\n"))
        let object = try tablet.run("show", "2", "--json").object()
        #expect(object["head"] as? Bool == true && object["deviceName"] as? String == "tablet")
        #expect((object["state"] as? [String: Any])?["row"] as? Int == 2)
        #expect(try phone.run("show", "4").status == 6)
        #expect(try phone.run("show", "0").status == 2)
        #expect(try phone.run("show", "today").status == 2)
    }

    @Test("diff looks into objects and arrays, and passes over what says the same")
    func diff() throws {
        let table = try phone.run("diff", "2", "3").data
        #expect(
            table == """
                KEY            REVISION 2  REVISION 3
                row            2           1
                board[0].mark  "b"         "c"
                board[1]       2           -
                ["x y"]        -           null

                """)
        let objects = try phone.run("diff", "2", "3", "--json").objects()
        #expect(objects.compactMap { $0["kind"] as? String } == ["changed", "changed", "removed", "added"])
        #expect(objects[1]["keys"] as? [AnyHashable] == ["board", 0, "mark"])
        _ = try phone.run("push", "handle.game", "other", "--file", "-", input: "[]")
        let other = try phone.run("diff", "2", "4")
        #expect(other.status == 0)
        #expect(
            other.talk == "These are two games: revision 2 is of handle.game today, revision 4 of handle.game other.\n")
        #expect(other.data.contains("(all)  {"))
        #expect(try phone.run("diff", "2", "2").talk == "Revisions 2 and 2 say the same.\n")
        #expect(try phone.run("diff", "2", "9").status == 6)
    }

    @Test(
        "conflicts shows both sides, what differs, and whether the loser was restored; restore does it and can be undone"
    )
    func conflicts() throws {
        for arguments in [["conflicts"], ["conflicts", "handle.game", "today"]] {
            let text = try tablet.run(arguments).data
            #expect(text.hasPrefix("handle.game today, met "))
            #expect(text.contains("revision  2                    3\n"))
            #expect(text.contains("differs   board, row, x y\n"))
            #expect(text.contains("restored  no; take it after all: ieum restore 3\n"))
        }
        var object = try tablet.run("conflicts", "--json").object()
        #expect(object["differingKeys"] as? [String] == ["board", "row", "x y"])
        #expect((object["winner"] as? [String: Any])?["revision"] as? Int == 2)
        #expect((object["loser"] as? [String: Any])?["deviceName"] as? String == "내 전화 [31m")
        #expect(object["restored"] is NSNull)

        let restored = try tablet.run("restore", "3")
        #expect(restored.data == "restored revision 3 of handle.game today as revision 4\n", "\(restored)")
        #expect(restored.talk == "  Undo: ieum restore 2\n")
        #expect(
            try phone.run("get", "handle.game", "today").data
                == #"{"row":1,"board":[{"mark":"c"}],"같은":1,"x y":null}"#)
        object = try tablet.run("conflicts", "--json").object()
        #expect(object["restored"] as? Int == 4 && object["head"] as? Int == 4)
        let undone = try phone.run("restore", "2", "--json").object()
        #expect(undone["undo"] as? Int == 4 && undone["revision"] as? Int == 5)
        #expect(try phone.run("restore", "5", "--json").object()["undo"] is NSNull)
        _ = try phone.run("delete", "handle.game", "today")
        #expect(try phone.run("restore", "6").data.contains("is the head of handle.game today already"))
        #expect(try phone.run("restore", "5").status == 0)
        #expect(try phone.run("restore", "6").data.hasSuffix("as revision 8: the game is deleted\n"))
        #expect(try phone.run("restore", "99").status == 6)
        #expect(try phone.run("conflicts", "handle.game").status == 2)
        #expect(try phone.run("conflicts", "handle.game", "never").status == 6)
    }

    @Test("a conflict within one second shows which was saved later; who lost is told how to be put on top")
    func withinOneSecond() throws {
        _ = try phone.run(
            "push", "c", "quick", "--file", "-", "--base", "none", "--saved", "2026-11-29T20:10:00.250000Z", input: "1")
        let lost = try tablet.run(
            "push", "c", "quick", "--file", "-", "--base", "none", "--saved", "2026-11-29T20:10:00.100000Z", input: "2")
        #expect(lost.status == 3 && lost.talk.hasSuffix("  To put yours on top: ieum restore 5\n"), "\(lost)")
        #expect(
            try tablet.run("conflicts", "c", "quick").data.contains(
                "saved     2026-11-29 20:10:00.250000  2026-11-29 20:10:00.100000\n"))
        #expect(try tablet.run("restore", "5").data == "restored revision 5 of c quick as revision 6\n")
        #expect(try phone.run("get", "c", "quick").data == "2")
        #expect(
            try tablet.run("conflicts", "handle.game", "today").data.contains(
                "saved     2026-11-29 20:12:00  2026-11-29 20:10:00\n"))
    }

    @Test(
        "hints hold for ids that look like options, and for those that a shell would take apart",
        arguments: ["--json", "a$b;c'd"])
    func oddIDs(id: String) throws {
        let words = ["--", "c", id]
        for state in ["1", "2"] {
            #expect(try phone.run(["push", "--file", "-", "--base", "none"] + words, input: state).status == 0)
        }
        _ = try phone.run(["delete"] + words)
        let deleted = try phone.run(["get"] + words)
        #expect(deleted.status == 6 && deleted.talk.hasPrefix("ieum: the game was deleted on "), "\(deleted)")
        let hint = try #require(deleted.talk.split(separator: "\n").last?.split(separator: ": ieum ").last)
        let call = try Programs.runInstalled([
            "IEUM_HOME=\(phone.home.path)", "/bin/sh", "-c", "\"$0\" \(hint)", Programs.url("ieum").path,
        ])
        #expect(call.status == 0, "\(call)")
        #expect(call.output.split(separator: "\n").count == 4, "\(call)")
    }

    @Test("many conflicts come page by page, newest first")
    func pages() throws {
        for number in 0..<5 {
            _ = try phone.push("\(number)", "--base", "none", "--saved", "2026-11-29T20:0\(number):00Z")
        }
        func revisions(_ arguments: String...) throws -> [Int] {
            try phone.run(["conflicts", "--json"] + arguments).objects().compactMap {
                ($0["loser"] as? [String: Any])?["revision"] as? Int
            }
        }
        #expect(try revisions() == [8, 7, 6, 5, 4, 3])
        #expect(try revisions("--limit", "2") == [8, 7])
        #expect(try revisions("--limit", "3", "--before", "7") == [6, 5, 4])
        #expect(try phone.run("conflicts", "--limit", "2").talk == "Older ones: add --before 7\n")
        #expect(
            try phone.run("conflicts", "handle.game", "today", "--limit", "2").talk == "Older ones: add --before 7\n")
        #expect(try phone.run("conflicts", "--before", "3").talk == "No conflicts.\n")
    }

    @Test("why tells whose version won, by which rule, and how to get the loser back")
    func why() throws {
        let text = try tablet.run("why", "handle.game", "today").data
        #expect(text.hasPrefix("handle.game today is at revision 2, saved by tablet.\n"))
        #expect(text.contains("rule      advanced: its device had seen the head of then, revision 1"))
        #expect(text.contains("lost      revision 3 by 내 전화 [31m, saved 2026-11-29 20:10:00 UTC:"))
        #expect(Self.words(text).contains(" UTC: its stamp is 2 minutes less "), "\(text)")
        #expect(text.contains("get it back: ieum restore 3\n"))
        #expect(text.split(separator: "\n").allSatisfy { $0.count <= 80 })
        // A clock that is a year ahead: its stamp is held down, and it wins for seconds only.
        _ = try phone.push("{}", "--base", "none", "--saved", "2028-11-29T20:10:00Z")
        let object = try tablet.run("why", "handle.game", "today", "--json").object()
        #expect(object["stampReason"] as? String == "held-down" && object["outcome"] as? String == "won")
        #expect(object["losers"] as? [Int] == [2])
        #expect(try #require(object["clockOffsetMs"] as? Double) > 86_400_000)
        let ahead = Self.words(try tablet.run("why", "handle.game", "today").data)
        #expect(ahead.contains("its clock runs ahead by"), "\(ahead)")
        #expect(ahead.contains("held down to 5 seconds"), "\(ahead)")
        // Who has seen it comes after it, whatever the clocks say.
        _ = try tablet.run("get", "handle.game", "today")
        _ = try tablet.push("{}", "--saved", "2026-11-30T00:00:00Z")
        let raised = try tablet.run("why", "handle.game", "today", "--json").object()
        #expect(raised["stampReason"] as? String == "raised")
        #expect(try tablet.run("why", "handle.game", "never").status == 6)
    }

    /// The text without its line breaks.
    private static func words(_ text: String) -> String {
        text.split { $0 == " " || $0 == "\n" }.joined(separator: " ")
    }

    /// Runs a call on a terminal of so many columns.
    private func onTerminal(_ columns: Int, _ arguments: String, _ environment: String = "") throws -> [String] {
        let command =
            "stty cols \(columns) rows 24; exec env -u NO_COLOR IEUM_HOME='\(phone.home.path)' TERM=xterm \(environment) "
            + "'\(Programs.url("ieum").path)' \(arguments)"
        let result = try Programs.runInstalled(["script", "-qec", command, "/dev/null"])
        return result.output.split(separator: "\r\n", omittingEmptySubsequences: false).map(String.init)
    }

    @Test("a terminal gets colours and lines that fit it, with NO_COLOR none; a pipe gets neither")
    func terminal() throws {
        let long = String(repeating: "아주 긴 이름 ", count: 6)
        let other = try CommandLineDevice(linkedTo: phone, at: daemon, name: String(long.prefix(60)))
        _ = try other.run("get", "handle.game", "today")
        _ = try other.push("{\"row\":\"\(long)\(long)\"}")
        for (columns, call) in [
            (80, "history handle.game today"), (50, "history handle.game today"), (60, "diff 2 4"), (48, "conflicts"),
        ] {
            let lines = try onTerminal(columns, call)
            #expect(lines.contains { $0.contains("\u{1B}[") }, "\(lines)")
            for line in lines where !line.contains("differs ") && !line.contains("restored ") {
                #expect(Self.width(line) <= columns, "\(columns): \(line)")
            }
            for plain in ["NO_COLOR=1", "TERM=dumb"] {
                #expect(try onTerminal(columns, call, plain).allSatisfy { !$0.contains("\u{1B}") })
            }
        }
        #expect(try onTerminal(50, "history handle.game today").contains { $0.contains("…") })
        let piped = try phone.run("history", "handle.game", "today").data
        #expect(!piped.contains("\u{1B}") && piped.contains(long.prefix(50)))
    }

    /// The columns that a line takes, its styles aside.
    private static func width(_ line: String) -> Int {
        var text = ""
        var isStyle = false
        for scalar in line.unicodeScalars {
            if scalar == "\u{1B}" { isStyle = true }
            if !isStyle { text.unicodeScalars.append(scalar) }
            if scalar == "m" { isStyle = false }
        }
        return text.reduce(0) { $0 + (("\u{AC00}"..."\u{D7A3}").contains($1) ? 2 : 1) }
    }

    @Test("JSON holds one object a line, also on a terminal, and never a style")
    func json() throws {
        for call in ["conflicts --json", "show 3 --json", "diff 2 3 --json", "why handle.game today --json"] {
            for line in try onTerminal(40, call) where !line.isEmpty {
                #expect(try JSONSerialization.jsonObject(with: Data(line.utf8)) is [String: Any], "\(line)")
            }
        }
    }
}
