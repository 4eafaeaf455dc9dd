import EventLoop
import Postgres
import Wire

/// Carries the pushes of its share of the players to PostgreSQL: group commit.
///
/// While a batch is under way, what arrives gathers; then all of it goes as one statement. There is no artificial delay:
/// a lone push leaves in the turn of the loop in which it came. A batch whose fate is unknown, because the connection
/// broke, or that met a passing failure, is sent again as it was: the push rule recognises what it stored already.
final class Lane {
    /// What the lane tells its owner.
    protocol Owner: AnyObject {
        /// A batch is durable and its answers went out.
        func laneCommitted(_ batch: [PendingPush], _ answers: [PushResult], took: Duration)
        /// A batch goes again.
        func laneRetries(_ error: DatabaseError)
        /// One push was answered with an error: it waited too long (no error given), or the database refused it, which is
        /// a mistake of ours.
        func laneGaveUp(_ push: PendingPush, _ error: DatabaseError?)
    }

    private let loop: EventLoop
    private let link: DatabaseLink
    private let limits: ServerConfiguration.Limits
    // The server owns its lanes and outlives them.
    private unowned let owner: any Owner
    private var queue = PushQueue()
    private var arguments = PushArguments()
    private var underWay: [PendingPush] = []
    private var sentAt: ContinuousClock.Instant
    private var isDispatchEnqueued = false
    private var sweep: EventLoop.Timer?
    /// Batches in a row that met a passing failure; the lane waits longer after each.
    private var failuresInARow = 0
    private var pause: EventLoop.Timer?

    init(loop: EventLoop, link: DatabaseLink, limits: ServerConfiguration.Limits, owner: any Owner) {
        self.loop = loop
        self.link = link
        self.limits = limits
        self.owner = owner
        sentAt = loop.now
        link.whenReady { [weak self] _ in self?.dispatchSoon() }
    }

    /// Begins to connect.
    func start() { link.start() }

    /// Whether every push was answered.
    var isIdle: Bool { queue.isEmpty && underWay.isEmpty }

    /// Pushes that wait or are under way.
    var count: Int { queue.count + underWay.count }

    /// Takes a push; its origin hears once, after the commit or of a failure.
    func add(_ push: PendingPush) {
        queue.append(push)
        dispatchSoon()
        startSweep()
    }

    /// Lets the callbacks that are due in this turn of the loop add their pushes first.
    private func dispatchSoon() {
        guard !isDispatchEnqueued, pause == nil, underWay.isEmpty, !queue.isEmpty else { return }
        isDispatchEnqueued = true
        loop.enqueue { [weak self] in
            self?.isDispatchEnqueued = false
            self?.dispatch()
        }
    }

    private func dispatch() {
        guard underWay.isEmpty, let connection = link.connection else { return }
        underWay = queue.takeBatch(maxRows: limits.maxBatchRows, maxBytes: limits.maxBatchBytes)
        guard !underWay.isEmpty else { return }
        sentAt = loop.now
        arguments.fill(with: underWay, at: sentAt)
        connection.execute(PushArguments.statement, arguments.list) { [weak self] result in
            self?.finished(result)
        }
    }

    private func finished(_ result: Result<QueryResult, DatabaseError>) {
        let batch = underWay
        underWay = []
        switch result {
        case .success(let rows):
            do throws(DatabaseError) {
                let answers = try PushAnswers.read(rows, batch)
                queue.finished(rows: batch.count)
                failuresInARow = 0
                for (push, answer) in zip(batch, answers) {
                    if case .success = answer, !push.isDeviceVerified(at: sentAt) {
                        push.origin.deviceVerified(at: sentAt)
                    }
                    push.origin.pushFinished(push.request, answer)
                }
                owner.laneCommitted(batch, answers, took: loop.now - sentAt)
            } catch {
                failed(batch, error)
            }
        case .failure(let error):
            failed(batch, error)
        }
        dispatchSoon()
    }

    /// Decides by the SQLSTATE alone, since constraint names differ on a distributed database.
    private func failed(_ batch: [PendingPush], _ error: DatabaseError) {
        if error.isRetryable || error.isRefusalOfChanges {
            owner.laneRetries(error)
            queue.putBack(batch)
            pauseBeforeRetry()
            if error.sqlState == .readOnlySQLTransaction { link.renew(after: error) }
        } else if batch.count > 1 {
            queue.putBack(batch, isolating: true)
        } else {
            queue.finished(rows: batch.count)
            for push in batch {
                owner.laneGaveUp(push, error)
                push.origin.pushFinished(push.request, .failure(.internalError()))
            }
        }
    }

    /// The first retry goes at once; a failure that stays is not tried in a tight loop.
    private func pauseBeforeRetry() {
        failuresInARow += 1
        guard failuresInARow > 1 else { return }
        let delay = Duration.milliseconds(5 << min(failuresInARow, 7))
        pause = EventLoop.Timer(on: loop, after: delay) { [weak self] in
            self?.pause = nil
            self?.dispatchSoon()
        }
    }

    /// While pushes wait, looks for those that waited too long because the database is away.
    private func startSweep() {
        guard sweep == nil else { return }
        sweep = EventLoop.Timer(on: loop, after: .milliseconds(250), every: .milliseconds(250)) { [weak self] in
            self?.expire()
        }
    }

    private func expire() {
        for push in queue.removeExpired(at: loop.now) {
            owner.laneGaveUp(push, nil)
            push.origin.pushFinished(push.request, .failure(.unavailable()))
        }
        if isIdle { sweep = nil }
    }
}
