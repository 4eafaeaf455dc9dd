extension Verb {
    /// How to write the command.
    public var usage: String {
        switch self {
        case .hello: "HELLO [client=<name>]"
        case .register: "REGISTER [device=<name>] [invite=<code>]"
        case .login: "LOGIN <token>"
        case .pair: "PAIR"
        case .link: "LINK <code> [device=<name>]"
        case .push: "PUSH <collection> <id> [saved=<time>] [base=<revision>] [schema=<number>] <json>"
        case .delete: "DELETE <collection> <id> [saved=<time>] [base=<revision>] [schema=<number>]"
        case .pull: "PULL [since=<cursor>] [limit=<number>]"
        case .watch: "WATCH [since=<cursor>]"
        case .unwatch: "UNWATCH"
        case .get: "GET <collection> <id> [revision=<revision>]"
        case .history: "HISTORY <collection> <id> [before=<revision>] [limit=<number>]"
        case .versions:
            "VERSIONS [since|before|revision=<revision>] [limit=<number>] [conflicts=<flag>] [states=<flag>]"
        case .devices: "DEVICES [after=<device>] [limit=<number>]"
        case .rename: "RENAME [<device>] name=<name>"
        case .revoke: "REVOKE <device>"
        case .rotate: "ROTATE"
        case .importing: "IMPORT (BEGIN | DEVICE | VERSION | END | CANCEL) …"
        case .time: "TIME"
        case .ping: "PING"
        case .help: "HELP [<command>]"
        case .quit: "QUIT"
        }
    }

    /// What the command does, in a few words.
    var summary: String {
        switch self {
        case .hello: "who is there: protocol, server, epoch, limits, time"
        case .register: "make a new player with this device, and a token to sign in with"
        case .login: "sign in as a device"
        case .pair: "make a code by which another device joins you"
        case .link: "join a player by a code, and get a token to sign in with"
        case .push: "save a game"
        case .delete: "remove a game; its history stays"
        case .pull: "read the games that changed"
        case .watch: "be told when a game changes"
        case .unwatch: "be told no more"
        case .get: "read one game, or an older version of it"
        case .history: "list a game's versions, newest first"
        case .versions: "list the versions of all games, in the order of their revisions"
        case .devices: "list your devices"
        case .rename: "call one of your devices otherwise"
        case .revoke: "end one of your devices at once: it is signed out everywhere"
        case .rotate: "get another token for this device"
        case .importing: "bring an exported history into an empty player"
        case .time: "the server's time"
        case .ping: "see whether the server is there"
        case .help: "this list, or more about one command"
        case .quit: "say goodbye; the server closes the connection"
        }
    }

    /// A line to try.
    var example: String {
        switch self {
        case .hello: "HELLO client=\"nc by hand\""
        case .register: "REGISTER device=\"my laptop\""
        case .login: "LOGIN <the token that REGISTER or LINK answered>"
        case .link: "LINK 7K3M-Q9TD device=\"my phone\""
        case .push: "PUSH handle.game today base=0 schema=1 {\"answer\":\"한글\",\"guesses\":[]}"
        case .delete: "DELETE handle.game today base=42"
        case .pull: "PULL since=0 limit=100"
        case .watch: "WATCH since=42"
        case .get: "GET handle.game today revision=41"
        case .history: "HISTORY handle.game today limit=20"
        case .versions: "VERSIONS before=42 limit=20 conflicts=true"
        case .devices: "DEVICES limit=20"
        case .rename: "RENAME name=\"my old phone\""
        case .revoke: "REVOKE 9a0c6b12-4e0f-4f6e-8a5d-2c7b1e9f0d33"
        case .importing: "IMPORT BEGIN"
        case .help: "HELP PUSH"
        case .pair, .rotate, .unwatch, .time, .ping, .quit: rawValue
        }
    }

    /// What to know about the command, a line each.
    var notes: [String] {
        switch self {
        case .hello: ["Optional. Works signed in or not."]
        case .register:
            [
                "The token is shown once: keep it. It signs this device in on the next connection (LOGIN).",
                "invite  a code of the server's operator, where new players need one",
            ]
        case .login: ["Answers the player, the device and the player's last revision."]
        case .pair: ["The code holds for ten minutes, for one device. Type it there: LINK <code>."]
        case .link:
            ["Upper or lower case, with or without the hyphen. The token is shown once: keep it."]
        case .push:
            [
                "saved  when the game was saved, UTC, e.g. 2026-11-29T11:59:58.120000Z; left out: the server's time",
                "base   the revision of this game that you saw last; 0: you believe that it is new; left out: unknown",
                "schema the version of the state's shape, for your app",
                "json   one JSON value, to the end of the line",
                "Answers outcome=created, advanced or won: it is the game's head now. lost: it is kept in the history,",
                "and the head is sent along. repeated: you had sent it before. Sending a push twice is safe.",
            ]
        case .delete: ["Follows the rules of PUSH. A later PUSH brings the game back."]
        case .pull:
            [
                "Sends a GAME line for each game whose head is later than since, GONE for a removed one, then END.",
                "Go on with PULL since=<cursor of END> while END says more=true.",
            ]
        case .watch:
            [
                "Sends * CHANGED revision=N whenever there is something after since; then PULL.",
                "Other commands go on working.",
            ]
        case .unwatch: ["Ends WATCH. Answers OK, too, when there is nothing to end."]
        case .get: ["Without revision: the head. Answers a GAME line (GONE for a removed game), then END."]
        case .history:
            [
                "Sends a VERSION line for each version, without its state: GET ... revision=N reads that.",
                "Go on with before=<before of END> while END says more=true.",
            ]
        case .versions:
            [
                "since    from the oldest on; before: from the newest on; revision: this one alone",
                "conflicts=true: only versions that won or lost. states=true: with their states, to the end of the line.",
                "Sends VERSION lines, then END. Go on with since=<cursor of END>, or before=<before of END>,",
                "while END says more=true.",
            ]
        case .devices:
            [
                "Sends a DEVICE line for each, then END. clock-offset: how far its clock is ahead, in microseconds.",
                "Go on with after=<after of END> while END says more=true.",
            ]
        case .rename: ["Without a device: this one."]
        case .revoke:
            [
                "Its token and its open connections end within a second. Its games and its history stay.",
                "The own device may be given, to sign out for good.",
            ]
        case .rotate:
            [
                "Answers the new token, once. The old one holds until the first LOGIN with the new one; then it ends,",
                "and with it every connection that it signed in.",
            ]
        case .importing:
            [
                "IMPORT BEGIN, then for each device and each version of the history, revisions ascending:",
                "IMPORT DEVICE <device> created=<time> name=<name>",
                "IMPORT VERSION <collection> <id> revision=<revision> outcome=<outcome> saved=<time> stamp=<time>",
                "  received=<time> device=<device> [base=<revision>] [rival=<revision>] [schema=<number>] [<json>]",
                "IMPORT END versions=<number> devices=<number> last=<revision> [purged=<revision>] [import=<import>]",
                "All of it becomes yours with END, or nothing. IMPORT CANCEL forgets it.",
            ]
        case .time: ["UTC, to the microsecond."]
        case .ping: ["Keeps a connection open that would else be idle."]
        case .help: []
        case .quit: ["Commands sent before it are answered first."]
        }
    }
}

