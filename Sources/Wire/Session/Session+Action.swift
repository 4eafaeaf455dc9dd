extension Session {
    /// Where a connection stands.
    public enum State: Hashable, Sendable {
        /// Nobody has signed in. Next: signingIn, closed.
        case awaitingLogin
        /// A `LOGIN`, `REGISTER` or `LINK` is under way. Next: ready, awaitingLogin, closed.
        case signingIn
        /// A device is signed in. Next: closed.
        case ready(player: PlayerID, device: DeviceID)
        /// Over. Events are ignored.
        case closed
    }

    /// What the shell has to do.
    public enum Action: Hashable, Sendable {
        /// Look the token up; then `signedIn` or `requestFailed`.
        case signIn(Token, RequestID)
        /// Make a player and a device; then `signedIn` or `requestFailed`.
        case register(device: String?, invite: InviteCode? = nil, RequestID)
        /// Make a code; then `pairingCodeCreated` or `requestFailed`.
        case createPairingCode(player: PlayerID, device: DeviceID, RequestID)
        /// Use a code up and make a device; then `signedIn` or `requestFailed`.
        case redeem(PairingCode, device: String?, RequestID)
        /// Change something about the player's devices; then `accountChanged`, or `requestFailed`.
        case changeAccount(AccountChange, player: PlayerID, device: DeviceID, RequestID)
        /// Store a version; then `pushFinished`.
        case push(Push, player: PlayerID, device: DeviceID, RequestID)
        /// Read; then `readFinished` with the lines, the `END` among them, or `requestFailed`.
        case read(ReadRequest, player: PlayerID, RequestID)
        /// Subscribe to the player's changes, then read the last revision; then `watchEstablished`, or `requestFailed`
        /// (`cursor-ahead` if `since` is beyond it; an earlier subscription then stays).
        case watch(since: Revision, player: PlayerID, RequestID)
        /// Begin, stage or end an import; then `importAnswered`, or `requestFailed`.
        case importing(ImportPart, player: PlayerID, device: DeviceID, RequestID)
        /// End the subscription.
        case unwatch
        /// Hand over no more lines until `resumeReading`.
        case pauseReading
        /// Hand over lines again, those read already first.
        case resumeReading
        /// Close the connection when all output is sent; the session is over, its subscription too.
        case close
    }

    /// Something to read.
    public enum ReadRequest: Hashable, Sendable {
        /// The games whose head is later than `since`.
        case pull(since: Revision, limit: Int)
        /// A game's head, or one version.
        case get(GameKey, revision: Revision?)
        /// A game's versions before a revision, newest first.
        case history(GameKey, before: Revision?, limit: Int)
        /// A page of all games' versions, or one version.
        case versions(VersionsQuery, limit: Int)
        /// The player's devices behind one, in the order of their ids.
        case devices(after: DeviceID?, limit: Int)
    }

    /// Something about the player's devices that is to be different.
    public enum AccountChange: Hashable, Sendable {
        /// A device is called otherwise.
        case rename(DeviceID, name: String)
        /// A device ends.
        case revoke(DeviceID)
        /// The device that asks gets another token.
        case rotate
    }

    /// What one or more events led to: bytes for the peer, and things to do. The bytes go first, then the actions in their
    /// order. A result that comes while they are carried out may be handed over at once, with other effects.
    public struct Effects: Hashable, Sendable {
        /// Bytes to send, whole lines.
        public var output: [UInt8] = []
        /// What to do, in order.
        public var actions: [Action] = []
        /// How many commands were answered with `ERR`.
        public var errorCount = 0

        /// Creates effects without any.
        public init() {}

        /// Forgets what was carried out; keeps the memory for the next.
        public mutating func removeAll() {
            output.removeAll(keepingCapacity: true)
            actions.removeAll(keepingCapacity: true)
            errorCount = 0
        }
    }
}
