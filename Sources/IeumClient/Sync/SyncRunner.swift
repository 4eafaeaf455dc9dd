import Synchronization
import Wire

/// The shell of a ``SyncCore``: carries out its actions on a thread of its own, where everything here happens.
///
/// `@unchecked Sendable`: the reference goes to other threads only to be posted back; see ``ConnectionThread``.
final class SyncRunner: LineTransportDelegate, @unchecked Sendable {
    private let thread: any ConnectionThread
    private let server: ServerAddress
    private let storage: any SyncStorage
    private let hub: SyncHub
    private var core: SyncCore
    private var transport: (any LineTransport)?
    private var timer: (any ThreadTimer)?
    private var isDue = false
    private var isOver = false
    private var foreignTimer: (any ThreadTimer)?
    private var foreignChanges: Int64?
    private let isSavePosted = Mutex(false)
    private let report: (@Sendable (SyncReport) -> Void)?
    private let renewedToken: (@Sendable () -> Token?)?
    private var replies: [SyncCore.QueryID: @Sendable (Result<[ServerLine], ClientError>) -> Void] = [:]
    private var reported = ReportedTurn.nothing
    private var storageError: (any Error)?

    init(
        on thread: any ConnectionThread, server: ServerAddress, storage: any SyncStorage, hub: SyncHub, core: SyncCore,
        report: (@Sendable (SyncReport) -> Void)? = nil, renewedToken: (@Sendable () -> Token?)? = nil
    ) {
        self.report = report
        self.renewedToken = renewedToken
        self.thread = thread
        self.server = server
        self.storage = storage
        self.hub = hub
        self.core = core
        self.core.canRenewToken = renewedToken != nil
    }

    // MARK: From the engine, on the thread

    func start() {
        event { core, now in
            // A store that cannot be read now may be when there is a connection.
            let point = Result { try storage.syncPoint() }
            core.start((try? point.get()) ?? SyncPoint(), at: now)
            _ = try point.get()
        }
        // From the start, so that the first pull is the one that is waited for.
        if report != nil { wait(Self.reported) }
    }

    func stop() {
        event { $0.stop(at: $1) }
    }

    func retryNow() {
        event { $0.retryNow(at: $1) }
    }

    /// The app saved something. From any thread; a thousand saves are one piece of news.
    func announceSave() {
        let isFirst = isSavePosted.withLock { isPosted in
            defer { isPosted = true }
            return !isPosted
        }
        if isFirst { thread.post { self.saved() } }
    }

    private func saved() {
        isSavePosted.withLock { $0 = false }
        guard core.listensToSaves else { return }
        event { core, now in core.savedLocally(try storage.syncPoint(), at: now) }
    }

    /// Looks whether another process saved something: nobody tells of that.
    private func lookForForeignSaves() {
        guard !isOver, core.phase == .ready else { return }
        do {
            let changes = try storage.foreignChanges()
            if foreignChanges != changes { saved() }
            foreignChanges = changes
        } catch {
            core.storageTrouble = "\(error)"
            schedule()
        }
        foreignTimer?.schedule(after: core.settings.foreignSaves)
    }

    func wait(_ id: SyncCore.WaiterID) {
        event { core, now in
            do {
                core.savedLocally(try storage.syncPoint(), at: now)
                core.wait(id, at: now)
            } catch {
                // What is unsent cannot be known.
                core.actions.append(.finishWaiter(id, .storage("\(error)")))
                throw error
            }
        }
    }

    /// The waiter, and the first of the questions, that no task of the app's has: theirs are positive.
    private static let reported = -1

    /// Asks the server something; the reply comes on the thread.
    func ask(_ command: Command, reply: @escaping @Sendable (Result<[ServerLine], ClientError>) -> Void) {
        let id = (replies.keys.min() ?? 0) - 1
        replies[id] = reply
        ask(command, for: id)
    }

    func cancelWait(_ id: SyncCore.WaiterID) {
        event { core, _ in core.cancelWait(id) }
    }

    func ask(_ command: Command, for id: SyncCore.QueryID) {
        event { $0.ask(command, for: id, at: $1) }
    }

    /// Ends for good.
    func end() {
        stop()
        isOver = true
        perform()
        timer = nil
        foreignTimer = nil
        thread.end()
    }

    // MARK: From the connection

    func lineReceived(_ line: Span<UInt8>) {
        core.lineReceived(line, at: .now)
        // Carried out when all lines that came together are read: what belongs together is stored together.
        schedule()
    }

    func lineTooLong() {
        event { $0.lineTooLong(at: $1) }
    }

    func ended(_ end: TransportEnd) {
        event { $0.connectionEnded(end, at: $1) }
    }

    // MARK: Actions

    private func event(_ body: (inout SyncCore, SyncMoment) throws -> Void) {
        guard !isOver else { return }
        do {
            try body(&core, .now)
        } catch {
            core.storageTrouble = "\(error)"
            report?(.storageFailed(error, retryIn: nil))
        }
        schedule()
    }

