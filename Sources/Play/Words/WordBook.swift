/// Where guesses are looked up.
package protocol WordBook: Sendable {
    /// Says whether one of the texts is a word. Answers soon, on any thread, and exactly once.
    func lookUp(_ texts: [String], _ answer: @escaping @Sendable (PlaySession.Verdict) -> Void)
}
