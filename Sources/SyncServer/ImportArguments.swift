import Foundation
import Postgres
import Wire

/// The SQL of imports, and the arguments of a batch that is staged. SQL/migrations/0013_import.sql has the functions.
struct ImportArguments {
    static let begin = Statement(
        "begin-import", "SELECT begin_import($1, $2)", parameterTypes: [.uuid, .uuid])
    static let stage = Statement(
        "stage-import",
        "SELECT stage_import($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        parameterTypes: [
            .uuid, .uuid, .uuidArray, .timestamptzArray, .textArray, .int8Array, .uuidArray, .timestamptzArray,
            .timestamptzArray, .timestamptzArray, .int8Array, .int8Array, .int4Array, .textArray, .textArray,
            .textArray, .jsonArray,
        ])
    static let finish = Statement(
        "finish-import", "SELECT outcome, problem, revision FROM finish_import($1, $2, $3, $4, $5, $6, $7)",
        parameterTypes: [.uuid, .uuid, .int8, .int8, .int8, .int8, .int8])
    static let cancel = Statement(
        "cancel-import", "SELECT cancel_import($1, $2)", parameterTypes: [.uuid, .uuid])
    static let cancelAbandoned = Statement(
        "cancel-abandoned-imports", "SELECT cancel_abandoned_imports(now() - interval '1 day')")

    private(set) var list = ParameterList()

    init(player: PlayerID, id: UUID) {
        list.append(player.uuid)
        list.append(id)
    }

    /// Behind player and import: what is to be staged.
    mutating func append(_ devices: [ImportedDevice], _ versions: [VersionEntry]) {
        var ids = BinaryArray(of: .uuid)
        var dates = BinaryArray(of: .timestamptz)
        var names = BinaryArray(of: .text)
        for device in devices {
            ids.append(device.device.uuid)
            dates.append(microsecondsSince1970: device.created.microseconds)
            names.append(device.name)
        }
        for array in [ids, dates, names] { list.append(array) }
        var revisions = BinaryArray(of: .int8)
        var authors = BinaryArray(of: .uuid)
        var saved = BinaryArray(of: .timestamptz)
        var stamps = BinaryArray(of: .timestamptz)
        var received = BinaryArray(of: .timestamptz)
        var bases = BinaryArray(of: .int8)
        var rivals = BinaryArray(of: .int8)
        var schemas = BinaryArray(of: .int4)
        var collections = BinaryArray(of: .text)
        var games = BinaryArray(of: .text)
        var outcomes = BinaryArray(of: .text)
        var states = BinaryArray(of: .json)
        for version in versions {
            let detail = version.detail
            revisions.append(detail.revision)
            authors.append(detail.device.uuid)
            saved.append(microsecondsSince1970: detail.saved.microseconds)
            stamps.append(microsecondsSince1970: detail.stamp.microseconds)
            received.append(microsecondsSince1970: detail.received.microseconds)
            if let base = detail.base { bases.append(base) } else { bases.appendNull() }
            if let rival = detail.rival { rivals.append(rival) } else { rivals.appendNull() }
            schemas.append(detail.schema)
            collections.append(version.game.collection)
            games.append(version.game.id)
            outcomes.append(detail.outcome.rawValue)
            if let state = version.state { states.append(state) } else { states.appendNull() }
        }
        for array in [
            revisions, authors, saved, stamps, received, bases, rivals, schemas, collections, games, outcomes, states,
        ] { list.append(array) }
    }

    /// Behind player and import: what it must come to, and how many games may be kept, if that is bounded.
    mutating func append(_ totals: ImportTotals, mostGames: Int?) {
        for number in [totals.versions, totals.devices, totals.lastRevision, totals.purgedBefore] {
            list.append(number)
        }
        if let mostGames { list.append(Int64(mostGames)) } else { list.appendNull(.int8) }
    }
}
