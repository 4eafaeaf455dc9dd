import Foundation
import TestSupport
import Wire

@testable import IeumClient

/// A device with a file and an engine, whose process can be thought to die and come back.
final class SyncDevice {
    let path: String
    let token: String
    let port: Int
    private(set) var store: GameStore
    private(set) var engine: SyncEngine?
    private let folder: TestFolder

    /// Makes a device with an empty file, and starts it.
    init(token: String, port: Int, starts: Bool = true) throws {
        folder = try TestFolder("sync")
        path = folder.path + "/games.sqlite"
        self.token = token
        self.port = port
        store = try Self.open(path)
        if starts { try start() }
    }

    /// Waits as short as tests like it, with the engine's own rules.
    static var settings: SyncSettings {
        var settings = SyncSettings()
        settings.backoff = Backoff(first: .milliseconds(20), limit: .milliseconds(200))
        settings.pageSize = 7
        return settings
    }

    func start(settings: SyncSettings = SyncDevice.settings) throws {
        store = try Self.open(path)
        engine = try SyncEngine(storage: store, server: "127.0.0.1:\(port)", token: token, settings: settings)
    }

    /// The process is gone: what was not on disk is lost.
    func die() { engine = nil }

    func save(_ id: String, _ state: String?) throws {
        try save([(id, state)])
    }

    /// Saves states in one transaction; nil deletes.
    func save(_ states: [(id: String, state: String?)]) throws {
        try store.write { transaction in
            for (id, state) in states { try transaction.save(try key(id), state: state.map { Array($0.utf8) }) }
        }
    }

    private static func open(_ path: String) throws -> GameStore {
        try GameStore(path: path, schemaVersion: 1)
    }

    func key(_ id: String) throws -> GameKey { try GameKey(collection: "handle.game", id: id) }

    /// What the app sees: the states by id, the deleted ones as nil.
    func states() throws -> [String: String?] {
        var states: [String: String?] = [:]
        for (key, game) in try store.heldGames() {
            states[key.id] = .some(game.state.map { String(decoding: $0, as: UTF8.self) })
        }
        return states
    }
}

/// Waits for something of the async world, at most so long.
func within<Value: Sendable>(
    _ seconds: Double, _ purpose: String, _ body: @escaping @Sendable () async throws -> Value
) async throws -> Value {
    try await withThrowingTaskGroup(of: Value.self) { group in
        group.addTask { try await body() }
        group.addTask {
            try await Task.sleep(for: .seconds(seconds))
            throw WaitError(description: "\(purpose): not within \(seconds) s")
        }
        defer { group.cancelAll() }
        guard let value = try await group.next() else { throw CancellationError() }
        return value
    }
}

extension SyncEngine {
    /// Waits until all is synced, both ways.
    func settle(_ seconds: Double = 60) async throws {
        try await within(seconds, "all is synced") { try await self.waitUntilSynced() }
    }

    /// Waits for a status.
    func reach(_ seconds: Double = 60, _ isReached: @escaping @Sendable (SyncStatus) -> Bool) async throws {
        try await within(seconds, "the status") {
            for await status in self.status where isReached(status) { return }
            throw WaitError(description: "the engine ended")
        }
    }
}
