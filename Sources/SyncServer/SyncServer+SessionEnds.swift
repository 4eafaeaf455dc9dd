import Wire

/// Sessions whose right to be there has ended.
extension SyncServer {
    /// Somebody's sessions were ended by a transaction of this daemon: looks at once, and lets the others look.
    func sessionsMustEnd() {
        sessionEnds?.look()
        feed?.publishSessionEnds()
    }

    /// The devices that are signed in, once each.
    var signedInDevices: [(player: PlayerID, device: DeviceID)] {
        var seen: Set<DeviceID> = []
        return sessions.values.compactMap(\.identity).filter { seen.insert($0.device).inserted }
    }

    /// Ends the sessions that are meant, in the middle of whatever they do.
    func end(_ ends: [SessionEnd]) {
        guard !ends.isEmpty else { return }
        let byPlayer = Dictionary(grouping: ends, by: \.player)
        for session in sessions.values {
            guard let identity = session.identity, let ends = byPlayer[identity.player] else { continue }
            for end in ends {
                guard
                    let reason = end.reason(device: identity.device, tokenGeneration: session.tokenGeneration)
                else { continue }
                metrics.sessionsEnded += 1
                log(
                    .info, "session-ended",
                    ["player": identity.player, "device": identity.device, "reason": reason.code])
                session.hangUp(reason)
                break
            }
        }
    }
}
