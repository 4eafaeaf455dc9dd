import Foundation
import Postgres
import Wire

/// Answers PULL, GET, HISTORY, VERSIONS, DEVICES and the counter for WATCH from PostgreSQL.
final class Reader {
    // The server owns its reader and outlives it.
    private unowned let server: SyncServer
    private let pool: DatabasePool

    init(server: SyncServer, pool: DatabasePool) {
        self.server = server
        self.pool = pool
    }

    /// Reads, and gives the session the lines of the reply.
    func read(_ read: Session.ReadRequest, of player: PlayerID, _ request: RequestID, _ session: ClientSession) {
        guard server.pendingBytes < server.configuration.limits.maxPendingBytes else {
            return session.readFinished(request, .failure(.busy()))
        }
        var parameters = ParameterList()
        parameters.append(player.uuid)
        switch read {
        case .pull(let since, let limit):
            parameters.append(since)
            parameters.append(Int64(limit))
            parameters.append(Int64(server.configuration.limits.maxPageBytes))
            execute(
                since == 0 ? ReadStatements.pullAll : ReadStatements.pullRecent, parameters, of: player, request,
                session
            ) {
                rows, lines throws(DatabaseError) in try ReadAnswers.pull(rows, since: since, into: &lines)
            }
        case .get(let game, let revision):
            parameters.append(game.collection)
            parameters.append(game.id)
            if let revision { parameters.append(revision) }
            execute(
                revision == nil ? ReadStatements.head : ReadStatements.one, parameters, of: player, request, session
            ) {
                rows, lines throws(DatabaseError) in
                try ReadAnswers.get(rows, isVersion: revision != nil, into: &lines)
            }
        case .history(let game, let before, let limit):
            parameters.append(game.collection)
            parameters.append(game.id)
            parameters.append(before ?? .max)
            parameters.append(Int64(limit) + 1)
            execute(ReadStatements.history, parameters, of: player, request, session) {
                rows, lines throws(DatabaseError) in
                try ReadAnswers.history(rows, of: game, limit: limit, into: &lines)
            }
        case .versions(let query, let limit):
            let maxBytes = server.configuration.limits.maxPageBytes
            Self.append(query, limit: limit, maxBytes: maxBytes, to: &parameters)
            execute(Self.statement(for: query), parameters, of: player, request, session) {
                rows, lines throws(DatabaseError) in try ReadAnswers.versions(rows, query, into: &lines)
            }
        case .devices(let after, let limit):
            parameters.append(after?.uuid ?? UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)))
            parameters.append(Int64(limit) + 1)
            execute(ReadStatements.devices, parameters, of: player, request, session) {
                rows, lines throws(DatabaseError) in
                try ReadAnswers.devices(rows, limit: limit, askedBy: session.identity?.device, into: &lines)
            }
        }
    }

    /// Reads the counter that a watch begins with.
    func lastRevision(of player: PlayerID, since: Revision, _ request: RequestID, _ session: ClientSession) {
        var parameters = ParameterList()
        parameters.append(player.uuid)
        pool.read(ReadStatements.lastRevision, parameters, of: player.uuid) { result in
            session.watchFinished(
                request, since: since,
                result.answer { rows throws(DatabaseError) in
                    guard rows.rowCount == 1 else { return .failure(.deviceRevoked) }
                    return .success(try rows.int8(0, 0))
                })
        }
    }

    private func execute(
        _ statement: Statement, _ parameters: ParameterList, of player: PlayerID, _ request: RequestID,
        _ session: ClientSession,
        _ print: @escaping (QueryResult, inout [UInt8]) throws(DatabaseError) -> WireError?
    ) {
        pool.read(statement, parameters, of: player.uuid) { [server] result in
            session.readFinished(
                request,
                result.answer { rows throws(DatabaseError) in
                    server.metrics.pulls += 1
                    server.metrics.pulledRows += rows.rowCount
                    var lines: [UInt8] = []
                    if let refusal = try print(rows, &lines) { return .failure(refusal) }
                    return .success(lines)
                })
        }
    }
}

/// Prints the lines of replies from rows.
enum ReadAnswers {
    /// The lines of a pull; or why there are none.
    static func pull(
        _ rows: QueryResult, since: Revision, into lines: inout [UInt8]
    ) throws(DatabaseError) -> WireError? {
        // Two columns stand before the version's own.
        let shift = 2
        guard rows.rowCount > 0 else { return .deviceRevoked }
        let last = try rows.int8(0, 0)
        guard since <= last else { return .cursorAhead(revision: last) }
        guard try !rows.isNull(0, shift) else {
            PageEnd(cursor: last, more: false).print(into: &lines)
            return nil
        }
        for row in 0..<rows.rowCount { try version(rows, row, shift: shift, into: &lines) }
        let end = rows.rowCount - 1
        let more = try rows.bool(end, 1)
        // The cursor follows what was looked at, not what was found: the losers after the last head count as seen.
        PageEnd(cursor: more ? try rows.int8(end, shift) : last, more: more).print(into: &lines)
        return nil
    }

