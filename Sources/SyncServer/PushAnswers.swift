import Postgres
import Wire

/// The answer to a push: stored, or refused with an error.
typealias PushResult = Result<PushReceipt, WireError>

/// Reads what the SQL function `push_batch` answered: one row of arrays.
struct PushAnswers {
    private enum Column {
        static let outcomes = 0, firsts = 1, revisions = 2, stamps = 3, rivals = 4, losers = 5, headRevisions = 6
        static let headSaves = 7, headStamps = 8, headDevices = 9, headSchemas = 10, headStates = 11
        static let count = 12
    }

    /// nil: all advanced.
    private let outcomes: [String?]?
    private let firsts: [String?]?
    private let revisions: [Int64?]
    private let stamps: [Int64?]
    private let rivals: [Int64?]?
    /// The heads that are told, by the place of the push that lost.
    private let heads: [Int: PushReceipt.Head]

    /// The answers in the order of the batch.
    static func read(_ rows: QueryResult, _ batch: [PendingPush]) throws(DatabaseError) -> [PushResult] {
        let answers = try PushAnswers(rows, count: batch.count)
        var results: [PushResult] = []
        results.reserveCapacity(batch.count)
        for place in batch.indices { results.append(try answers.result(at: place, of: batch[place])) }
        return results
    }

    private init(_ rows: QueryResult, count: Int) throws(DatabaseError) {
        guard rows.rowCount == 1, rows.columnCount == Column.count else {
            throw DatabaseError(
                .protocol, "push_batch answered \(rows.rowCount) rows of \(rows.columnCount) columns")
        }
        outcomes = try rows.isNull(0, Column.outcomes) ? nil : rows.textArray(0, Column.outcomes)
        firsts = try rows.isNull(0, Column.firsts) ? nil : rows.textArray(0, Column.firsts)
        revisions = try rows.int8Array(0, Column.revisions)
        stamps = try rows.microsecondsSince1970Array(0, Column.stamps)
        rivals = try rows.isNull(0, Column.rivals) ? nil : rows.int8Array(0, Column.rivals)
        heads = try rows.isNull(0, Column.losers) ? [:] : Self.heads(rows)
        guard outcomes?.count ?? count == count, firsts?.count ?? count == count, revisions.count == count,
            stamps.count == count, rivals?.count ?? count == count
        else { throw DatabaseError(.protocol, "push_batch answered \(revisions.count) pushes of \(count)") }
    }

    private static func heads(_ rows: QueryResult) throws(DatabaseError) -> [Int: PushReceipt.Head] {
        let losers = try rows.int4Array(0, Column.losers)
        let revisions = try rows.int8Array(0, Column.headRevisions)
        let saves = try rows.microsecondsSince1970Array(0, Column.headSaves)
        let stamps = try rows.microsecondsSince1970Array(0, Column.headStamps)
        let devices = try rows.uuidArray(0, Column.headDevices)
        let schemas = try rows.int4Array(0, Column.headSchemas)
        let states = try rows.jsonArray(0, Column.headStates)
        let counts = [revisions.count, saves.count, stamps.count, devices.count, schemas.count, states.count]
        guard counts.allSatisfy({ $0 == losers.count }) else {
            throw DatabaseError(.protocol, "push_batch answered \(losers.count) losers with \(counts) of their heads")
        }
        var heads: [Int: PushReceipt.Head] = [:]
        for index in losers.indices {
            guard let loser = losers[index], let revision = revisions[index], let saved = saves[index],
                let stamp = stamps[index], let device = devices[index], let schema = schemas[index]
            else { throw DatabaseError(.protocol, "push_batch answered a head with gaps") }
            heads[Int(loser) - 1] = PushReceipt.Head(
                revision: revision, saved: Timestamp(clamping: saved), stamp: Timestamp(clamping: stamp),
                device: DeviceID(device), schema: schema, state: states[index])
        }
        return heads
    }

    /// The place is one of the batch's, and so one of every array.
    private func result(at place: Int, of pending: PendingPush) throws(DatabaseError) -> PushResult {
        var outcome = Outcome.advanced
        if let outcomes {
            guard let word = outcomes[place] else { throw DatabaseError(.protocol, "push_batch answered no outcome") }
            guard let known = Outcome(rawValue: word) else { return .failure(refusal(word, pending, revisions[place])) }
            outcome = known
        }
        guard let revision = revisions[place], let stamp = stamps[place] else {
            throw DatabaseError(.protocol, "push_batch answered \(outcome) without revision or stamp")
        }
        let first = outcome == .repeated ? firsts?[place].flatMap { Outcome(rawValue: $0) } : nil
        return .success(
            PushReceipt(
                outcome: outcome, first: first, revision: revision, stamp: Timestamp(clamping: stamp),
                rival: rivals?[place], head: (first ?? outcome) == .lost ? heads[place] : nil))
    }

    private func refusal(_ word: String, _ pending: PendingPush, _ revision: Int64?) -> WireError {
        switch word {
        case "base-mismatch": .baseMismatch(base: pending.push.base ?? 0)
        case "saved-reused": .savedReused(revision: revision ?? 0)
        case "unknown-device", "unknown-player": .deviceRevoked
        default: .internalError("the push was refused: \(word)")
        }
    }
}
