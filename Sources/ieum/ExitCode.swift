/// How the program ends. Scripts depend on these numbers: they never change their meaning.
enum ExitCode: Int32, CaseIterable {
    /// Done.
    case done = 0
    /// The server refused, or a file of the device's could not be used.
    case refused = 1
    /// The call is wrong: its arguments, or a file that they name.
    case usage = 2
    /// The push is stored, but another version stays the head.
    case lost = 3
    /// The server was not reached, did not answer in time, or asks to come back later.
    case unreachable = 4
    /// There is no identity here, or the server does not know it any more.
    case notSignedIn = 5
    /// There is no such game or version, or it is deleted.
    case noSuchGame = 6
    /// Nobody reads what is printed: what a shell reports for SIGPIPE.
    case brokenPipe = 141

    /// What it means, for the help text.
    var meaning: String {
        switch self {
        case .done: "done"
        case .refused: "refused by the server, or a file here cannot be used"
        case .usage: "wrong call, or what it is to read is not as it must be"
        case .lost: "stored, but it lost a conflict"
        case .unreachable: "server unreachable, too slow or busy (a retry is safe)"
        case .notSignedIn: "not signed in"
        case .noSuchGame: "no such game"
        case .brokenPipe: "nobody reads the output"
        }
    }

    /// As a command's spec lists it.
    var entry: (code: Int32, meaning: String) { (rawValue, meaning) }
}
