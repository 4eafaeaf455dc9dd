import Wire

/// What is known of a store's file after a transaction that has saved one game: a game that is saved again, as it is after every
/// key, then needs nothing to be read.
///
/// It holds as long as the file's data version does, which every change makes another one, whoever makes it.
struct SavedRow {
    /// A row of `games`.
    struct Head {
        var rowid: Int64
        var isDeleted: Bool
        var isSame: Bool
        var schema: Int32
        var timestamp: Int64
        var saved: Int64
        var stamp: Int64?
        var isUnsent: Bool
        /// Whether it is an edit of this device's already.
        var isEdited: Bool
        var change: Int64
    }

    /// What the file says when a transaction first changes something.
    struct Start {
        /// The number of the last visible change.
        var change: Int64
        /// What the server's clock is ahead of this device's, in microseconds.
        var clockOffset: Int64
    }

    let version: UInt32
    let key: GameKey
    let head: Head
    let start: Start

    init?(_ row: (key: GameKey, head: Head, start: Start), version: UInt32?) {
        guard let version else { return nil }
        self.version = version
        (key, head, start) = row
    }
}
