import Arguments
import IeumClient
import Wire

/// One call of a command: its arguments and what it works with.
struct Call {
    let arguments: ParsedArguments
    let environment: [String: String]
    let output: Output

    /// Whether to print JSON.
    var wantsJSON: Bool { arguments.flag("json") }

    /// The device's home.
    func home() throws -> DeviceHome { try DeviceHome.located(by: environment) }

    /// How long to wait for the server.
    func patience() throws -> ServerConnection.Patience {
        let timeout = try arguments.seconds("timeout", in: 0.001...86_400) ?? .seconds(10)
        return ServerConnection.Patience(connecting: timeout, answer: timeout)
    }

    /// Signs in as the home's device, and says so on stderr when the server has begun a new epoch.
    func signIn() throws -> SignedInDevice {
        let device = try SignedInDevice(home: home(), patience: patience())
        if device.isEpochNew {
            output.talk("ieum: the server was restored; what it lost can be pushed again")
        }
        return device
    }

    /// Opens the home's copy of the games and begins to bring it up to date; says on stderr when the copy had to be begun anew.
    func sync(_ patience: ServerConnection.Patience? = nil) throws -> HomeSync {
        let sync = try HomeSync(home: home(), patience: patience ?? self.patience())
        tellDamage(of: sync.store)
        return sync
    }

    /// Says on stderr that a copy of the games was damaged, if it was.
    func tellDamage(of store: GameStore) {
        guard let copy = store.damagedCopy else { return }
        output.talk(
            "ieum: the copy of the games here was damaged and is begun anew from the server; the damaged file is kept as "
                + copy.path.terminalSafe)
    }

    /// The address that `--server` gives.
    func server() throws -> ServerAddress {
        let text = arguments.string("server") ?? ""
        guard let server = ServerAddress(text) else {
            throw UsageError(
                "--server takes HOST:PORT, or HOST alone for the port \(ServerAddress.standardPort), not \"\(text)\"")
        }
        return server
    }

    /// The game that the first two positional arguments name.
    func game() throws -> GameKey {
        do throws(WireError) {
            return try GameKey(normalizing: arguments.positional(0) ?? "", arguments.positional(1) ?? "")
        } catch {
            throw UsageError(error.message)
        }
    }

    /// A place in the feed or a base, e.g. of `--since`: a revision, or 0 for none.
    func revision(_ option: String) throws -> Revision? {
        try arguments.integer(option, in: 0...Int.max).map { Revision($0) }
    }

    /// The revision of a version that there may be, e.g. of `--revision`: they begin with 1.
    func versionNumber(_ option: String) throws -> Revision? {
        try arguments.integer(option, in: 1...Int.max).map { Revision($0) }
    }

    /// Prints an object on a line.
    func printJSON(_ members: [(key: String, value: JSONText)]) throws {
        try output.json(.object(members))
    }

    /// What to call a device: its name where it is known, else the beginning of its id.
    func name(of device: DeviceID, here identity: Identity) -> String {
        device == identity.device ? identity.deviceName : String(device.description.prefix(8))
    }

    /// The keys that name a device in JSON.
    func json(of device: DeviceID, here identity: Identity) -> [(key: String, value: JSONText)] {
        [
            ("device", .string(device.description)),
            ("deviceName", .text(device == identity.device ? identity.deviceName : nil)),
        ]
    }
}

/// A command: how it is called, and what it does.
struct ProgramCommand: Sendable {
    /// Its arguments and help.
    var spec: CommandSpec
    /// More help, a paragraph each.
    var notes: [String] = []
    /// What it does.
    var run: @Sendable (Call) throws -> ExitCode

    /// The word that calls it.
    var word: String { String(spec.name.drop { $0 != " " }.dropFirst()) }

    /// The whole help text.
    var help: String {
        notes.isEmpty ? spec.help : spec.help + "\n" + notes.joined(separator: "\n\n") + "\n"
    }
}

extension OptionSpec {
    static let json = OptionSpec("json", help: "print JSON")
    static let timeout = OptionSpec("timeout", "SECONDS", default: "10", help: "how long to wait for the server")
}
