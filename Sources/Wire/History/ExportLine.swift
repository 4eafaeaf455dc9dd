import Foundation

/// One line of an exported history, as `ieum export` and `ieumd export` write it and `ieum import` reads it. Source:
/// Documentation/history.md, "Export and import".
///
/// The members stand in a fixed order, a version's state last and byte for byte as it was pushed. So a file that was
/// exported again is the same, and a line can be read without its state being looked into.
package enum ExportLine {
    case header(Header)
    case device(ImportedDevice)
    case version(VersionEntry)
    case end(End)

    /// The first line: where it came from.
    package struct Header {
        /// The life of the database that it came from.
        package var epoch: UUID
        /// Whose history it is.
        package var player: PlayerID
        /// When it was exported.
        package var exported: Timestamp

        package init(epoch: UUID, player: PlayerID, exported: Timestamp) {
            self.epoch = epoch
            self.player = player
            self.exported = exported
        }
    }

    /// The last line: what there must be.
    package struct End {
        /// How much there is.
        package var totals: ImportTotals
        /// SHA-256 of everything behind the first line, up to this line's `,"sha256"`.
        package var checksum: String

        package init(totals: ImportTotals, checksum: String) {
            self.totals = totals
            self.checksum = checksum
        }
    }

    /// The version of the format.
    package static let format: Int64 = 1
    /// What stands between the bytes that an end's checksum is of, and the checksum.
    package static let checksumMark: StaticString = #","sha256":""#

    /// The line, its line feed included.
    package var bytes: [UInt8] {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return bytes
    }

    /// Appends the line, its line feed included.
    package func print(into bytes: inout [UInt8]) {
        switch self {
        case .header(let header):
            bytes.append(text: #"{"ieum":"history","format":"#)
            bytes.append(decimal: Self.format)
            bytes.append(text: #","epoch":""#)
            bytes.append(text: header.epoch.uuidString.lowercased())
            bytes.append(text: #"","player":""#)
            header.player.print(into: &bytes)
            bytes.append(member: #"","exported":""#, header.exported)
            bytes.append(text: "\"}\n")
        case .device(let device):
            bytes.append(text: #"{"device":""#)
            device.device.print(into: &bytes)
            bytes.append(text: #"","name":"#)
            bytes.append(quoted: device.name)
            bytes.append(member: #","created":""#, device.created)
            bytes.append(text: "\"}\n")
        case .version(let version): Self.print(version, into: &bytes)
        case .end(let end):
            Self.printTotals(end.totals, into: &bytes)
            bytes.append(text: Self.checksumMark)
            bytes.append(text: end.checksum)
            bytes.append(text: "\"}\n")
        }
    }

    /// Appends an end's line as far as its checksum is of it.
    static func printTotals(_ totals: ImportTotals, into bytes: inout [UInt8]) {
        bytes.append(option: #"{"end":"history","versions":"#, totals.versions)
        bytes.append(option: #","devices":"#, totals.devices)
        bytes.append(option: #","lastRevision":"#, totals.lastRevision)
        bytes.append(option: #","purgedBefore":"#, totals.purgedBefore)
    }

    private static func print(_ version: VersionEntry, into bytes: inout [UInt8]) {
        let detail = version.detail
        bytes.append(option: #"{"revision":"#, detail.revision)
        bytes.append(text: #","collection":"#)
        bytes.append(quoted: version.game.collection)
        bytes.append(text: #","id":"#)
        bytes.append(quoted: version.game.id)
        bytes.append(text: #","outcome":""#)
        bytes.append(text: detail.outcome.rawValue)
        bytes.append(member: #"","saved":""#, detail.saved)
        bytes.append(member: #"","stamp":""#, detail.stamp)
        bytes.append(member: #"","received":""#, detail.received)
        bytes.append(text: #"","device":""#)
        detail.device.print(into: &bytes)
        bytes.append(member: #"","base":"#, detail.base)
        bytes.append(member: #","rival":"#, detail.rival)
        bytes.append(option: #","schema":"#, detail.schema)
        bytes.append(text: detail.isTombstone ? #","deleted":true,"state":"# : #","deleted":false,"state":"#)
        if let state = version.state { bytes.append(contentsOf: state) } else { bytes.append(text: "null") }
        bytes.append(text: "}\n")
    }
}

extension [UInt8] {
    /// Appends a key with what stands around it, and a time.
    fileprivate mutating func append(member key: StaticString, _ time: Timestamp) {
        append(text: key)
        time.print(into: &self)
    }

    /// Appends a key with what stands around it, and a number or null.
    fileprivate mutating func append(member key: StaticString, _ number: Int64?) {
        append(text: key)
        if let number { append(decimal: number) } else { append(text: "null") }
    }
}
