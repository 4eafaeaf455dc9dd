/// What an attacker does, as fast as one thread of the lowest priority can, or as slowly as is worst.
enum Flood: String, CaseIterable {
    /// Connects, reads the greeting, resets, and connects again.
    case connections
    /// Tries wrong tokens of a device that there is, from ever new addresses.
    case logins
    /// The same from one address.
    case loginsOfOne = "logins-of-one"
    /// Sends lines that are no commands, without waiting for the answers.
    case garbage
    /// Sends lines that never end.
    case endless
    /// A thousand connections, each with a byte of a line ten times a second.
    case drip
    /// Tries pairing codes from ever new addresses.
    case guesses
    /// Pushes one player's games without waiting for the answers.
    case pushes
    /// Pings without waiting for the answers.
    case pings
    /// Pings, and again as soon as the answer is there: little from each, but from many.
    case chatter

    /// The key's part of its figures.
    var key: String { rawValue.split(separator: "-").joined(separator: "_") }

    /// How many connections it keeps.
    var width: Int {
        switch self {
        case .drip: 1_000
        case .chatter: 512
        case .pushes: 4
        default: 64
        }
    }

    /// Whether it signs in first, as a player.
    var signsIn: Bool { self == .pushes || self == .pings }

    /// What the daemon must answer, `ERR` and `BYE` codes or `OK`; anything else is an error of the run.
    var answers: Set<String> {
        switch self {
        case .connections, .drip: []
        case .logins: ["login-failed", "busy", "too-many-tries"]
        case .loginsOfOne: ["login-failed", "too-many-tries", "busy"]
        case .garbage: ["unknown-command", "invalid-line", "invalid-utf8", "not-signed-in"]
        case .endless: ["line-too-long"]
        case .guesses: ["code-invalid", "too-many-tries", "busy"]
        case .pushes: ["OK", "rate-limited"]
        case .pings, .chatter: ["OK"]
        }
    }
}
