import Foundation
import Wire

extension SyncCore {
    /// What the shell has to do.
    enum Action: Hashable, Sendable {
        /// Open a connection; then `lineReceived` and so on, or `connectionEnded`.
        case connect
        /// Send bytes, whole lines.
        case send([UInt8])
        /// Read lines up to this length.
        case setMaxLineBytes(Int)
        /// Close the connection; no event of it may come any more.
        case disconnect

        // Each of these is answered, `storageFailed` included, before the next is carried out.
        /// Tell the storage who is signed in; then `met`.
        case meet(SignIn, epoch: UUID, clockOffset: Int64, offersRefused: Bool)
        /// Read what is under way; then `unanswered`.
        case readUnanswered
        /// Take states to be sent; then `taken`.
        case takeOutgoing(limit: Int, bytes: Int)
        /// Store answers; then `stored`.
        case acknowledge([PushAnswer])
        /// Store that a push is not taken; then `stored`.
        case refuse(Push, WireError)
        /// Store a page; then `stored`.
        case apply(ChangePage, since: Revision)
        /// Start over; then `stored`.
        case startOver(UUID)
        /// Read the errands; then `errandsRead`.
        case readErrands(limit: Int)
        /// Store an errand's result; then `stored`.
        case settle(SyncErrand, SyncErrand.Result)

        /// Look whether the device has another token by now; then `tokenRead`.
        case readToken(SyncSignOut)
        /// Tell the app the status.
        case tell(SyncStatus)
        /// Tell the app, once, that it is signed out.
        case tellSignedOut(SyncSignOut)
        /// Answer a question of the app's.
        case answer(QueryID, Swift.Result<[ServerLine], ClientError>)
        /// Let somebody go who waited; nil: all is synced.
        case finishWaiter(WaiterID, WaitFailure?)
    }

    /// Why waiting is over without all being synced.
    enum WaitFailure: Hashable, Sendable {
        case stopped, signedOut, otherPlayer
        case storage(String)
    }
}

extension SyncCore.Action {
    /// Whether it only tells the app the status.
    var isTold: Bool {
        if case .tell = self { true } else { false }
    }
}

/// A moment by both clocks.
struct SyncMoment: Hashable, Sendable {
    /// By the clock that never jumps.
    var instant: ContinuousClock.Instant
    /// By the clock on the wall, which may be wrong.
    var wall: Timestamp

    /// The moment now.
    static var now: SyncMoment { SyncMoment(instant: .now, wall: .now) }
}

/// How the engine behaves.
struct SyncSettings: Hashable, Sendable {
    /// How long a connection and its greeting may take.
    var connecting = Duration.seconds(10)
    /// How long an answer may take.
    var patience = Duration.seconds(10)
    /// After how long without anything to ask to see whether the server is still there. With the patience it is how long a
    /// dead connection goes unnoticed: less than 30 seconds.
    var heartbeat = Duration.seconds(10)
    /// The waits between tries.
    var backoff = Backoff(first: .seconds(1), limit: .seconds(60))
    /// How many pushes may be under way at a time.
    var maxPushes = 100
    /// How many bytes of states may be under way; one push may be larger.
    var maxPushBytes = 262_144
    /// How many games to ask for at a time.
    var pageSize = 500
    /// How often to look for saves of other processes.
    var foreignSaves = Duration.milliseconds(500)
    /// Up to which difference both clocks are right: what comes of the way that the greeting takes.
    var clockTolerance = Duration.seconds(2)
}

/// A source of random numbers that a value can hold: SplitMix64.
struct SplitMix64: RandomNumberGenerator, Hashable, Sendable {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }
}
