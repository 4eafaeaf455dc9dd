import EventLoop
import Foundation
import Postgres
import Wire

/// Database connections for everything but pushes: each carries many requests at once in libpq's pipeline mode.
///
/// A request waits while no connection is ready, up to its deadline; one that may be repeated survives the loss of its
/// connection.
final class DatabasePool {
    /// What a request gets: rows, or why not.
    typealias Completion = (Result<QueryResult, DatabaseError>) -> Void

    /// An object, so that a queue has a word for each, and those who have it in hand share it.
    private final class Request {
        let statement: Statement
        let parameters: ParameterList
        /// The player whose rows a read sees; nil: no read of tables.
        let player: ParameterList?
        let isRepeatable: Bool
        let isStrangers: Bool
        let deadline: ContinuousClock.Instant
        let completion: Completion

        init(
            statement: Statement, parameters: ParameterList, player: ParameterList?, isRepeatable: Bool,
            isStrangers: Bool, deadline: ContinuousClock.Instant, completion: @escaping Completion
        ) {
            self.statement = statement
            self.parameters = parameters
            self.player = player
            self.isRepeatable = isRepeatable
            self.isStrangers = isStrangers
            self.deadline = deadline
            self.completion = completion
        }
    }

    /// Every statement is a look-up by key. Without these settings, plans that were made while the tables were small scan
    /// them when they have grown.
    static let sessionSettings: KeyValuePairs<String, String> = [
        "enable_seqscan": "off", "enable_hashjoin": "off", "enable_mergejoin": "off", "jit": "off",
    ]

    /// Names the player whose rows the rest of the transaction sees: the policies of SQL/migrations/0017_daemon.sql. Where nobody
    /// is named nothing is seen.
    static let claim = Statement(
        "claim-player", "SELECT set_config('ieum.player', $1::text, true)", parameterTypes: [.uuid])

    /// Requests that one connection carries at a time; PostgreSQL works on one of them.
    private static let maxUnderWay = 32

    private let loop: EventLoop
    private let links: [DatabaseLink]
    private let timeout: Duration
    private let log: Log
    private var underWay: [Int]
    private var waiting = FIFO<Request>()
    private var strangers = FIFO<Request>()
    private var strangersUnderWay = 0
    private var sweep: EventLoop.Timer?

    init(loop: EventLoop, links: [DatabaseLink], timeout: Duration, log: Log) {
        self.loop = loop
        self.log = log
        self.links = links
        self.timeout = timeout
        underWay = links.map { _ in 0 }
        for link in links { link.whenReady { [weak self] _ in self?.sendWaiting() } }
    }

    /// Begins to connect.
    func start() {
        for link in links { link.start() }
    }

    /// Whether a connection is ready.
    var isReady: Bool { links.contains { $0.connection != nil } }

    /// Runs a statement and calls back once.
    ///
    /// - Parameters:
    ///   - isRepeatable: running it twice is the same as running it once.
    ///   - isStrangers: for somebody who is not signed in: it waits behind those who are, but for one, and there is one
    ///     under way for every other connection at most.
    func execute(
        _ statement: Statement, _ parameters: ParameterList, isRepeatable: Bool, isStrangers: Bool = false,
        _ completion: @escaping Completion
    ) {
        take(
            Request(
                statement: statement, parameters: parameters, player: nil, isRepeatable: isRepeatable,
                isStrangers: isStrangers, deadline: loop.now + timeout, completion: completion))
    }

    /// Reads what there is of a player, and can see nothing of others; calls back once.
    func read(
        _ statement: Statement, _ parameters: ParameterList, of player: UUID, _ completion: @escaping Completion
    ) {
        var claimed = ParameterList()
        claimed.append(player)
        take(
            Request(
                statement: statement, parameters: parameters, player: claimed, isRepeatable: true,
                isStrangers: false, deadline: loop.now + timeout, completion: completion))
    }

    private func take(_ request: Request) {
        let isStrangers = request.isStrangers
        if waiting.isEmpty, !isStrangers || mayServeStrangers && strangers.isEmpty, let index = freest() {
            send(request, over: index)
        } else {
            wait(request)
        }
    }

    /// A flood of sign-ins is not to keep the database from its work: what it cannot do beside that waits.
    private var mayServeStrangers: Bool { strangersUnderWay < max(1, links.count / 2) }

    private func wait(_ request: Request) {
        if request.isStrangers { strangers.append(request) } else { waiting.append(request) }
        startSweep()
    }

    private func freest() -> Int? {
        var best: Int?
        for index in links.indices where links[index].connection != nil && underWay[index] < Self.maxUnderWay {
            if best.map({ underWay[index] < underWay[$0] }) ?? true { best = index }
        }
        return best
    }

    private func send(_ request: Request, over index: Int) {
        guard let connection = links[index].connection else { return wait(request) }
        underWay[index] += 1
        if request.isStrangers { strangersUnderWay += 1 }
        let answered: Completion = { [weak self] result in
            guard let self else { return request.completion(result) }
            underWay[index] -= 1
            if request.isStrangers { strangersUnderWay -= 1 }
            if case .failure(let error) = result, error.isRetryable, request.isRepeatable,
                loop.now < request.deadline
            {
                wait(request)
            } else {
                if case .failure(let error) = result, !error.isRetryable {
                    log(.error, "request-failed", ["statement": request.statement.name, "error": error])
                }
                request.completion(result)
            }
            if case .failure(let error) = result, error.sqlState == .readOnlySQLTransaction {
                links[index].renew(after: error)
            }
            sendWaiting()
        }
        guard let player = request.player else {
            return connection.execute(request.statement, request.parameters, answered)
        }
        connection.executeTogether([(Self.claim, player), (request.statement, request.parameters)]) { result in
            answered(result.map { $0[1] })
        }
    }

    private func sendWaiting() {
        while let index = freest() {
            // One of theirs goes before all others, so that a flood of those who are signed in keeps nobody out.
            if strangersUnderWay == 0 || waiting.isEmpty && mayServeStrangers, let request = strangers.popFirst() {
                send(request, over: index)
            } else if let request = waiting.popFirst() {
                send(request, over: index)
            } else {
                return
            }
        }
    }

    private func startSweep() {
        guard sweep == nil else { return }
        sweep = EventLoop.Timer(on: loop, after: .milliseconds(250), every: .milliseconds(250)) { [weak self] in
            self?.expire()
        }
    }

    private func expire() {
        let now = loop.now
        let expired =
            waiting.removeAll { $0.deadline <= now } + strangers.removeAll { $0.deadline <= now }
        for request in expired {
            request.completion(.failure(DatabaseError(.timeout, "no database connection was ready in time")))
        }
        sendWaiting()
        if waiting.isEmpty, strangers.isEmpty { sweep = nil }
    }
}

extension DatabaseError {
    /// What a client is told: that the database is away or takes no changes, or that the server made a mistake. Never the database's words.
    var wireError: WireError {
        switch kind {
        case .connection, .timeout, .cancelled: .unavailable()
        case .server, .protocol: isRetryable || isRefusalOfChanges ? .unavailable() : .internalError()
        }
    }
}
