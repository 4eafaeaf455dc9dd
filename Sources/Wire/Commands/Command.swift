/// What a client asks of the server, one line each. Source: Documentation/protocol.md, "Commands".
public enum Command: Hashable, Sendable {
    /// Who is there: names the client's program, asks for protocol, server, epoch, limits and time.
    case hello(client: String?)
    /// Make a player and its first device, by an invite where the server asks for one.
    case register(device: String?, invite: InviteCode? = nil)
    /// Sign in as a device.
    case login(Token)
    /// Make a code by which another device joins this player.
    case pair
    /// Join a player by a code.
    case link(code: PairingCode, device: String?)
    /// Offer a version, or a tombstone (`DELETE`).
    case push(Push)
    /// The games whose head changed after a cursor.
    case pull(since: Revision, limit: Int?)
    /// Tell when there is something after a cursor.
    case watch(since: Revision)
    /// Stop telling.
    case unwatch
    /// One game's head, or one version of it.
    case get(GameKey, revision: Revision?)
    /// One game's versions, newest first, without states.
    case history(GameKey, before: Revision?, limit: Int?)
    /// The versions of all games, in the order of their revisions.
    case versions(VersionsQuery)
    /// The player's devices.
    case devices(after: DeviceID?, limit: Int?)
    /// Call one of the player's devices otherwise; `nil`: this one.
    case rename(DeviceID?, name: String)
    /// End one of the player's devices.
    case revoke(DeviceID)
    /// Get another token for this device.
    case rotate
    /// A part of a history that is brought into an empty player.
    case importing(ImportPart)
    /// The server's time.
    case time
    /// Is anybody there.
    case ping
    /// Help on the protocol, or on one verb.
    case help(topic: String?)
    /// Say goodbye.
    case quit
}

/// The first word of a command.
public enum Verb: String, CaseIterable, Sendable {
    case hello = "HELLO"
    case register = "REGISTER"
    case login = "LOGIN"
    case pair = "PAIR"
    case link = "LINK"
    case push = "PUSH"
    case delete = "DELETE"
    case pull = "PULL"
    case watch = "WATCH"
    case unwatch = "UNWATCH"
    case get = "GET"
    case history = "HISTORY"
    case versions = "VERSIONS"
    case devices = "DEVICES"
    case rename = "RENAME"
    case revoke = "REVOKE"
    case rotate = "ROTATE"
    case importing = "IMPORT"
    case time = "TIME"
    case ping = "PING"
    case help = "HELP"
    case quit = "QUIT"

    /// Finds the verb that a word names, in either case.
    public init?(_ word: String) {
        guard let verb = Verb(rawValue: word.uppercased()) else { return nil }
        self = verb
    }

    /// The verb that a mistyped word most likely meant: at most two letters away.
    static func suggestion(for word: String) -> Verb? {
        let typed = Array(String(word.unicodeScalars.prefix(16)).uppercased().utf8)
        let ranked = allCases.filter { abs($0.rawValue.utf8.count - typed.count) <= 2 }.map { verb in
            (verb: verb, distance: distance(typed, Array(verb.rawValue.utf8)))
        }
        guard let best = ranked.min(by: { $0.distance < $1.distance }) else { return nil }
        return best.distance <= 2 && best.distance < typed.count ? best.verb : nil
    }

    /// Levenshtein's distance; a pair of swapped neighbours counts as one.
    private static func distance(_ left: [UInt8], _ right: [UInt8]) -> Int {
        var before: [Int] = []
        var last = Array(0...right.count)
        for row in left.indices {
            var line = [row + 1]
            for column in right.indices {
                let substitution = last[column] + (left[row] == right[column] ? 0 : 1)
                var cost = min(substitution, last[column + 1] + 1, line[column] + 1)
                if row > 0, column > 0, left[row] == right[column - 1], left[row - 1] == right[column] {
                    cost = min(cost, before[column - 1] + 1)
                }
                line.append(cost)
            }
            before = last
            last = line
        }
        return last[right.count]
    }
}

extension Command {
    /// The command's first word.
    public var verb: Verb {
        switch self {
        case .hello: .hello
        case .register: .register
        case .login: .login
        case .pair: .pair
        case .link: .link
        case .push(let push): push.state == nil ? .delete : .push
        case .pull: .pull
        case .watch: .watch
        case .unwatch: .unwatch
        case .get: .get
        case .history: .history
        case .versions: .versions
        case .devices: .devices
        case .rename: .rename
        case .revoke: .revoke
        case .rotate: .rotate
        case .importing: .importing
        case .time: .time
        case .ping: .ping
        case .help: .help
        case .quit: .quit
        }
    }
}