    private func schedule() {
        guard !isDue else { return }
        isDue = true
        thread.post { self.perform() }
    }

    private func perform() {
        isDue = false
        while !core.actions.isEmpty {
            let actions = core.actions
            core.actions = []
            // Who hears of a status is to find its reason.
            hub.noticed(core.problem)
            for action in actions { perform(action) }
        }
        hub.noticed(core.problem)
        reportTurn()
        let timer = self.timer ?? thread.makeTimer { [unowned self] in self.timePassed() }
        self.timer = timer
        timer.schedule(after: core.deadline.map { max($0 - .now, .zero) })
        watchForeignSaves()
    }

    private func reportTurn() {
        let now = ContinuousClock.now
        if let error = storageError, case .waiting(let until) = core.phase {
            storageError = nil
            reported = .waiting(until: until)
            report?(.storageFailed(error, retryIn: max(until - now, .zero)))
            return
        }
        let turn = core.report(after: reported, at: now)
        reported = turn.turn
        if let news = turn.report { report?(news) }
    }

    private func watchForeignSaves() {
        guard core.phase == .ready else {
            foreignTimer = nil
            return
        }
        guard foreignTimer == nil else { return }
        let timer = thread.makeTimer { [unowned self] in self.lookForForeignSaves() }
        foreignTimer = timer
        // Told once in any case: something may have come since the connection's first point.
        foreignChanges = nil
        timer.schedule(after: .zero)
    }

    private func timePassed() {
        let deadline = core.session?.deadline
        event { $0.timePassed(to: $1, movedBytes: transport?.movedBytes ?? 0) }
        // What takes longer than it should, and moves: who waits for a report is to know.
        if let deadline, let later = core.session?.deadline, later > deadline { report?(.worked) }
    }

    private func perform(_ action: SyncCore.Action) {
        switch action {
        case .connect: connect()
        case .send(let bytes): transport?.send(bytes)
        case .setMaxLineBytes(let count): transport?.setMaxLineBytes(count)
        case .disconnect:
            transport?.close()
            transport = nil
        case .meet, .readUnanswered, .takeOutgoing, .acknowledge, .refuse, .apply, .startOver, .readErrands, .settle:
            do {
                try store(action)
            } catch {
                storageError = error
                core.storageFailed("\(error)", at: .now)
            }
        case .readToken(let reason): core.tokenRead(renewedToken?(), reason, at: .now)
        case .tell(let status):
            hub.tell(status)
            report?(.worked)
        case .tellSignedOut(let reason):
            hub.tellSignedOut(reason)
            report?(.signedOut(reason, core.trouble))
        case .answer(let id, let result):
            if let reply = replies.removeValue(forKey: id) { reply(result) } else { hub.answer(id, result) }
        case .finishWaiter(Self.reported, let failure):
            if failure == nil { report?(.synced) }
        case .finishWaiter(let id, let failure): hub.finish(id, failure)
        }
    }

    private func connect() {
        do throws(ClientError) {
            // Before the greeting is overdue, so that who is not there is told from who is there and silent.
            transport = try thread.connect(to: server, within: core.settings.connecting * 4 / 5, delegate: self)
        } catch {
            core.connectionEnded(.unreachable(error.message), at: .now)
        }
    }

    private func store(_ action: SyncCore.Action) throws {
        switch action {
        case .meet(let signIn, let epoch, let offset, let offersRefused):
            let result: Result<SyncPoint, SyncStorageError>
            do {
                result = .success(
                    try storage.meet(signIn, epoch: epoch, clockOffset: offset, offersRefused: offersRefused))
            } catch let error as SyncStorageError {
                result = .failure(error)
            }
            core.met(result, at: .now)
        case .readUnanswered: core.unanswered(try storage.unanswered(), at: .now)
        case .takeOutgoing(let limit, let bytes):
            let pushes = try storage.takeOutgoing(limit: limit, bytes: bytes)
            core.taken(pushes, try storage.syncPoint(), at: .now)
        case .acknowledge(let answers): stored(try storage.acknowledge(answers))
        case .refuse(let push, let error): stored(try storage.refuse(push, error))
        case .apply(let page, let since): stored(try storage.apply(page, since: since))
        case .startOver(let epoch): stored(try storage.startOver(epoch: epoch))
        case .readErrands(let limit): core.errandsRead(try storage.errands(limit: limit), at: .now)
        case .settle(let errand, let result): stored(try storage.settle(errand, result))
        case .connect, .send, .setMaxLineBytes, .disconnect, .readToken, .tell, .tellSignedOut, .answer, .finishWaiter:
            break
        }
    }

    private func stored(_ point: SyncPoint) {
        hub.eventsAreThere(upTo: point.lastEvent)
        core.stored(point, at: .now)
    }
}
