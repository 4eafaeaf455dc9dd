import TestSupport
import Wire

@testable import IeumClient

/// What must hold when everything has come to rest.
extension Simulation {
    func checkEnd() {
        checkConvergence()
        checkHistory()
        checkRestored()
        checkConflicts()
        for (index, device) in devices.enumerated() where !device.signOuts.isEmpty {
            problems.append("device \(index) was signed out: \(device.signOuts)")
        }
    }

    private func checkConvergence() {
        let heads = server.heads
        for (index, device) in devices.enumerated() {
            let state = device.storage.current
            for (key, head) in heads where state.games[key]?.state != head.push.state || state.games[key] == nil {
                problems.append("device \(index) shows another state of \(key) than the server")
            }
            for (key, game) in state.games where heads[key] == nil || game.standing != .synced || game.unseen != nil {
                problems.append("device \(index) holds \(key) as \(game.standing), unseen \(game.unseen != nil)")
            }
            if !device.unsettled.isEmpty { problems.append("device \(index) has unsettled saves") }
        }
    }

    /// One version a push, however often it was sent.
    private func checkHistory() {
        var seen: Set<String> = []
        for version in server.versions {
            guard let state = version.push.state else { continue }
            let name = "\(version.push.game.id) \(version.push.device) \(String(decoding: state, as: UTF8.self))"
            if !seen.insert(name).inserted { problems.append("\(name) is in the history twice") }
        }
    }

    /// What a device showed when the server went back in time is in the history again.
    private func checkRestored() {
        for (index, device) in devices.enumerated() {
            for (key, state) in device.held where !device.editedSince.contains(key) {
                let isThere = server.versions.contains { $0.push.game.id == key.id && $0.push.state == state }
                if !isThere { problems.append("\(key), as device \(index) had it, is lost") }
            }
        }
    }

    /// Each concurrent version that is not the head was reported to the device that pushed one of the two.
    private func checkConflicts() {
        for version in server.versions where version.outcome == .lost || version.outcome == .won {
            guard let device = devices.firstIndex(where: { $0.id.uuid == version.push.device }) else { continue }
            let isRepeatedState = server.versions.contains {
                $0.push.game == version.push.game && $0.revision != version.revision
                    && $0.push.state == version.push.state
            }
            guard !isRepeatedState else { continue }
            let isReported = devices[device].storage.current.events.contains { event, isOpen in
                guard !isOpen, case .conflict(let conflict) = event.kind else { return false }
                return conflict.mine.game.id == version.push.game.id
                    && conflict.mine.header.saved.microseconds == version.push.saved
                    && conflict.outcome.rawValue == version.outcome.rawValue
            }
            if !isReported {
                problems.append("revision \(version.revision) \(version.outcome) and device \(device) was not told")
            }
        }
        for (index, device) in devices.enumerated() {
            for (event, isOpen) in device.storage.current.events where isOpen {
                problems.append("device \(index) still waits for the other side of event \(event.id)")
            }
        }
    }
}
