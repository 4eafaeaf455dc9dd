import Postgres
import Wire

/// The answer to a push: stored, or refused with an error.
typealias PushResult = Result<PushReceipt, WireError>

/// Reads what the SQL function `push` answered.
enum PushAnswers {
    private enum Column {
        static let ordinal = 0, outcome = 1, first = 2, revision = 3, stamp = 4, rival = 5, headRevision = 6
        static let headSaved = 7, headStamp = 8, headDevice = 9, headSchema = 10, headState = 11, headDeleted = 12
        static let count = 13
    }

    /// The answers in the order of the batch.
    static func read(_ rows: QueryResult, _ batch: [PendingPush]) throws(DatabaseError) -> [PushResult] {
        guard rows.rowCount == batch.count, rows.columnCount == Column.count else {
            throw DatabaseError(
                .protocol, "push answered \(rows.rowCount) rows of \(rows.columnCount) columns for \(batch.count)")
        }
        var answers: [PushResult] = []
        answers.reserveCapacity(batch.count)
        for row in 0..<batch.count {
            guard try rows.int4(row, Column.ordinal) == row + 1 else {
                throw DatabaseError(.protocol, "push answered in another order")
            }
            answers.append(try read(rows, row, batch[row]))
        }
        return answers
    }

    private static func read(
        _ rows: QueryResult, _ row: Int, _ pending: PendingPush
    ) throws(DatabaseError) -> PushResult {
        let word = try rows.text(row, Column.outcome)
        guard let outcome = Outcome(rawValue: word) else { return .failure(refusal(word, pending, rows, row)) }
        let first = try outcome == .repeated ? Outcome(rawValue: rows.text(row, Column.first)) : nil
        let receipt = PushReceipt(
            outcome: outcome, first: first, revision: try rows.int8(row, Column.revision),
            stamp: try rows.timestamp(row, Column.stamp),
            rival: try rows.isNull(row, Column.rival) ? nil : rows.int8(row, Column.rival),
            head: (first ?? outcome) == .lost ? try head(rows, row) : nil)
        return .success(receipt)
    }

    private static func head(_ rows: QueryResult, _ row: Int) throws(DatabaseError) -> PushReceipt.Head? {
        guard try !rows.isNull(row, Column.headRevision) else { return nil }
        let isDeleted = try rows.bool(row, Column.headDeleted)
        return PushReceipt.Head(
            revision: try rows.int8(row, Column.headRevision),
            saved: try rows.timestamp(row, Column.headSaved),
            stamp: try rows.timestamp(row, Column.headStamp),
            device: DeviceID(try rows.uuid(row, Column.headDevice)), schema: try rows.int4(row, Column.headSchema),
            state: isDeleted ? nil : try rows.byteArray(row, Column.headState))
    }

    private static func refusal(
        _ word: String, _ pending: PendingPush, _ rows: QueryResult, _ row: Int
    ) -> WireError {
        switch word {
        case "base-mismatch": .baseMismatch(base: pending.push.base ?? 0)
        case "saved-reused": .savedReused(revision: (try? rows.int8(row, Column.revision)) ?? 0)
        case "unknown-device", "unknown-player": .deviceRevoked
        default: .internalError("the push was refused: \(word)")
        }
    }
}
