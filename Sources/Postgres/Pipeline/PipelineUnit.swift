import CLibPQ

/// What goes between two syncs of a pipeline: one transaction, and what is known of its outcome so far.
struct PipelineUnit {
    /// Whom the outcome is for.
    enum Purpose {
        case one(DatabaseConnection.Completion)
        case together((Result<[QueryResult], DatabaseError>) -> Void)
        case preparation(of: String)
    }

    let purpose: Purpose
    /// Results that are still to come before the sync.
    private var outstanding: Int
    /// A unit that was never sent, because of a mistake that we saw ourselves, and waits for its turn to say so.
    let isUnsent: Bool
    /// A statement whose preparation was not confirmed when this unit was sent.
    var unconfirmedStatement: String?

    private var latest: QueryResult?
    private var earlier: [QueryResult] = []
    private(set) var failure: DatabaseError?

    init(_ purpose: Purpose, statements: Int) {
        self.purpose = purpose
        outstanding = statements
        isUnsent = false
    }

    /// A unit that has failed before it was sent.
    init(_ purpose: Purpose, unsent failure: DatabaseError) {
        self.purpose = purpose
        outstanding = 0
        isUnsent = true
        self.failure = failure
    }

    /// Takes note of one result, and takes it over.
    mutating func receive(_ result: OpaquePointer) {
        outstanding -= 1
        switch PQresultStatus(result) {
        case PGRES_TUPLES_OK, PGRES_COMMAND_OK, PGRES_EMPTY_QUERY:
            if let latest { earlier.append(latest) }
            latest = QueryResult(taking: result)
            return
        case PGRES_PIPELINE_ABORTED:
            failure = failure ?? DatabaseError(.server, "an earlier statement of the same transaction failed")
        case PGRES_FATAL_ERROR, PGRES_BAD_RESPONSE, PGRES_NONFATAL_ERROR:
            // Also at commit, after all results: a deferred constraint, say.
            failure = failure ?? DatabaseError(result: result)
        default:
            failure = failure ?? DatabaseError(.protocol, "a COPY cannot be executed here")
        }
        PQclear(result)
    }

    /// Replaces the error of a statement that does not exist by the reason why it does not.
    mutating func explain(by preparationFailure: (String) -> DatabaseError?) {
        guard failure?.sqlState == .invalidSQLStatementName, let name = unconfirmedStatement else { return }
        failure = preparationFailure(name) ?? failure
    }

    /// Calls the completion. Without an error of its own, a unit of which results are missing takes `reason`.
    func finish(lacking reason: DatabaseError?) {
        let failure = failure ?? reason
        switch purpose {
        case .preparation: break
        case .one(let completion):
            if let failure { return completion(.failure(failure)) }
            completion(latest.map { .success($0) } ?? .failure(Self.noResult))
        case .together(let completion):
            if let failure { return completion(.failure(failure)) }
            completion(.success(earlier + (latest.map { [$0] } ?? [])))
        }
    }

    /// Whether every statement has had its result or failed, as it must at the sync.
    var isComplete: Bool { outstanding <= 0 || failure != nil }

    static let noResult = DatabaseError(.protocol, "the server's answers do not fit what was asked")
}

extension SQLState {
    /// 26000: no prepared statement of that name.
    static let invalidSQLStatementName = SQLState(rawValue: "26000")
}
