/// One player as its device sees it: how to sign in, its games, and the revision of each that it has seen.
final class Player {
    /// The player's id, as the daemon printed it.
    let id: String
    /// What signs the device in.
    let token: String
    /// The player's last revision.
    var revision: Int64 = 0
    /// The player's games.
    var games: [Game] = []
    private var lastSaved: Int64 = 0

    /// One of the player's games.
    struct Game {
        /// Its id, a UUID's text.
        var id: String
        /// The start of the command that pushes it, up to the value of `saved=`.
        var pushPrefix: [UInt8]
        /// The revision of its head.
        var revision: Int64

        init(id: String, revision: Int64 = 0) {
            self.id = id
            self.revision = revision
            pushPrefix = Array("PUSH \(collectionName) \(id) saved=".utf8)
        }
    }

    init(id: String, token: String) {
        self.id = id
        self.token = token
    }

    /// A `saved` for the next push in microseconds since 1970: now, or a microsecond after the last one.
    func nextSaved() -> Int64 {
        lastSaved = max(wallMicroseconds(), lastSaved + 1)
        return lastSaved
    }
}

/// The collection that every game here belongs to.
let collectionName = "handle.game"
