import TerminalText
import Wire

/// JSON to print: objects keep the order in which their keys were given.
enum JSONText {
    case null
    case boolean(Bool)
    case integer(Int64)
    case decimal(Double)
    case string(String)
    case array([JSONText])
    case object([(key: String, value: JSONText)])
    /// JSON text that goes out byte for byte: a state.
    case verbatim([UInt8])

    /// A string, or null.
    static func text(_ text: String?) -> JSONText { text.map { .string($0) } ?? .null }

    /// An integer, or null.
    static func number(_ number: Int64?) -> JSONText { number.map { .integer($0) } ?? .null }

    /// A time, or null.
    static func time(_ time: Timestamp?) -> JSONText { .text(time?.description) }

    /// A state, or null for a tombstone.
    static func state(_ state: [UInt8]?) -> JSONText { state.map { .verbatim($0) } ?? .null }

    /// The same JSON text for the eyes of people. What is no UTF-8, and so no JSON, becomes replacement characters.
    static func terminalSafe(_ text: some Collection<UInt8>) -> [UInt8] {
        Array(String(decoding: text, as: UTF8.self).terminalSafeJSON.utf8)
    }

    /// One line, its line feed included.
    var line: [UInt8] {
        var bytes: [UInt8] = []
        print(into: &bytes)
        bytes.append(UInt8(ascii: "\n"))
        return bytes
    }

    private func print(into bytes: inout [UInt8]) {
        switch self {
        case .null: bytes += "null".utf8
        case .boolean(let value): bytes += (value ? "true" : "false").utf8
        case .integer(let value): bytes += String(value).utf8
        case .decimal(let value): bytes += (value.isFinite ? String(value) : "null").utf8
        case .string(let text): bytes.append(quoted: text)
        case .verbatim(let text): bytes += text
        case .array(let values):
            bytes.append(UInt8(ascii: "["))
            for (index, value) in values.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                value.print(into: &bytes)
            }
            bytes.append(UInt8(ascii: "]"))
        case .object(let members):
            bytes.append(UInt8(ascii: "{"))
            for (index, member) in members.enumerated() {
                if index > 0 { bytes.append(UInt8(ascii: ",")) }
                bytes.append(quoted: member.key)
                bytes.append(UInt8(ascii: ":"))
                member.value.print(into: &bytes)
            }
            bytes.append(UInt8(ascii: "}"))
        }
    }
}
