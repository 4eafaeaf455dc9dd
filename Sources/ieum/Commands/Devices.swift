import Arguments
import Glibc
import IeumClient
import Wire

extension ProgramCommand {
    /// `ieum devices`
    static let devices = ProgramCommand(
        spec: CommandSpec(
            "ieum devices", "list your devices, call one otherwise, end one, or get this one another token",
            positionals: ["[list|rename|revoke|rotate]", "[device]", "[name]"],
            options: [OptionSpec("yes", help: "revoke without asking"), .timeout, .json],
            examples: [
                "ieum devices", "ieum devices rename phone", "ieum devices rename 3f2a9c01 tablet",
                "ieum devices revoke 3f2a9c01", "ieum devices rotate",
            ],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: [
            """
            A device is named by its id, by the beginning of its id, or by its name where only one has it.
            rename NAME        calls this device otherwise; rename DEVICE NAME another one.
            revoke DEVICE      ends it: its token and its connections end within a second, its saves stay. Asks first on a
                               terminal; a script says --yes. Revoking this device signs it out for good.
            rotate             gets this device another token and signs it in with that, which ends the old one.
            --json prints devices (device, name, created, seen, clockOffset, revoked, this), or what was renamed or revoked.
            """
        ]
    ) { call in
        switch call.arguments.positional(0) ?? "list" {
        case "list": try call.listDevices()
        case "rename": try call.renameDevice()
        case "revoke": try call.revokeDevice()
        case "rotate": try call.rotateToken()
        case let word:
            throw UsageError(
                "there is no ieum devices \(word.prefix(60))"
                    + (nearest(to: word, in: ["list", "rename", "revoke", "rotate"]).map { "; did you mean \($0)?" }
                        ?? ""))
        }
        return .done
    }
}

extension Call {
    fileprivate func listDevices() throws {
        guard arguments.positionals.count <= 1 else { throw UsageError("ieum devices list takes no further words") }
        let device = try signIn()
        let entries = try device.connection.devices().sorted { left, right in
            (left.revoked == nil) != (right.revoked == nil) ? left.revoked == nil : left.created > right.created
        }
        if wantsJSON {
            return try printJSON([("devices", .array(entries.map { .object(json($0, own: device.identity.device)) }))])
        }
        var table = Table([
            .left(" "), .left("DEVICE"), .left("NAME"), .left("JOINED (UTC)"), .left("LAST SAVE (UTC)"), .left("STATE"),
        ])
        for entry in entries {
            let isOwn = entry.device == device.identity.device
            let style: Style? = entry.revoked != nil ? .faint : isOwn ? .green : nil
            table.add([
                StyledText(isOwn ? "*" : " ", .green), StyledText(String(entry.device.description.prefix(8)), style),
                StyledText(entry.name, style), StyledText(entry.created.shortText),
                StyledText(entry.seen?.shortText ?? "-"),
                StyledText(
                    entry.revoked.map { "revoked \($0.shortText)" } ?? (isOwn ? "this device" : "signed in"), style),
            ])
        }
        try output.table(table)
    }

    fileprivate func renameDevice() throws {
        let words = Array(arguments.positionals.dropFirst())
        guard let name = words.last else { throw UsageError("<name> is missing: ieum devices rename [device] <name>") }
        let device = try signIn()
        let entry = words.count == 2 ? try find(words[0], device) : nil
        let id = entry?.device ?? device.identity.device
        try device.connection.rename(id, to: name)
        if id == device.identity.device { try device.home.rename(to: name) }
        if wantsJSON { return try printJSON([("device", .string(id.description)), ("name", .string(name))]) }
        try output.line("\(id.description.prefix(8)) is called \(name) now.")
    }

    fileprivate func revokeDevice() throws {
        let words = arguments.positionals.dropFirst()
        guard let word = words.first, words.count == 1 else {
            throw UsageError("name one device: ieum devices revoke <device>")
        }
        let device = try signIn()
        let entry = try find(word, device)
        let isOwn = entry.device == device.identity.device
        let what = "\(entry.name) (\(entry.device.description.prefix(8)))" + (isOwn ? ", which is this device," : "")
        if !arguments.flag("yes") {
            guard isatty(STDIN_FILENO) == 1 else {
                throw UsageError("nobody can be asked here whether to revoke \(what): add --yes")
            }
            output.talk("\(what) is signed out for good, wherever it is. What it saved stays.")
            output.ask("Revoke it? Type yes: ")
            guard readLine()?.lowercased() == "yes" else {
                throw Failure(.refused, code: "cancelled", "nothing was revoked")
            }
        }
        try device.connection.revoke(entry.device)
        if wantsJSON {
            return try printJSON([("device", .string(entry.device.description)), ("revoked", .boolean(true))])
        }
        try output.line("\(what) is revoked.")
    }

    fileprivate func rotateToken() throws {
        guard arguments.positionals.count == 1 else { throw UsageError("ieum devices rotate takes no further words") }
        let device = try signIn()
        try device.rotateToken()
        if wantsJSON {
            return try printJSON([("device", .string(device.identity.device.description)), ("rotated", .boolean(true))])
        }
        try output.line("This device has another token. The old one is void.")
    }

    /// The device that a word names.
    private func find(_ word: String, _ device: SignedInDevice) throws -> DeviceEntry {
        let entries = try device.connection.devices()
        let lower = word.lowercased()
        let isPrefix = lower.count >= 4 && lower.allSatisfy { $0.isHexDigit || $0 == "-" }
        let named = entries.filter { $0.name == word && $0.revoked == nil }
        let found =
            entries.filter { $0.device.description == lower }.first.map { [$0] }
            ?? (named.isEmpty && isPrefix ? entries.filter { $0.device.description.hasPrefix(lower) } : named)
        guard let entry = found.first else {
            throw Failure(
                .refused, code: WireError.Code.noSuchDevice.rawValue, "you have no device \(word)",
                hint: "List them: ieum devices")
        }
        guard found.count == 1 else {
            throw Failure(
                .refused, code: "ambiguous-device", "\(found.count) devices are called \(word)",
                hint: "Name it by its id: ieum devices")
        }
        return entry
    }

    private func json(_ entry: DeviceEntry, own: DeviceID) -> [(key: String, value: JSONText)] {
        [
            ("device", .string(entry.device.description)), ("name", .string(entry.name)),
            ("created", .time(entry.created)), ("seen", .time(entry.seen)), ("clockOffset", .number(entry.clockOffset)),
            ("revoked", .time(entry.revoked)), ("this", .boolean(entry.device == own)),
        ]
    }
}