    /// The lines of a get; or why there are none.
    static func get(
        _ rows: QueryResult, isVersion: Bool, into lines: inout [UInt8]
    ) throws(DatabaseError) -> WireError? {
        guard rows.rowCount == 1 else { return isVersion ? .noSuchVersion : .noSuchGame }
        try version(rows, 0, shift: 0, into: &lines)
        PageEnd().print(into: &lines)
        return nil
    }

    /// The lines of a history; or why there are none. One row more than the limit says that there is more.
    static func history(
        _ rows: QueryResult, of game: GameKey, limit: Int, into lines: inout [UInt8]
    ) throws(DatabaseError) -> WireError? {
        guard rows.rowCount > 0 else { return .noSuchGame }
        let hasVersions = try !rows.isNull(0, HistoryColumn.revision)
        let shown = hasVersions ? min(rows.rowCount, limit) : 0
        for row in 0..<shown { VersionEntry(game: game, detail: try detail(rows, row)).print(into: &lines) }
        let hasMore = rows.rowCount > shown && hasVersions
        PageEnd(before: hasMore ? try rows.int8(shown - 1, HistoryColumn.revision) : nil).print(into: &lines)
        return nil
    }

    private static func version(
        _ rows: QueryResult, _ row: Int, shift: Int, into lines: inout [UInt8]
    ) throws(DatabaseError) {
        let header = GameHeader(
            revision: try rows.int8(row, shift + VersionColumn.revision),
            saved: try rows.timestamp(row, shift + VersionColumn.saved),
            stamp: try rows.timestamp(row, shift + VersionColumn.stamp),
            device: DeviceID(try rows.uuid(row, shift + VersionColumn.device)),
            schema: try rows.int4(row, shift + VersionColumn.schema),
            outcome: Outcome(rawValue: try rows.text(row, shift + VersionColumn.outcome)),
            base: try rows.revision(row, shift + VersionColumn.base),
            rival: try rows.revision(row, shift + VersionColumn.rival))
        let collection = try rows.bytes(row, shift + VersionColumn.collection)
        let game = try rows.bytes(row, shift + VersionColumn.game)
        guard try !rows.isNull(row, shift + VersionColumn.state) else {
            return header.printGone(
                collection: collection.bindMemory(to: UInt8.self).span, id: game.bindMemory(to: UInt8.self).span,
                into: &lines)
        }
        let state = try rows.bytes(row, shift + VersionColumn.state)
        header.printGame(
            collection: collection.bindMemory(to: UInt8.self).span, id: game.bindMemory(to: UInt8.self).span,
            state: state.bindMemory(to: UInt8.self).span, into: &lines)
    }

    static func detail(_ rows: QueryResult, _ row: Int, shift: Int = 0) throws(DatabaseError) -> VersionDetail {
        VersionDetail(
            revision: try rows.int8(row, shift + HistoryColumn.revision),
            outcome: Outcome(rawValue: try rows.text(row, shift + HistoryColumn.outcome)) ?? .created,
            saved: try rows.timestamp(row, shift + HistoryColumn.saved),
            stamp: try rows.timestamp(row, shift + HistoryColumn.stamp),
            received: try rows.timestamp(row, shift + HistoryColumn.received),
            device: DeviceID(try rows.uuid(row, shift + HistoryColumn.device)),
            base: try rows.revision(row, shift + HistoryColumn.base),
            rival: try rows.revision(row, shift + HistoryColumn.rival),
            schema: try rows.int4(row, shift + HistoryColumn.schema),
            size: Int(try rows.int4(row, shift + HistoryColumn.size)),
            isHead: try rows.bool(row, shift + HistoryColumn.isHead),
            isTombstone: try rows.bool(row, shift + HistoryColumn.isTombstone))
    }
}

extension QueryResult {
    func timestamp(_ row: Int, _ column: Int) throws(DatabaseError) -> Timestamp {
        Timestamp(clamping: try microsecondsSince1970(row, column))
    }

    func revision(_ row: Int, _ column: Int) throws(DatabaseError) -> Revision? {
        try isNull(row, column) ? nil : int8(row, column)
    }
}