/// What `HELP` answers: lines that begin with `# `, then `END`.
enum Help {
    /// Appends the list of commands.
    static func printOverview(into bytes: inout [UInt8]) {
        line("Ieum keeps games that continue on another device. One command a line:", into: &bytes)
        for verb in Verb.allCases {
            let name = verb.rawValue
            line("  \(name)\(String(repeating: " ", count: 9 - name.utf8.count))\(verb.summary)", into: &bytes)
        }
        line("A first try:", into: &bytes)
        for verb in [Verb.register, .push, .pull] { line("  \(verb.example)", into: &bytes) }
        line("HELP <command> tells more, e.g. HELP PUSH.", into: &bytes)
        bytes.append(text: "END\n")
    }

    /// Appends the help for one command.
    static func print(_ verb: Verb, into bytes: inout [UInt8]) {
        line("\(verb.rawValue): \(verb.summary)", into: &bytes)
        line("Usage:   \(verb.usage)", into: &bytes)
        line("Example: \(verb.example)", into: &bytes)
        for note in verb.notes { line(note, into: &bytes) }
        bytes.append(text: "END\n")
    }

    private static func line(_ text: String, into bytes: inout [UInt8]) {
        bytes.append(text: "# ")
        bytes.append(text: text)
        bytes.append(UInt8(ascii: "\n"))
    }
}
