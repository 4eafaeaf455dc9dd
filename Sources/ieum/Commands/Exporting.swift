import Arguments
import IeumClient
import Wire

extension ProgramCommand {
    /// `ieum export`
    static let export = ProgramCommand(
        spec: CommandSpec(
            "ieum export", "write the player's games and their whole history as JSON Lines",
            options: [
                OptionSpec("output", "FILE|-", default: "-", help: "where to; - is stdout"), .timeout, .json,
            ],
            examples: ["ieum export --output games.jsonl"],
            exitCodes: [ExitCode.done, .refused, .usage, .unreachable, .notSignedIn].map(\.entry)),
        notes: [
            """
            A line each: where it comes from; every version with all that the server knows of it, its state byte for byte,
            a device before the first version that it pushed; at last how many there are, and a checksum. The file is there
            when it is whole, readable for its owner alone. ieum import brings it into another player, here or elsewhere.
            --json prints, with --output FILE, versions, devices, lastRevision, purgedBefore, sha256.
            """
        ]
    ) { call in
        let path = call.arguments.string("output") ?? "-"
        let device = try call.signIn()
        let target = try ExportTarget(path, call.output)
        var export = Export(device, target) { call.output.progress("\($0) versions") }
        let end = try export.write()
        call.output.endProgress()
        guard path != "-" else { return .done }
        if call.wantsJSON {
            try call.printJSON([
                ("versions", .integer(end.totals.versions)), ("devices", .integer(end.totals.devices)),
                ("lastRevision", .integer(end.totals.lastRevision)),
                ("purgedBefore", .integer(end.totals.purgedBefore)),
                ("sha256", .string(end.checksum)),
            ])
        } else {
            call.output.talk(
                "\(end.totals.versions) versions by \(end.totals.devices) devices, up to revision "
                    + "\(end.totals.lastRevision), are in \(path).")
        }
        return .done
    }
}

/// Writes a history, page by page: what is in memory is a page.
private struct Export {
    private let device: SignedInDevice
    private let target: ExportTarget
    private let progress: (Int64) -> Void
    private var writer = ExportWriter()

    init(_ device: SignedInDevice, _ target: ExportTarget, progress: @escaping (Int64) -> Void) {
        self.device = device
        self.target = target
        self.progress = progress
    }

    mutating func write() throws -> ExportLine.End {
        let connection = device.connection
        let names = Dictionary(try connection.devices().map { ($0.device, $0) }, uniquingKeysWith: { $1 })
        try target.write(
            ExportLine.header(
                .init(epoch: connection.greeting.epoch, player: device.identity.player, exported: .now)
            ).bytes)
        var (lastRevision, purgedBefore): (Revision, Revision) = (0, 0)
        var isFirst = true
        var next: Revision? = 0
        while let since = next {
            let page = try connection.versions(VersionsQuery(.since(since), limit: 1_000, withStates: true))
            if isFirst {
                // What is pushed from now on is for the next export.
                (lastRevision, purgedBefore, isFirst) = (page.lastRevision, page.purgedBefore, false)
            }
            guard page.purgedBefore == purgedBefore else {
                throw Failure(
                    .unreachable, code: "pruned-meanwhile", "old versions were removed while they were read",
                    hint: "Export again.")
            }
            for version in page.versions where version.detail.revision <= lastRevision {
                try target.write(
                    writer.lines(of: version) { author in
                        let entry = names[author]
                        return ImportedDevice(
                            device: author, created: entry?.created ?? version.detail.received,
                            name: entry?.name ?? "device")
                    })
            }
            progress(writer.versions)
            next = page.next.flatMap { $0 < lastRevision ? $0 : nil }
        }
        let end = writer.end(lastRevision: lastRevision, purgedBefore: purgedBefore)
        try target.write(ExportLine.end(end).bytes)
        try target.finish()
        return end
    }
}
