import Foundation
import Glibc
import Testing
import Wire

@testable import IeumClient
@testable import ieum

@Suite("The history, as people and programs see it")
struct HistoryOutputTests {
    @Test("a table that is too wide gives way in its columns of words, then at its end, and wide characters stay whole")
    func table() {
        var table = Table([.left("DEVICE"), .right("SIZE"), .left("NOTE")])
        table.add(["거실에 있는 아주 큰 화면", "1.1 kB", "a long note of twenty"])
        func lines(_ width: Int?) -> [String] { table.styledLines(width: width).map { $0.map(\.text).joined() } }
        #expect(lines(nil)[1] == "거실에 있는 아주 큰 화면  1.1 kB  a long note of twenty")
        #expect(lines(40)[1] == "거실에 있는 아…  1.1 kB  a long note of…")
        for width in 1...60 {
            for line in lines(width) {
                #expect(line.terminalWidth <= width, "\(width): \(line)")
                #expect(!line.hasSuffix(" "))
            }
        }
        #expect("사람".cut(to: 3) == "사…" && "사람".cut(to: 2) == "…" && "사람".cut(to: 4) == "사람")
        #expect("ab".cut(to: 0).isEmpty && "ab".cut(to: 1) == "…")
    }

    @Test(
        "differences are told by where they are",
        arguments: [
            (#"{"a":1,"b":[1,2]}"#, #"{"b":[1.0,3,4],"a":1e0}"#, ["changed b[1]", "added b[2]"]),
            ("{}", "[]", ["changed (all)"]), ("1", "1.0", []), (#"{"a":1,"a":2}"#, #"{"a":2}"#, []),
            (#"{"x y":{"é":1},"":2}"#, #"{"x y":{},"":3}"#, [#"removed ["x y"].é"#, #"changed [""]"#]),
            (#"[[[{"a.b":null}]]]"#, #"[[[{"a.b":false}]]]"#, [#"changed [0][0][0]["a.b"]"#]),
            ("123456789012345678901234567890", "123456789012345678901234567891", ["changed (all)"]),
        ])
    func differences(old: String, new: String, told: [String]) throws {
        let differences = StateDifference.all(
            from: try RawJSON(checking: Array(old.utf8)), to: try RawJSON(checking: Array(new.utf8)))
        #expect(differences.map { "\($0.kind) \($0.pathText)" } == told)
    }

    @Test(
        "a state laid out for people says the same",
        arguments: ["{}", "[ ]", #"{"a":[1,{"b":"x,{\"y\":[]}"}],"c":{}}"#, "\"a\"", "[[],[]]"])
    func indented(text: String) throws {
        let laidOut = JSONText.indented(Array(text.utf8))
        #expect(try RawJSON(checking: laidOut).isSame(as: RawJSON(checking: Array(text.utf8))))
        #expect(
            String(decoding: JSONText.indented(Array(#"{"a":[1,{}],"b":2}"#.utf8)), as: UTF8.self)
                == "{\n  \"a\": [\n    1,\n    {}\n  ],\n  \"b\": 2\n}")
    }

    @Test("SHA-256 is what FIPS 180-4 says it is, however the bytes come")
    func checksum() {
        func digest(_ text: String) -> String {
            var hash = SHA256()
            hash.update(text.utf8)
            return hash.hexDigest
        }
        #expect(digest("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")
        #expect(digest("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(
            digest("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq")
                == "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1")
        let bytes = (0..<300).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        for count in 0...bytes.count {
            var (whole, parts) = (SHA256(), SHA256())
            whole.update(bytes[..<count])
            for start in stride(from: 0, to: count, by: 13) { parts.update(bytes[start..<min(start + 13, count)]) }
            #expect(whole.hexDigest == parts.hexDigest)
        }
    }

    @Test(
        "a line of an export is read as it was printed, and anything else is told to be none",
        arguments: [UInt64(1), 2])
    func exportLines(seed: UInt64) throws {
        var random = SplitMix64(seed: seed)
        let states = [
            nil, "null", #"{"state":1,"a":",\"state\":"}  "#, "[ 1 ]",
            String(repeating: "[", count: 512) + String(repeating: "]", count: 512),
        ]
        for state in states {
            let version = VersionEntry(
                game: try GameKey(collection: "c", id: #"\,'state':{"#.filter { $0 != "{" }),
                detail: VersionDetail(
                    revision: 7, outcome: .lost, saved: .earliest, stamp: .latest, received: .earliest,
                    device: Said.token.device, base: nil, rival: 3, schema: 2, size: state?.utf8.count ?? 0,
                    isHead: false,
                    isTombstone: state == nil), state: state.map { Array($0.utf8) })
            let line = ExportLine.version(version).bytes.dropLast()
            guard case .version(let read) = try ExportLine(line) else {
                Issue.record("no version")
                continue
            }
            #expect(read == version)
            for _ in 0..<300 {
                var bytes = Array(line)
                for _ in 0..<Int.random(in: 1...3, using: &random) {
                    let place = Int.random(in: bytes.indices, using: &random)
                    if Bool.random(using: &random) {
                        bytes.remove(at: place)
                    } else {
                        bytes[place] = UInt8.random(in: 0...255, using: &random)
                    }
                }
                _ = try? ExportLine(bytes[...])
            }
        }
        for text in [
            "", "{}", "[]", "{\"ieum\":\"history\"}", "{\"end\":1}", "{\"revision\":1,\"state\":}", "nul",
            "{\"device\":{}}",
        ] {
            #expect(throws: ExportLine.Problem.self, "\(text)") { try ExportLine(Array(text.utf8)[...]) }
        }
    }

    @Test(
        "a daemon that is older is told as one, and what it can do still works",
        arguments: [
            ["show", "1"], ["diff", "1", "2"], ["conflicts"], ["restore", "1"], ["export"], ["import", "-"],
        ])
    func olderDaemon(arguments: [String]) throws {
        let verb = arguments[0] == "export" ? "DEVICES" : arguments[0] == "import" ? "IMPORT" : "VERSIONS"
        let folder = try TemporaryFolder()
        let peer = Peer([
            .say(Said.greeting()), .hear("LOGIN"), .say(Said.signIn(revision: 9)), .hear(verb),
            .say("ERR unknown-command hint=\"HELP lists the commands.\" \"there is no command \(verb)\"\n"),
        ])
        let home = try folder.home(at: peer.address)
        var arguments = arguments
        if arguments[0] == "import" {
            arguments[1] = folder.path + "/file"
            let header = ExportLine.header(.init(epoch: Said.epoch, player: Said.token.player, exported: .earliest))
            try Data(header.bytes).write(to: URL(fileURLWithPath: arguments[1]))
        }
        let program = try RunningProgram(arguments, home: home.path)
        #expect(program.end() == 1)
        #expect(program.talk.contains("there is no command \(verb) (unknown-command)"), "\(program.talk)")
        #expect(program.talk.contains("The server is older than this program"), "\(program.talk)")
        #expect(program.data.isEmpty || arguments[0] == "export")
    }
}
