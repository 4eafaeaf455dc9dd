import EventLoop
import Foundation
import Glibc
import Handle
import IeumClient

/// Plays 한들 on a terminal: brings keys and news to the ``PlaySession``, does what it says, and paints what it shows.
///
/// One thread with one loop. Callbacks only note what came; all work is done between two turns of the loop.
package final class PlayLoop {
    /// Which game is played first.
    package enum Opening: Hashable, Sendable {
        /// The word of the day.
        case today
        /// The word of another day.
        case day(Int)
        /// The practice that was begun last, or another word.
        case practice
    }

    /// Why the loop ended.
    package enum End: Hashable, Sendable {
        /// The player left, or the terminal is gone.
        case left
        /// By a signal, which should now have its own effect.
        case signal(Int32)
    }

    private let terminal: Terminal
    private let desk: GameDesk
    private let words: any WordBook
    private let loop: EventLoop
    private let news: NewsBox
    private let now: () -> Date
    private var session: PlaySession
    private var painter: Painter
    private var reader = KeyReader()
    private var input: [UInt8] = []
    private var lastByte = ContinuousClock.now
    private var lastRetry = ContinuousClock.now
    private var today: Int
    private var flags = Flags()
    private var end: End?
    private var conflict: SyncConflict?

    /// What signals have asked for.
    private struct Flags {
        var isResized = false
        var isSuspending = false
        var isContinued = false
        var hasAny: Bool { isResized || isSuspending || isContinued }
    }

    /// Opens the game.
    /// - Throws: ``StoreError``, ``EventLoopError``.
    package init(
        on terminal: Terminal, store: GameStore, sync: SyncEngine?, device: String?, opening: Opening,
        words: any WordBook, now: @escaping () -> Date = { Date() }
    ) throws {
        self.terminal = terminal
        self.words = words
        self.now = now
        loop = try EventLoop()
        news = NewsBox(waking: loop.remote)
        desk = GameDesk(store: store, sync: sync, news: news)
        painter = Painter(terminal.ability)
        today = AnswerWords.number(of: now())
        let game =
            switch opening {
            case .today: try desk.game(ofDay: today)
            case .day(let number): try desk.game(ofDay: number)
            case .practice: try desk.practice(besides: today)
            }
        let state: Connection.State = sync == nil ? .local : .connecting
        session = PlaySession(game, connection: Connection(state, device: device))
    }

    /// Plays until the player leaves. The terminal is as it was before when this returns or throws.
    /// - Throws: ``TerminalError``, ``EventLoopError``; ``StoreError`` when a key could not be saved.
    package func run() throws -> End {
        let signals = try watchSignals()
        defer { for signal in signals { signal.cancel() } }
        let keys = try DescriptorWatch(on: loop, descriptor: terminal.input, interest: .read) { [unowned self] _ in
            read()
        }
        defer { keys.cancel() }
        try terminal.enter()
        defer { terminal.leave() }
        session.size = terminal.size
        desk.start(showing: session.game.id)
        defer { desk.stop() }
        refresh()
        while true {
            paint()
            let patience: Duration = reader.isInside ? Self.pause : .seconds(1)
            _ = loop.run(until: { [unowned self] in hasWork }, timeout: patience)
            try work()
            if let end { return end }
        }
    }

    /// What to tell the player when the screen is gone: the result, to be copied.
    package var farewell: String? { session.game.isGameFinished ? session.game.resultToShare : nil }

    /// Lets the last saves reach the server, for a moment at most.
    /// - Returns: whether they have.
    package func waitUntilSent(atMost patience: Duration) -> Bool { desk.waitUntilSent(atMost: patience) }

    /// Whether the server takes nothing from this device any more: it was revoked, say.
    package var isSignedOut: Bool { desk.sync?.currentStatus == .signedOut }

    /// How long a sequence of bytes may be interrupted.
    private static let pause = Duration.milliseconds(100)

    private var hasWork: Bool { !input.isEmpty || flags.hasAny || end != nil || !news.isEmpty }

    private func read() {
        switch terminal.read() {
        case .bytes(let bytes): input += bytes
        case .nothing: break
        case .ended: end = .left
        }
    }

    private func watchSignals() throws(EventLoopError) -> [SignalWatch] {
        var watches: [SignalWatch] = []
        for signal in [SIGTERM, SIGHUP, SIGINT] {
            watches.append(try SignalWatch(on: loop, signal: signal) { [unowned self] in end = .signal(signal) })
        }
        watches.append(try SignalWatch(on: loop, signal: SIGWINCH) { [unowned self] in flags.isResized = true })
        watches.append(try SignalWatch(on: loop, signal: SIGTSTP) { [unowned self] in flags.isSuspending = true })
        watches.append(try SignalWatch(on: loop, signal: SIGCONT) { [unowned self] in flags.isContinued = true })
        return watches
    }

    // MARK: A turn

    private func work() throws {
        // A closed window comes as SIGHUP and SIGCONT at once: who is about to end asks nothing more of the terminal.
        if end == nil { try lookAfterTerminal() }
        flags = Flags()
        let isPausing = input.isEmpty && reader.isInside && lastByte.duration(to: .now) >= Self.pause
        if isPausing { reader.pause() }
        for item in news.takeAll() { try hear(item) }
        if !input.isEmpty {
            lastByte = .now
            let bytes = input
            input = []
            // What was typed before a signal counts, what was typed after the key to leave does not.
            let before = end
            for byte in bytes where end == before {
                guard let key = reader.read(byte) else { continue }
                for action in session.press(key) { try perform(action) }
            }
        }
        lookAtTheClock()
    }

    private func paint() {
        let isShown = terminal.write(painter.paint(session.canvas(hasColours: painter.hasColours)))
        // What the terminal took of it nobody knows.
        if !isShown { painter.forget() }
    }

    private func perform(_ action: PlaySession.Action) throws {
        switch action {
        case .make(let move):
            session.played(try desk.make(move, in: session.game, at: now()))
            desk.count(&session.connection)
            retry()
        case .lookUp(let letters):
            words.lookUp(Hangul.readings(of: letters)) { [news] verdict in news.put(.verdict(verdict, letters)) }
        case .openNext: try openNext()
        case .settle(let takingOther): try settle(takingOther: takingOther)
        case .redraw: painter.forget()
        case .suspend: try suspend()
        case .leave: end = .left
        }
    }

    private func openNext() throws {
        today = AnswerWords.number(of: now())
        let game = try desk.game(ofDay: today)
        show(game.isGameFinished ? try desk.practice(besides: today) : game)
    }

    private func show(_ game: Game) {
        session.open(game)
        desk.watch(game.id)
        refresh()
    }

    /// A day that nobody has begun gives way to the next one.
    private func lookAtTheClock() {
        let number = AnswerWords.number(of: now())
        guard number != today else { return }
        let isYesterdays =
            session.game.gameNumber == today && session.game.guesses.isEmpty && session.game.typed.isEmpty
        today = number
        if isYesterdays, let game = try? desk.game(ofDay: number) { show(game) } else { refresh() }
    }

    /// Offline, whoever plays is worth a try at once; not more often than every other second.
    private func retry() {
        guard session.connection.state == .offline, lastRetry.duration(to: .now) > .seconds(2) else { return }
        lastRetry = .now
        desk.sync?.retryNow()
    }

    // MARK: News

    private func hear(_ item: News) throws {
        switch item {
        case .changed: refresh()
        case .statistics(let statistics):
            session.statistics = statistics
            refresh()
        case .status(let status):
            session.connection.take(status)
            desk.count(&session.connection)
        case .verdict(let verdict, let letters):
            for action in session.answered(verdict, for: letters) { try perform(action) }
        case .event(.conflict(let conflict)) where conflict.collection == Game.collection: meet(conflict)
        case .event(.refused(let refusal)):
            let isShown = refusal.collection == Game.collection && refusal.id == session.game.id
            session.say(
                "The server does not take \(isShown ? "this game" : "another game"): \(refusal.error)", isAlert: true)
            desk.nextEvent()
        case .event(.conflict):
            // Of another program's games: nothing to choose here, but nobody else is told.
            session.say("Another game has a conflict: ieum conflicts")
            desk.nextEvent()
        case .event: desk.nextEvent()
        }
    }

    /// Shows what is stored now.
    private func refresh() {
        do {
            session.found(try desk.stored(session.game))
            if let conflict { session.met(desk.clash(conflict, device: session.connection.device)) }
        } catch {
            session.failed("This game cannot be read here, and stays as it is: \(error)")
        }
        let day = try? desk.game(ofDay: today)
        session.isDayWaiting = day.map { !$0.isGameFinished && $0.id != session.game.id } ?? false
        desk.count(&session.connection)
    }

    private func meet(_ conflict: SyncConflict) {
        let clash = desk.clash(conflict, device: session.connection.device)
        if clash.needsChoice {
            self.conflict = conflict
            session.met(clash)
        } else {
            if conflict.id == session.game.id { session.say("Two devices typed at once; the later one counts") }
            desk.nextEvent()
        }
    }

    private func settle(takingOther: Bool) throws {
        let taken = takingOther ? conflict?.loser : nil
        if let taken { try desk.sync?.restore(taken) }
        conflict = nil
        session.settled()
        // What is found now was taken here: that it comes from another device must not be said.
        refresh()
        session.say("\(taken == nil ? "Kept" : "Taken"); the other one is in the history")
        desk.nextEvent()
    }

    // MARK: To the background and back

    private func lookAfterTerminal() throws {
        if flags.isSuspending { try suspend() }
        if flags.isContinued {
            try onTerminal { () throws(TerminalError) in try terminal.reassert() }
            drawAnew()
        }
        if flags.isResized { session.size = terminal.size }
    }

    /// Takes the terminal again. One that is gone is the end of the game, not a fault of it.
    private func onTerminal(_ take: () throws(TerminalError) -> Void) throws(TerminalError) {
        do throws(TerminalError) {
            try take()
        } catch {
            guard error.isGone else { throw error }
            end = end ?? .left
        }
    }

    private func suspend() throws {
        terminal.leave()
        // The signal is to have its own effect now, for all of the group that the terminal knows as this job.
        var (standard, watching) = (sigaction(), sigaction())
        standard.__sigaction_handler.sa_handler = SIG_DFL
        sigaction(SIGTSTP, &standard, &watching)
        kill(0, SIGTSTP)
        // Here the program stands until somebody continues it.
        sigaction(SIGTSTP, &watching, nil)
        try onTerminal { () throws(TerminalError) in try terminal.enter() }
        drawAnew()
    }

    private func drawAnew() {
        painter.forget()
        session.size = terminal.size
    }
}
