import IeumClient

/// How the game stands with its server, for the line at the bottom.
package struct Connection: Hashable, Sendable {
    /// What the line says first.
    package enum State: Hashable, Sendable {
        /// The device belongs to no player yet: the games are here alone.
        case local
        case offline
        case connecting
        case syncing
        case upToDate
        case signedOut
    }

    /// How it stands.
    package var state: State
    /// The name of this device; nil while it has none.
    package var device: String?
    /// Games whose last save the server has not acknowledged.
    package var unsent: Int

    /// Puts it together.
    package init(_ state: State, device: String? = nil, unsent: Int = 0) {
        self.state = state
        self.device = device
        self.unsent = unsent
    }

    /// Takes a status of the engine's. A try to connect again is no news to somebody who is offline.
    package mutating func take(_ status: SyncStatus) {
        state =
            switch status {
            case .offline: .offline
            case .connecting: state == .offline ? .offline : .connecting
            case .syncing: .syncing
            case .upToDate: .upToDate
            case .signedOut: .signedOut
            }
    }

    /// The line.
    package var line: String {
        let name = device.map { "\($0): " } ?? ""
        let waiting = unsent == 0 ? "" : "; \(unsent) unsent \(unsent == 1 ? "game" : "games")"
        return switch state {
        case .local: "Kept on this device. For all: ieum register --server HOST:PORT --device NAME"
        case .offline: "\(name)offline, the game goes on\(waiting)"
        case .connecting: "\(name)connecting\(waiting)"
        case .syncing: "\(name)syncing\(waiting)"
        case .upToDate: "\(name)up to date"
        case .signedOut: "\(name)signed out, the game goes on\(waiting). See ieum status"
        }
    }

    /// Whether the line tells something that a player may want to mend.
    package var isTroubled: Bool {
        switch state {
        case .offline, .signedOut: true
        case .local, .connecting, .syncing, .upToDate: false
        }
    }
}
