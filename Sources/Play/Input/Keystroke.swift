import Handle

/// What a player did, as the terminal's bytes tell it.
package enum Keystroke: Hashable, Sendable {
    /// A key or a syllable: one letter or more.
    case letters([Jamo])
    /// A digit, which chooses.
    case digit(Int)
    /// Takes the last letter back.
    case backspace
    /// Submits, or goes on.
    case enter
    /// Draws everything anew: Ctrl-L.
    case redraw
    /// Goes to the background: Ctrl-Z.
    case suspend
    /// Ends the program: Ctrl-C or Ctrl-D.
    case leave
}
