import Foundation
import Wire

/// A device that is signed in to its server: what it does there, and its home that remembers it.
package final class SignedInDevice {
    /// Where it keeps who it is and what it saw.
    package let home: DeviceHome
    /// Who it is.
    package let identity: Identity
    /// Its connection; another one after a push had to be repeated.
    package private(set) var connection: ServerConnection
    /// Whether the server began a new epoch since the home was last in touch with it.
    package private(set) var isEpochNew: Bool

    private let patience: ServerConnection.Patience

    /// Connects and signs in as the home's device.
    /// - Throws: ``HomeError``, ``ClientError``.
    package init(home: DeviceHome, patience: ServerConnection.Patience = .init()) throws {
        self.home = home
        self.patience = patience
        identity = try home.identity()
        connection = try ServerConnection(to: identity.server, patience: patience)
        _ = try connection.logIn(identity.token)
        let epoch = connection.greeting.epoch
        // Nothing is written while nothing is new.
        isEpochNew = try home.seen().epoch == epoch ? false : home.updateSeen { $0.meet(epoch: epoch) }
    }

    /// Gets another token, keeps it, and signs in with it, which ends the old one.
    /// - Throws: ``HomeError``, ``ClientError``.
    package func rotateToken() throws {
        try home.replaceToken { try connection.rotateToken(of: identity.token) }
        let token = try home.identity().token
        connection = try ServerConnection(to: identity.server, patience: patience)
        _ = try connection.logIn(token)
    }

    private func reconnect() throws {
        connection = try ServerConnection(to: identity.server, patience: patience)
        // Another process may have got the device another token meanwhile.
        _ = try connection.logIn(home.identity().token)
        let epoch = connection.greeting.epoch
        if try home.updateSeen({ $0.meet(epoch: epoch) }) { isEpochNew = true }
    }

    // MARK: Pushing

    /// What to offer.
    package struct Draft: Hashable, Sendable {
        /// What to say about the revision that was seen last.
        package enum Base: Hashable, Sendable {
            /// What the home remembers; for a game that it never saw 0, or nothing when it is deleted.
            case remembered
            /// Nothing.
            case none
            /// This one.
            case revision(Revision)
        }

        /// Which game.
        package var game: GameKey
        /// Its JSON text; nil deletes it.
        package var state: [UInt8]?
        /// When it was saved; nil: now.
        package var saved: Timestamp?
        /// What was seen last.
        package var base: Base
        /// The version of the state's shape.
        package var schema: Int32

        /// Puts a draft together.
        package init(
            game: GameKey, state: [UInt8]?, saved: Timestamp? = nil, base: Base = .remembered, schema: Int32 = 0
        ) {
            self.game = game
            self.state = state
            self.saved = saved
            self.base = base
            self.schema = schema
        }
    }

    /// Pushes a version and remembers the answer.
    ///
    /// Should the connection break before the answer, it is sent once more over another one, with the same `saved`, so that
    /// it is stored once. Without an answer, the home remembers `saved`, and the same draft pushed later uses it again.
    /// - Parameter repeating: is told before the push is sent a second time.
    /// - Throws: ``HomeError``, ``ClientError``.
    package func push(
        _ draft: Draft, repeating: (ClientError) -> Void = { _ in }
    ) throws -> (push: Push, receipt: PushReceipt) {
        let now = Timestamp.now
        var push = try home.updateSeen { seen in
            let saved = draft.saved ?? seen.saved(for: draft.game, state: draft.state, now: now)
            if draft.saved == nil { seen.willPush(draft.game, state: draft.state, saved: saved) }
            return Push(
                game: draft.game, saved: saved, base: Self.base(of: draft, seen), schema: draft.schema,
                state: draft.state)
        }
        let receipt: PushReceipt
        switch try send(push) {
        case .success(let answer): receipt = answer
        case .failure(let reason):
            repeating(reason)
            try reconnect()
            // In a new epoch the remembered base means nothing any more.
            push.base = Self.base(of: draft, try home.seen())
            receipt = try send(push).get()
        }
        try remember(receipt, of: push)
        return (push, receipt)
    }

    private static func base(of draft: Draft, _ seen: Seen) -> Revision? {
        switch draft.base {
        case .remembered: draft.state == nil ? seen.deletionBase(for: draft.game) : seen.base(for: draft.game)
        case .none: nil
        case .revision(let revision): revision
        }
    }

    /// Sends a push; a connection that broke before the answer is a failure, everything else that goes wrong is thrown.
    private func send(_ push: Push) throws -> Result<PushReceipt, ClientError> {
        do throws(ClientError) {
            return .success(try connection.push(push))
        } catch {
            switch error {
            case .connectionClosed: return .failure(error)
            case .server(let refusal) where !refusal.leavesPushOpen: try forget(push)
            default: break
            }
            throw error
        }
    }

    private func forget(_ push: Push) throws {
        guard let saved = push.saved else { return }
        try home.updateSeen { $0.pushAnswered(push.game, saved: saved) }
    }

    private func remember(_ receipt: PushReceipt, of push: Push) throws {
        try home.updateSeen { seen in
            if let saved = push.saved { seen.pushAnswered(push.game, saved: saved) }
            if receipt.settled == .lost {
                // The head stays unseen until somebody gets it: the next push must not pass for its successor.
                seen.heard(of: push.game, stamp: max(receipt.stamp, receipt.head?.stamp ?? receipt.stamp))
            } else {
                seen.saw(push.game, revision: receipt.revision, stamp: receipt.stamp)
            }
        }
    }

    // MARK: Reading

    /// Hands out a game's head, which counts as seen then, or one of its versions, which does not.
    @discardableResult
    package func get(
        _ key: GameKey, revision: Revision? = nil, _ handOut: (GameVersion) throws -> Void = { _ in }
    ) throws -> GameVersion {
        let version = try connection.get(key, revision: revision)
        try handOut(version)
        if revision == nil {
            try home.updateSeen { $0.saw(key, revision: version.header.revision, stamp: version.header.stamp) }
        }
        return version
    }
}

extension WireError {
    /// Whether a push that got this answer may have been stored all the same, or may be later.
    fileprivate var leavesPushOpen: Bool { isPassing || code == .internalError }
}

extension GameKey {
    /// The key of a game whose names may have been typed: in Unicode normal form C, as the server wants it.
    package init(normalizing collection: String, _ id: String) throws(WireError) {
        try self.init(collection: Self.normalized(collection), id: Self.normalized(id))
    }

    private static func normalized(_ name: String) -> String {
        // What is ASCII is in every normal form.
        name.utf8.allSatisfy { $0 < 0x80 } ? name : name.precomposedStringWithCanonicalMapping
    }
}
