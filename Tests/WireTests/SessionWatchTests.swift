import Testing

@testable import Wire

@Suite("A watching session")
struct SessionWatchTests {
    private func watching(since: Revision = 42, revision: Revision = 42) -> SessionHarness {
        var harness = SessionHarness.signedIn()
        harness.send("WATCH since=\(since)")
        harness.session.watchEstablished(harness.request, revision: revision, into: &harness.effects)
        _ = harness.actions()
        return harness
    }

    private func receipt(_ revision: Revision) -> Result<PushReceipt, WireError> {
        .success(PushReceipt(outcome: .advanced, revision: revision, stamp: .earliest))
    }

    @Test("hears of what is already there, right after its OK")
    func hearsOfTheExisting() {
        var harness = watching(since: 40, revision: 43)
        #expect(harness.lines() == ["OK revision=43", "* CHANGED revision=43"])
        harness = watching(since: 43, revision: 43)
        #expect(harness.lines() == ["OK revision=43"])
    }

    @Test("hears of each change once, and never of an older one")
    func hearsOnce() {
        var harness = watching()
        _ = harness.lines()
        harness.session.changed(upTo: 43, into: &harness.effects)
        harness.session.changed(upTo: 43, into: &harness.effects)
        harness.session.changed(upTo: 41, into: &harness.effects)
        harness.session.changed(upTo: 45, into: &harness.effects)
        #expect(harness.lines() == ["* CHANGED revision=43", "* CHANGED revision=45"])
    }

    @Test("hears of a change that came while the watch was being established")
    func changeWhileEstablishing() {
        var harness = SessionHarness.signedIn()
        harness.send("WATCH since=42")
        harness.session.changed(upTo: 44, into: &harness.effects)
        #expect(harness.lines() == [])
        harness.session.watchEstablished(harness.request, revision: 42, into: &harness.effects)
        #expect(harness.lines() == ["OK revision=42", "* CHANGED revision=44"])
    }

    @Test("that does not read is told the last revision only, when it reads again")
    func coalesces() {
        var harness = watching()
        _ = harness.lines()
        harness.session.outputBlocked(into: &harness.effects)
        #expect(harness.actions() == [.pauseReading])
        for revision in 43...1_000 as ClosedRange<Int64> {
            harness.session.changed(upTo: revision, into: &harness.effects)
        }
        #expect(harness.lines() == [])
        harness.session.outputDrained(into: &harness.effects)
        #expect(harness.lines() == ["* CHANGED revision=1000"])
        #expect(harness.actions() == [.resumeReading])
    }

    @Test("needs no notice of its own push when nothing lies between")
    func ownPush() {
        var harness = watching()
        _ = harness.lines()
        harness.send("PUSH a b {}")
        harness.session.pushFinished(harness.request, receipt(43), into: &harness.effects)
        harness.session.changed(upTo: 43, into: &harness.effects)
        #expect(harness.lines().count == 1)
        harness.send("PUSH a b {}")
        harness.session.pushFinished(harness.request, receipt(45), into: &harness.effects)
        harness.session.changed(upTo: 45, into: &harness.effects)
        #expect(harness.lines().last == "* CHANGED revision=45")
    }

    @Test("hears nothing after UNWATCH, and all of it after the next WATCH")
    func unwatch() {
        var harness = watching()
        _ = harness.lines()
        harness.send("UNWATCH")
        harness.send("UNWATCH")
        #expect(harness.actions() == [.unwatch])
        harness.session.changed(upTo: 50, into: &harness.effects)
        #expect(harness.lines() == ["OK", "OK"])
        harness.send("WATCH since=42")
        harness.session.watchEstablished(harness.request, revision: 50, into: &harness.effects)
        #expect(harness.lines() == ["OK revision=50", "* CHANGED revision=50"])
    }

    @Test("keeps its earlier watch when another one is refused")
    func refusedWatch() {
        var harness = watching()
        _ = harness.lines()
        harness.send("WATCH since=1000")
        harness.session.requestFailed(harness.request, .cursorAhead(revision: 42), into: &harness.effects)
        harness.session.changed(upTo: 43, into: &harness.effects)
        let lines = harness.lines()
        #expect(lines.count == 2 && lines[0].hasPrefix("ERR cursor-ahead revision=42 "))
        #expect(lines[1] == "* CHANGED revision=43")
    }

    @Test("UNWATCH behind a WATCH under way waits for it")
    func unwatchWaits() {
        var harness = SessionHarness.signedIn()
        harness.send("WATCH since=0")
        let request = harness.request
        harness.send("UNWATCH")
        #expect(harness.session.isPaused)
        harness.session.watchEstablished(request, revision: 7, into: &harness.effects)
        #expect(harness.lines() == ["OK revision=7", "OK"])
        #expect(harness.actions().contains(.unwatch))
    }

    @Test("a notice never stands inside a reply of several lines")
    func noticeBetweenReplies() {
        var harness = watching()
        _ = harness.lines()
        harness.send("PULL since=42")
        harness.session.changed(upTo: 44, into: &harness.effects)
        harness.session.readFinished(
            harness.request, lines: Array("GAME one\nGAME two\nEND cursor=44 more=false\n".utf8), into: &harness.effects
        )
        #expect(harness.lines() == ["* CHANGED revision=44", "GAME one", "GAME two", "END cursor=44 more=false"])
    }
}
