import Foundation

/// One line of an import: a history that is brought into an empty player as it was.
public enum ImportPart: Hashable, Sendable {
    /// It begins; what an earlier one left unfinished is forgotten.
    case begin
    /// A device that the versions name.
    case device(ImportedDevice)
    /// A version; revisions ascend. Its `size`, `isHead` and `isTombstone` are not part of the line.
    case version(VersionEntry)
    /// It is complete: all of it becomes the player's, or none.
    case end(ImportTotals)
    /// It is given up.
    case cancel

    /// The word that stands for it in a line.
    var word: String {
        switch self {
        case .begin: "BEGIN"
        case .device: "DEVICE"
        case .version: "VERSION"
        case .end: "END"
        case .cancel: "CANCEL"
        }
    }

    /// Whether the line is one of many, which may be under way together.
    public var isStaged: Bool {
        switch self {
        case .device, .version: true
        case .begin, .end, .cancel: false
        }
    }
}

/// A device of an imported history. It can be named, and cannot sign in.
public struct ImportedDevice: Hashable, Sendable {
    /// The device.
    public var device: DeviceID
    /// When it was registered or linked.
    public var created: Timestamp
    /// What its owner called it.
    public var name: String

    /// Names a device.
    public init(device: DeviceID, created: Timestamp, name: String) {
        self.device = device
        self.created = created
        self.name = name
    }
}

/// What an import must come to.
public struct ImportTotals: Hashable, Sendable {
    /// How many versions there are.
    public var versions: Int64
    /// How many devices there are.
    public var devices: Int64
    /// The player's last revision; that version itself may have been pruned.
    public var lastRevision: Revision
    /// Versions below this revision may have been pruned; 0: none was.
    public var purgedBefore: Revision
    /// The import that is to end, when another connection began it; `nil`: this connection's.
    public var id: UUID?

    /// Sums an import up.
    public init(versions: Int64, devices: Int64, lastRevision: Revision, purgedBefore: Revision = 0, id: UUID? = nil) {
        self.versions = versions
        self.devices = devices
        self.lastRevision = lastRevision
        self.purgedBefore = purgedBefore
        self.id = id
    }
}

extension ImportPart {
    func print(into bytes: inout [UInt8]) {
        bytes.append(UInt8(ascii: " "))
        bytes.append(text: word)
        switch self {
        case .begin, .cancel: break
        case .device(let device):
            bytes.append(option: " ", device.device)
            bytes.append(option: " created=", device.created)
            bytes.append(option: " name=", text: device.name)
        case .version(let entry):
            bytes.append(entry.game)
            entry.detail.printOrigin(into: &bytes)
            bytes.append(option: " schema=", entry.detail.schema)
            if let state = entry.state { bytes.append(state: state.span) }
        case .end(let totals):
            bytes.append(option: " versions=", totals.versions)
            bytes.append(option: " devices=", totals.devices)
            bytes.append(option: " last=", totals.lastRevision)
            if totals.purgedBefore > 0 { bytes.append(option: " purged=", totals.purgedBefore) }
            if let id = totals.id {
                bytes.append(text: " import=")
                id.print(into: &bytes)
            }
        }
    }
}

extension CommandParser {
    /// Takes what follows `IMPORT`.
    func importPart(_ line: Span<UInt8>, _ scanner: inout LineScanner) throws(WireError) -> ImportPart {
        let word = line.text(try positional(.part, .importing, line, &scanner))
        switch word.uppercased() {
        case "BEGIN":
            _ = try lastOptions(.importing, line, &scanner, known: [])
            return .begin
        case "CANCEL":
            _ = try lastOptions(.importing, line, &scanner, known: [])
            return .cancel
        case "DEVICE": return .device(try importedDevice(line, &scanner))
        case "VERSION": return .version(try importedVersion(line, &scanner))
        case "END":
            let known: CommandOptions.Keys = [.versions, .devices, .last, .purged, .importID]
            let options = try lastOptions(.importing, line, &scanner, known: known)
            return .end(
                ImportTotals(
                    versions: try Self.required("versions", options.versions),
                    devices: try Self.required("devices", options.devices),
                    lastRevision: try Self.required("last", options.last), purgedBefore: options.purged ?? 0,
                    id: options.importID))
        default:
            throw .invalidArgument(
                field: "part", "an import has no part \(word.excerpt)", hint: "Usage: \(Verb.importing.usage)")
        }
    }

    private func importedDevice(
        _ line: Span<UInt8>, _ scanner: inout LineScanner
    ) throws(WireError) -> ImportedDevice {
        let word = try positional(.device, .importing, line, &scanner)
        guard let device = DeviceID(utf8: line.extracting(word)) else {
            throw .invalidArgument(field: "device", "the device is no UUID")
        }
        let options = try lastOptions(.importing, line, &scanner, known: [.created, .name])
        return ImportedDevice(
            device: device, created: try Self.required("created", options.created),
            name: try Self.required("name", options.name))
    }

    private func importedVersion(
        _ line: Span<UInt8>, _ scanner: inout LineScanner
    ) throws(WireError) -> VersionEntry {
        let game = try gameKey(.importing, line, &scanner)
        let known: CommandOptions.Keys = [
            .revision, .outcome, .saved, .stamp, .received, .device, .base, .rival, .schema,
        ]
        let options = try CommandOptions(line, &scanner, known: known)
        guard let device = DeviceID(try Self.required("device", options.device)) else {
            throw .invalidArgument(field: "device", "device= is no UUID")
        }
        let state = scanner.hasMore(in: line) ? try state(line, &scanner) : nil
        let detail = VersionDetail(
            revision: try Self.required("revision", options.revision),
            outcome: try Self.required("outcome", options.outcome), saved: try Self.required("saved", options.saved),
            stamp: try Self.required("stamp", options.stamp), received: try Self.required("received", options.received),
            device: device, base: options.base, rival: options.rival, schema: options.schema ?? 0,
            size: state?.count ?? 0, isHead: false, isTombstone: state == nil)
        return VersionEntry(game: game, detail: detail, state: state)
    }

    private static func required<Value>(_ field: String, _ value: Value?) throws(WireError) -> Value {
        guard let value else { throw .missingOption(field, of: .importing) }
        return value
    }
}
