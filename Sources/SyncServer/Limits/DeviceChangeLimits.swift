import Wire

/// How often a player may do what costs a transaction and no push.
///
/// Each has a rate of its own: whoever renames a device all day keeps nobody from revoking one.
struct DeviceChangeLimits {
    /// What is bounded.
    enum Change {
        case rename, revocation, rotation, pairingCode

        init(_ change: Session.AccountChange) {
            switch change {
            case .rename: self = .rename
            case .revoke: self = .revocation
            case .rotate: self = .rotation
            }
        }
    }

    private var renames: RateTable<PlayerID>
    private var revocations: RateTable<PlayerID>
    private var rotations: RateTable<PlayerID>
    private var pairingCodes: RateTable<PlayerID>

    init(_ limits: ServerConfiguration.Limits, at now: ContinuousClock.Instant) {
        renames = RateTable(limits.renamesPerPlayer, at: now)
        revocations = RateTable(limits.revocationsPerPlayer, at: now)
        rotations = RateTable(limits.rotationsPerPlayer, at: now)
        pairingCodes = RateTable(limits.pairingCodesPerPlayer, at: now)
    }

    /// Whether a player may do it now; what it takes is taken.
    mutating func refusal(
        of change: Change, by player: PlayerID, at now: ContinuousClock.Instant
    ) -> WireError? {
        let (what, wait) =
            switch change {
            case .rename: ("renamings of this player's devices", renames.take(player, at: now))
            case .revocation: ("revocations of this player's devices", revocations.take(player, at: now))
            case .rotation: ("new tokens of this player's devices", rotations.take(player, at: now))
            case .pairingCode: ("pairing codes of this player", pairingCodes.take(player, at: now))
            }
        return wait.map { .rateLimited(what, retryAfter: $0) }
    }
}
