import Foundation
import Testing
import Wire

@testable import ieum_bench

@Suite("What the load is made of")
struct LoadTests {
    @Test("states are JSON of one line and about 1.1 KB, and every run makes the same")
    func states() throws {
        let states = GameStates()
        #expect(states.all.count == 100)
        #expect(Set(states.all).count == 100)
        #expect(states.all == GameStates().all)
        #expect((1_050.0...1_150.0).contains(states.meanSize))
        for state in states.all {
            let game = try #require(try JSONSerialization.jsonObject(with: Data(state)) as? [String: Any])
            #expect((game["answerBoard"] as? [[Any]])?.map(\.count) == [5, 5, 5, 5, 5, 5])
            #expect(!state.contains(UInt8(ascii: "\n")))
        }
    }

    @Test("a push line is a command that the server's parser reads back")
    func pushLine() throws {
        let state = GameStates().all[0]
        var random = SystemRandomNumberGenerator()
        let line = LineBuffer(capacity: 4_096)
        // The seconds' digits are printed from a text that is kept for a minute: cross some minutes.
        var saved = Int64.random(in: 1_700_000_000_000_000...1_900_000_000_000_000, using: &random)
        for step in 0..<500 {
            let revision = Int64.random(in: 0...Int64.max >> Int64.random(in: 0...62, using: &random), using: &random)
            saved += Int64.random(in: 1...1_000_000, using: &random)
            line.removeAll()
            line.append(Player.Game(id: "a-game").pushPrefix)
            line.append(time: saved)
            line.append(Array(" base=".utf8))
            line.append(decimal: revision)
            line.append(Array(" schema=1 ".utf8))
            line.append(state)
            let command = try CommandParser().parse(Array(line.bytes).span)
            guard case .push(let push) = command else {
                Issue.record("step \(step), saved \(saved), revision \(revision): \(String(describing: command))")
                return
            }
            #expect(push.saved?.microseconds == saved)
            #expect(push.base == revision)
            #expect(push.state == state)
            #expect(push.game.id == "a-game")
        }
    }

    @Test("each push of a player is saved later than the one before")
    func savedRises() {
        let player = Player(id: "p", token: "t")
        var last: Int64 = 0
        for _ in 0..<10_000 {
            let next = player.nextSaved()
            #expect(next > last)
            last = next
        }
    }

    @Test("what children used is counted once, however they end between and during two readings")
    func endingChildrenCount() throws {
        let conductor = try Conductor()
        // Children end all the time, each with some ticks; a reading may never be less than the one before.
        let shell = try ChildProcess(
            conductor,
            ["sh", "-c", "echo go; while :; do (i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done) & wait; done"])
        #expect(try shell.firstLine(atMost: .seconds(60)) == "go")
        let meter = CPUMeter(postmaster: shell.pid)
        var last = try meter.read().postgres
        let first = last
        let deadline = ContinuousClock.now + .seconds(120)
        while last - first < 0.5, ContinuousClock.now < deadline {
            let next = try meter.read().postgres
            // A child's last tick may be rounded down when it is added to its parent's account.
            #expect(next >= last - 0.011)
            last = max(last, next)
        }
        #expect(last - first >= 0.5)
    }

    @Test("the CPU time of children that ended stays on the account")
    func endedChildrenCount() throws {
        let conductor = try Conductor()
        // The shell itself does nothing: a child of it counts, and ends.
        let shell = try ChildProcess(
            conductor,
            ["sh", "-c", "(i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done); echo done; exec 0<&-; sleep 600"])
        #expect(try shell.firstLine(atMost: .seconds(120)) == "done")
        let used = try CPUMeter(postmaster: shell.pid).read()
        #expect(used.postgres >= 0.05)
        #expect(used.daemon == 0)
    }
}
