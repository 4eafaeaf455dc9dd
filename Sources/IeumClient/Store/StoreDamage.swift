import Foundation

/// Damage that was found when a store was opened.
public struct StoreDamage: Hashable, Sendable {
    /// What of the store it concerns.
    public enum Extent: Hashable, Sendable {
        /// The whole file: it was set aside, and a new one begun. What had not been sent is in the copy alone.
        case wholeFile
        /// The last saves: the file is sound, but older than what was saved into it, e.g. because its write-ahead log is gone
        /// or spoiled. What it holds was kept.
        case lastSaves
    }

    /// What of the store it concerns.
    public let extent: Extent
    /// What was found: one line, factual.
    public let message: String
    /// Where the damaged file went, or a copy of its write-ahead log; nil: nothing was left to be kept.
    public let copy: URL?
}
