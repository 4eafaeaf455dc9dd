import Foundation
import Handle

/// Two devices have played one game without having seen each other: what is shown now, and what could be taken instead.
package struct Clash: Hashable, Sendable {
    /// One of the two.
    package struct Side: Hashable, Sendable {
        /// Who saved it.
        package var device: String
        /// When it was saved, `20:12`.
        package var time: String
        /// The game; nil when it was deleted, or when this version of the program cannot read it.
        package var game: Game?

        /// Puts a side together.
        package init(device: String, time: String, game: Game?) {
            (self.device, self.time, self.game) = (device, time, game)
        }
    }

    /// What all devices show now.
    package var shown: Side
    /// What is in the history alone.
    package var other: Side

    /// Puts a clash together.
    package init(shown: Side, other: Side) {
        (self.shown, self.other) = (shown, other)
    }

    /// Whether there is something to choose: the other side has guesses that are not shown, or something that cannot be compared.
    package var needsChoice: Bool {
        guard let other = other.game else { return false }
        guard let shown = shown.game else { return true }
        return !other.isBeginning(of: shown)
    }
}
