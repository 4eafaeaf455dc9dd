import Foundation
import IeumClient
import Wire

extension ExportLine {
    /// Why a line is none.
    struct Problem: Error {
        /// A stable name.
        var code = "export-damaged"
        /// What is wrong.
        var message: String
    }

    private static let stateMark = Array(#","state":"#.utf8)

    /// Reads a line without its line feed.
    init(_ line: ArraySlice<UInt8>) throws(Problem) {
        // No string before the state holds a quotation mark that is not escaped, so the mark stands where it seems to.
        let mark = line.range(of: Self.stateMark)
        let head = mark.map { Array(line[..<$0.lowerBound]) + [UInt8(ascii: "}")] } ?? Array(line)
        let object: RawJSON
        do {
            object = try RawJSON(checking: head)
        } catch {
            throw Problem(message: "it is no JSON object")
        }
        guard let members = object.members, let first = members.first else {
            throw Problem(message: "it is no JSON object")
        }
        var fields = Fields(members)
        switch String(decoding: first.key, as: UTF8.self) {
        case "ieum":
            guard try fields.text("ieum") == "history" else { throw Problem(message: "it is another kind of file") }
            let format = try fields.number("format")
            guard format == Self.format else {
                throw Problem(code: "export-version", message: "it is of format \(format), this program reads 1")
            }
            self = .header(
                Header(
                    epoch: try fields.value("epoch") { UUID(uuidString: $0) },
                    player: try fields.value("player") { PlayerID($0) },
                    exported: try fields.value("exported") { Timestamp($0) }))
        case "device":
            self = .device(
                ImportedDevice(
                    device: try fields.value("device") { DeviceID($0) },
                    created: try fields.value("created") { Timestamp($0) }, name: try fields.text("name")))
        case "revision": self = .version(try Self.version(&fields, mark.map { line[$0.upperBound...] }))
        case "end":
            guard try fields.text("end") == "history" else { throw Problem(message: "it is another kind of file") }
            self = .end(
                End(
                    totals: ImportTotals(
                        versions: try fields.number("versions"), devices: try fields.number("devices"),
                        lastRevision: try fields.number("lastRevision"),
                        purgedBefore: try fields.number("purgedBefore")),
                    checksum: try fields.text("sha256")))
        default: throw Problem(message: "it is neither a device, nor a version, nor the end")
        }
        try fields.finish()
    }

    private static func version(
        _ fields: inout Fields, _ rest: ArraySlice<UInt8>?
    ) throws(Problem) -> VersionEntry {
        guard let rest, rest.last == UInt8(ascii: "}") else { throw Problem(message: "it has no state") }
        let text = Array(rest.dropLast())
        let isTombstone = try fields.flag("deleted")
        guard !isTombstone || text == Array("null".utf8) else {
            throw Problem(message: "it is deleted and has a state")
        }
        let game: GameKey
        do throws(WireError) {
            game = try GameKey(collection: try fields.plainText("collection"), id: try fields.plainText("id"))
        } catch {
            throw Problem(message: error.message)
        }
        let schema = try fields.number("schema")
        guard (0...Int64(Int32.max)).contains(schema) else { throw Problem(message: "its schema is out of range") }
        return VersionEntry(
            game: game,
            detail: VersionDetail(
                revision: try fields.number("revision"), outcome: try fields.value("outcome") { Outcome(rawValue: $0) },
                saved: try fields.value("saved") { Timestamp($0) }, stamp: try fields.value("stamp") { Timestamp($0) },
                received: try fields.value("received") { Timestamp($0) },
                device: try fields.value("device") { DeviceID($0) }, base: try fields.optionalNumber("base"),
                rival: try fields.optionalNumber("rival"), schema: Int32(schema), size: isTombstone ? 0 : text.count,
                isHead: false, isTombstone: isTombstone), state: isTombstone ? nil : text)
    }

    /// Where the checksum's own part of an end line begins.
    static func checksumStart(in line: ArraySlice<UInt8>) -> Int? {
        line.range(of: Array(checksumMark.description.utf8))?.lowerBound
    }
}

/// The members of a line, each to be asked for once.
private struct Fields {
    private var members: [String: RawJSON] = [:]
    private var isRepeated = false

    init(_ members: [RawJSON.Member]) {
        for member in members {
            let key = String(decoding: member.key, as: UTF8.self)
            if self.members.updateValue(member.value, forKey: key) != nil { isRepeated = true }
        }
    }

    mutating func text(_ key: String) throws(ExportLine.Problem) -> String {
        guard let text = members.removeValue(forKey: key)?.string else {
            throw ExportLine.Problem(message: "its \(key) is no text")
        }
        return text
    }

    /// The text, empty where there is none: what it is for refuses that.
    mutating func plainText(_ key: String) throws(WireError) -> String {
        members.removeValue(forKey: key)?.string ?? ""
    }

    mutating func value<Value>(
        _ key: String, _ read: (String) -> Value?
    ) throws(ExportLine.Problem) -> Value {
        guard let value = read(try text(key)) else { throw ExportLine.Problem(message: "its \(key) cannot be read") }
        return value
    }

    mutating func number(_ key: String) throws(ExportLine.Problem) -> Int64 {
        guard let number = try optionalNumber(key) else { throw ExportLine.Problem(message: "its \(key) is missing") }
        return number
    }

    mutating func optionalNumber(_ key: String) throws(ExportLine.Problem) -> Int64? {
        guard let value = members.removeValue(forKey: key) else {
            throw ExportLine.Problem(message: "its \(key) is missing")
        }
        if value.kind == .null { return nil }
        guard let text = value.number, let number = Int64(text), number >= 0 else {
            throw ExportLine.Problem(message: "its \(key) is no whole number")
        }
        return number
    }

    mutating func flag(_ key: String) throws(ExportLine.Problem) -> Bool {
        guard let flag = members.removeValue(forKey: key)?.bool else {
            throw ExportLine.Problem(message: "its \(key) is neither true nor false")
        }
        return flag
    }

    func finish() throws(ExportLine.Problem) {
        if isRepeated { throw ExportLine.Problem(message: "a key stands there twice") }
        if let key = members.keys.sorted().first {
            throw ExportLine.Problem(message: "it has a key that is not known: \(key)")
        }
    }
}

extension ArraySlice<UInt8> {
    /// The first place where bytes stand.
    fileprivate func range(of mark: [UInt8]) -> Range<Int>? {
        guard let first = mark.first, count >= mark.count else { return nil }
        var start = startIndex
        while let found = self[start...(endIndex - mark.count)].firstIndex(of: first) {
            if self[found..<(found + mark.count)].elementsEqual(mark) { return found..<(found + mark.count) }
            start = found + 1
            if start > endIndex - mark.count { return nil }
        }
        return nil
    }
}
