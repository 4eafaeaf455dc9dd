import Foundation
import Wire

/// A page of the versions of all games.
package struct VersionPage: Hashable, Sendable {
    /// The versions, in the order that was asked for.
    package var versions: [VersionEntry]
    /// Where the next page goes on; nil: there is no more.
    package var next: Revision?
    /// The player's last revision.
    package var lastRevision: Revision
    /// Versions below this revision may have been pruned; 0: none was.
    package var purgedBefore: Revision
}

/// The commands that look at the history, and that bring one in.
extension ServerConnection {
    /// Reads a page of versions.
    package func versions(_ query: VersionsQuery) throws(ClientError) -> VersionPage {
        try versionPage(answer(to: send(.versions(query))), query)
    }

    private func versionPage(_ lines: [ServerLine], _ query: VersionsQuery) throws(ClientError) -> VersionPage {
        guard case .end(let end)? = lines.last, let hasMore = end.more, let last = end.lastRevision else {
            throw lacking(.versions)
        }
        let page = VersionPage(
            versions: lines.dropLast().compactMap(\.versionEntry), next: hasMore ? end.cursor ?? end.before : nil,
            lastRevision: last, purgedBefore: end.purgedBefore ?? 0)
        guard hasMore else { return page }
        switch (query.place, page.next) {
        case (.since(let start), let next?) where next > start: return page
        case (.before(let start), let next?) where next < start: return page
        default: throw .protocolViolation("a page of versions does not lead on")
        }
    }

    /// Reads one version of whatever game, with its state.
    package func version(_ revision: Revision) throws(ClientError) -> VersionEntry {
        let query = VersionsQuery(.revision(revision), withStates: true)
        guard let version = try request(.versions(query)).first?.versionEntry, version.detail.revision == revision
        else { throw lacking(.versions) }
        return version
    }

    /// Reads several versions with their states, in about the time of one; those that are not there are left out.
    package func versions(_ revisions: some Collection<Revision>) throws(ClientError) -> [Revision: VersionEntry] {
        var found: [Revision: VersionEntry] = [:]
        var rest = Array(revisions)[...]
        while !rest.isEmpty {
            let ids = rest.prefix(16).map { send(.versions(VersionsQuery(.revision($0), withStates: true))) }
            rest = rest.dropFirst(16)
            for id in ids {
                do throws(ClientError) {
                    guard let version = try answer(to: id).first?.versionEntry else { throw lacking(.versions) }
                    found[version.detail.revision] = version
                } catch {
                    guard case .server(let refusal) = error, refusal.code == .noSuchVersion else { throw error }
                }
            }
        }
        return found
    }

    /// Reads all devices of the player.
    package func devices() throws(ClientError) -> [DeviceEntry] {
        var devices: [DeviceEntry] = []
        var after: DeviceID?
        repeat {
            let lines = try request(.devices(after: after, limit: nil))
            guard case .end(let end)? = lines.last else { throw lacking(.devices) }
            devices += lines.dropLast().compactMap(\.deviceEntry)
            if let next = end.after, let after, next <= after {
                throw .protocolViolation("a page of devices does not lead on")
            }
            after = end.after
        } while after != nil
        return devices
    }

    /// Begins to bring a history in.
    /// - Returns: what names the import.
    package func beginImport() throws(ClientError) -> UUID {
        guard case .ok(let fields)? = try request(.importing(.begin)).last, let id = try? fields.uuid("import") else {
            throw lacking(.importing)
        }
        return id
    }

    /// Ends an import: all of it is the player's then, or nothing.
    package func endImport(_ totals: ImportTotals) throws(ClientError) {
        guard case .ok? = try request(.importing(.end(totals))).last else { throw lacking(.importing) }
    }

    private func lacking(_ verb: Verb) -> ClientError {
        .protocolViolation("its reply to \(verb.rawValue) lacks something")
    }
}

extension ServerLine {
    fileprivate var versionEntry: VersionEntry? {
        guard case .version(let entry) = self else { return nil }
        return entry
    }

    fileprivate var deviceEntry: DeviceEntry? {
        guard case .device(let entry) = self else { return nil }
        return entry
    }
}
