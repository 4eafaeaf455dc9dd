import Postgres
import Wire

extension Reader {
    /// What a page of versions is read by.
    static func statement(for query: VersionsQuery) -> Statement {
        switch query.place {
        case .since: query.onlyConflicts ? ReadStatements.conflictsSince : ReadStatements.versionsSince
        case .before: query.onlyConflicts ? ReadStatements.conflictsBefore : ReadStatements.versionsBefore
        case .revision: ReadStatements.anyVersion
        }
    }

    /// Behind the player, which is there already.
    static func append(_ query: VersionsQuery, limit: Int, maxBytes: Int, to parameters: inout ParameterList) {
        switch query.place {
        case .revision(let revision): parameters.append(revision)
        case .since(let revision), .before(let revision):
            parameters.append(revision)
            parameters.append(Int64(limit))
            parameters.append(Int64(maxBytes))
        }
        parameters.append(query.withStates)
    }
}

extension ReadAnswers {
    /// The lines of versions of any games; or why there are none.
    static func versions(
        _ rows: QueryResult, _ query: VersionsQuery, into lines: inout [UInt8]
    ) throws(DatabaseError) -> WireError? {
        if case .revision = query.place {
            guard rows.rowCount == 1 else { return .noSuchRevision }
            try entry(rows, 0, into: &lines)
            PageEnd().print(into: &lines)
            return nil
        }
        guard rows.rowCount > 0 else { return .deviceRevoked }
        let last = try rows.int8(0, VersionsColumn.last)
        if case .since(let revision) = query.place, revision > last { return .cursorAhead(revision: last) }
        let shown = try rows.isNull(0, VersionsColumn.shift) ? 0 : rows.rowCount
        for row in 0..<shown { try entry(rows, row, into: &lines) }
        let hasMore = shown > 0 ? try rows.bool(shown - 1, VersionsColumn.more) : false
        let next = hasMore ? try rows.int8(shown - 1, VersionsColumn.shift) : nil
        var end: PageEnd
        if case .before = query.place {
            end = PageEnd(before: next)
        } else {
            end = PageEnd(cursor: next ?? last, more: hasMore)
        }
        end.lastRevision = last
        let purgedBefore = try rows.int8(0, VersionsColumn.purgedBefore)
        if purgedBefore > 0 { end.purgedBefore = purgedBefore }
        end.print(into: &lines)
        return nil
    }

    /// A row of a page of versions as a value.
    static func versionEntry(_ rows: QueryResult, _ row: Int) throws(DatabaseError) -> VersionEntry {
        let (collection, id) = (try rows.text(row, VersionsColumn.collection), try rows.text(row, VersionsColumn.game))
        guard let game = try? GameKey(collection: collection, id: id) else {
            throw DatabaseError(.protocol, "a game in the database has a key that no game can have")
        }
        return VersionEntry(
            game: game, detail: try detail(rows, row, shift: VersionsColumn.shift),
            state: try rows.isNull(row, VersionsColumn.state) ? nil : rows.byteArray(row, VersionsColumn.state))
    }

    private static func entry(_ rows: QueryResult, _ row: Int, into lines: inout [UInt8]) throws(DatabaseError) {
        let detail = try detail(rows, row, shift: VersionsColumn.shift)
        let collection = try rows.bytes(row, VersionsColumn.collection).bindMemory(to: UInt8.self).span
        let game = try rows.bytes(row, VersionsColumn.game).bindMemory(to: UInt8.self).span
        guard try !rows.isNull(row, VersionsColumn.state) else {
            return detail.print(collection: collection, id: game, into: &lines)
        }
        let state = try rows.bytes(row, VersionsColumn.state).bindMemory(to: UInt8.self).span
        detail.print(collection: collection, id: game, state: state, into: &lines)
    }

    /// The lines of devices. One row more than the limit says that there is more.
    static func devices(
        _ rows: QueryResult, limit: Int, askedBy own: DeviceID?, into lines: inout [UInt8]
    ) throws(DatabaseError) -> WireError? {
        let shown = min(rows.rowCount, limit)
        for row in 0..<shown {
            let device = DeviceID(try rows.uuid(row, 0))
            DeviceEntry(
                device: device, name: try rows.text(row, 1), created: try rows.timestamp(row, 2),
                seen: try rows.isNull(row, 4) ? nil : rows.timestamp(row, 4),
                clockOffset: try rows.revision(row, 5),
                revoked: try rows.isNull(row, 3) ? nil : rows.timestamp(row, 3), isThis: device == own
            ).print(into: &lines)
        }
        let hasMore = shown > 0 && rows.rowCount > shown
        PageEnd(after: hasMore ? DeviceID(try rows.uuid(shown - 1, 0)) : nil).print(into: &lines)
        return nil
    }
}
