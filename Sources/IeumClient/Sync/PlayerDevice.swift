import Foundation
import Wire

/// One of a player's devices, as a settings screen shows it.
public struct PlayerDevice: Hashable, Sendable, Identifiable {
    /// Its id, as ``SyncVersion/device`` names it, too.
    public let id: String
    /// What the player calls it. It comes from another device: show it as text, whatever is in it.
    public let name: String
    /// When it was registered or linked.
    public let created: Date
    /// When its latest save reached the server; nil when none did, or long ago.
    public let lastSave: Date?
    /// Since when it may not sign in any more; nil while it may.
    public let revoked: Date?
    /// Whether it is this device.
    public let isThisDevice: Bool

    init(_ entry: DeviceEntry, this device: DeviceID) {
        id = entry.device.description
        name = entry.name
        created = Date(entry.created)
        lastSave = entry.seen.map { Date($0) }
        revoked = entry.revoked.map { Date($0) }
        isThisDevice = entry.device == device
    }
}

extension SyncEngine {
    /// The player's devices: those that may sign in first, then the revoked ones; the newest first.
    public func devices() async throws -> [PlayerDevice] {
        var devices: [PlayerDevice] = []
        var after: DeviceID?
        repeat {
            let lines = try await ask(.devices(after: after, limit: 500))
            for case .device(let entry) in lines { devices.append(PlayerDevice(entry, this: device)) }
            guard case .end(let end)? = lines.last else { break }
            if let next = end.after, let after, next <= after { break }
            after = end.after
        } while after != nil
        return devices.sorted { left, right in
            (left.revoked == nil) != (right.revoked == nil)
                ? left.revoked == nil : (left.created, left.id) > (right.created, right.id)
        }
    }

    /// Calls one of the player's devices otherwise: by 1 to 64 characters, without control characters.
    public func rename(_ device: PlayerDevice, to name: String) async throws {
        _ = try await ask(.rename(try id(of: device), name: name))
    }

    /// Ends one of the player's devices: a lost phone, say. Its token and its connections end within a second; what it saved stays.
    ///
    /// Revoking this device signs it out for good: ``SyncStatus/signedOut``, and the games stay here.
    public func revoke(_ device: PlayerDevice) async throws {
        _ = try await ask(.revoke(try id(of: device)))
    }

    /// Gets another token for this device, for when the one that it has may have been seen by others.
    ///
    /// Keep it in the keychain in place of the old one, then make an engine with it. The old token holds until the new one signs
    /// in for the first time: nothing is lost where the answer, or the app, is. Then the old token ends, and within a second
    /// all that it had signed in, this engine too.
    /// - Returns: the new token.
    public func rotateToken() async throws -> String {
        guard case .ok(let fields)? = try await ask(.rotate).last, let offer = try? TokenOffer(fields) else {
            throw SyncError.offline("the server gave no token")
        }
        return offer.token.text
    }

    private func id(of device: PlayerDevice) throws(SyncError) -> DeviceID {
        guard let id = DeviceID(device.id) else { throw SyncError(WireError.noSuchDevice) }
        return id
    }
}
