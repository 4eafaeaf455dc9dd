import Arguments
import IeumClient
import TerminalText
import Wire

private let server = OptionSpec(
    "server", "HOST:PORT", environment: "IEUM_SERVER", isRequired: true,
    help:
        "where ieumd listens (port 4386 if left out); by TLS, unless it is this machine; tls:// or plain:// before it says it outright"
)
private let device = OptionSpec("device", "NAME", isRequired: true, help: "what to call this device")
private let replace = OptionSpec("replace", help: "put an identity that is here aside (its files are kept)")

private let invite = OptionSpec(
    "invite", "-", environment: "IEUM_INVITE",
    help: "read the operator's code from stdin, where new players need one")

private let joiningCodes = [ExitCode.done, .refused, .usage, .unreachable].map(\.entry)

extension ProgramCommand {
    /// `ieum register`
    static let register = ProgramCommand(
        spec: CommandSpec(
            "ieum register", "become a new player, with this device as the first",
            options: [server, device, invite, replace] + OptionSpec.security + [.timeout, .json],
            examples: ["ieum register --server games.example.org:4386 --device laptop"], exitCodes: joiningCodes),
        notes: [
            """
            The device's token is kept in the home folder ($IEUM_HOME), readable for you alone. It is never printed.
            An invite is a secret, and other users of this machine can read command lines: put it into IEUM_INVITE, or give
            --invite - and type it, or have it read: ieum register --invite - … < FILE. It works once.
            --json prints server, player, device, deviceName, home, backup.
            """
        ]
    ) { call in
        let invite = try call.invite()
        return try call.enroll { server, name in
            try ServerConnection(to: server, patience: call.patience()).register(device: name, invite: invite)
        }
    }

    /// `ieum link`
    static let link = ProgramCommand(
        spec: CommandSpec(
            "ieum link", "join your player from this device, by a code from ieum pair", positionals: ["<code|->"],
            options: [server, device, replace] + OptionSpec.security + [.timeout, .json],
            examples: ["ieum link 7K3M-Q9TD --server games.example.org:4386 --device tablet"],
            exitCodes: joiningCodes),
        notes: [
            """
            The code may be typed in upper or lower case, with or without the hyphen.
            Until it is used it is a secret, and other users of this machine can read command lines: where there are any, give -
            and type it, or have it read: ieum link - … < FILE.
            --json prints server, player, device, deviceName, home, backup.
            """
        ]
    ) { call in
        let given = call.arguments.positional(0) ?? ""
        guard let code = PairingCode(given == "-" ? readLine() ?? "" : given) else {
            throw UsageError("this is no code: a code has eight letters and digits, like 7K3M-Q9TD")
        }
        return try call.enroll { server, name in
            try ServerConnection(to: server, patience: call.patience()).link(code, device: name)
        }
    }

    /// `ieum pair`
    static let pair = ProgramCommand(
        spec: CommandSpec(
            "ieum pair", "make a code by which another device joins you", options: [.timeout, .json],
            examples: ["ieum pair"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: [
            "Stdout gets the code alone: code=$(ieum pair). --json prints code, expires, secondsLeft, server, fingerprint."
        ]
    ) { call in
        let device = try call.signIn()
        let offer = try device.connection.pair()
        // By the server's clock, since this machine's may be wrong.
        let now = Timestamp.now.microseconds + device.connection.clockOffset.microseconds
        let left = Duration.microseconds(max(0, offer.expires.microseconds - now))
        if call.wantsJSON {
            try call.printJSON([
                ("code", .string(offer.code.text)), ("expires", .time(offer.expires)),
                ("secondsLeft", .integer(left.components.seconds)),
                ("server", .string(device.identity.server.description)),
                ("fingerprint", .text(device.identity.server.fingerprint)),
            ])
            return .done
        }
        if call.output.isTerminal {
            try call.output.line("")
            try call.output.boldLine("    \(offer.code.text)")
            try call.output.line("")
        } else {
            try call.output.line(offer.code.text)
        }
        call.output.talk("Good for \(left.roundedText), for one device. Type on the other device:")
        call.output.talk("  ieum link \(offer.code.text) \(device.identity.server.arguments) --device NAME")
        return .done
    }
}

extension Call {
    /// The invite that `--invite` or the environment gives.
    fileprivate func invite() throws -> InviteCode? {
        guard let given = arguments.string("invite") else { return nil }
        guard [nil, "-"].contains(arguments.given("invite")) else {
            throw UsageError(
                "--invite takes - and reads the code from stdin: others can read a command line; or set IEUM_INVITE=CODE"
            )
        }
        guard let code = InviteCode(given == "-" ? readLine() ?? "" : given) else {
            // Not what was given: it may be a secret with a letter missing.
            throw UsageError("this is no invite: an invite has sixteen letters and digits, like 7K3M-Q9TD-0V5R-ZX2C")
        }
        return code
    }

    /// Gives this home an identity that a server grants.
    fileprivate func enroll(_ obtain: (ServerAddress, String) throws -> Token) throws -> ExitCode {
        let server = try server()
        let name = arguments.string("device") ?? ""
        guard (1...Limits.maxNameCharacters).contains(name.count), name == name.terminalSafe else {
            throw UsageError(
                "--device takes a name of 1 to \(Limits.maxNameCharacters) characters, without control characters")
        }
        let home = try home()
        let (identity, backup) = try home.enroll(isReplacing: arguments.flag("replace"), now: .now) {
            Identity(server: server, deviceName: name, token: try obtain(server, name))
        }
        if wantsJSON {
            try printJSON([
                ("server", .string(server.description)), ("player", .string(identity.player.description)),
                ("device", .string(identity.device.description)), ("deviceName", .string(name)),
                ("home", .string(home.path)), ("backup", .text(backup)),
            ])
            return .done
        }
        try output.line("\(name) is signed in at \(server).")
        try output.line("player  \(identity.player)")
        try output.line("device  \(identity.device)")
        if let backup { output.talk("The identity that was here is kept in \(backup.terminalSafe).") }
        output.talk("Save a game: ieum push COLLECTION ID --file FILE. Add a device: ieum pair")
        return .done
    }
}

extension Duration {
    /// Whole microseconds.
    var microseconds: Int64 {
        components.seconds.multipliedReportingOverflow(by: 1_000_000).partialValue
            &+ components.attoseconds / 1_000_000_000_000
    }

    /// `10 minutes`, `45 seconds`
    fileprivate var roundedText: String {
        let seconds = (microseconds + 500_000) / 1_000_000
        return seconds < 120 ? "\(seconds) seconds" : "\((seconds + 30) / 60) minutes"
    }
}
