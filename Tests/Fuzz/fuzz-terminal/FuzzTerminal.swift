import Foundation
import FuzzSupport
import TerminalText

/// Any text can be shown: nothing in it steers the terminal, it takes the room that it is given, and JSON stays what it was.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzTerminal(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(start, count)
    let width = Int(input.byte() % 64)
    let text = String(decoding: input.rest, as: UTF8.self)
    let safe = text.terminalSafe
    hold(safe.unicodeScalars.allSatisfy(isHarmless), "nothing steers the terminal: \(Array(safe.utf8))")
    hold(safe.terminalSafe == safe, "what is safe stays as it is")
    let cut = safe.cut(to: width)
    hold(cut.terminalWidth <= width, "\(Array(cut.utf8)) takes \(width) columns at most")
    hold(cut.unicodeScalars.allSatisfy(isHarmless), "a part of it steers nothing either")
    hold(cut.padded(to: width).terminalWidth == width, "it is filled up to its width: \(Array(cut.utf8))")
    hold(cut.padded(to: width, alignedRight: true).terminalWidth == width, "from the left as well: \(Array(cut.utf8))")
    checkJSON(text)
    return 0
}

/// Whether a terminal shows it and does nothing else.
private func isHarmless(_ scalar: Unicode.Scalar) -> Bool {
    // C0, DEL, C1, the separators of lines, the marks and isolates that turn text around, the tags, the byte order mark.
    switch scalar.value {
    case 0..<0x20, 0x7F..<0xA0, 0x200B, 0x200E, 0x200F, 0x2028...0x202E, 0x2060...0x206F, 0xFEFF, 0xE0000...0xE0FFF,
        0xE000...0xF8FF:
        // Variation selectors beyond the first sixteen are marks, and steer nothing.
        (0xE0100...0xE01EF).contains(scalar.value)
    default: true
    }
}

private func checkJSON(_ text: String) {
    let safe = text.terminalSafeJSON
    hold(
        safe.unicodeScalars.allSatisfy { isHarmless($0) || $0 == "\n" || $0 == "\t" },
        "no JSON steers the terminal: \(Array(safe.utf8))")
    // A NUL makes Foundation take the bytes for UTF-16.
    guard text.utf8.count < 256, !text.utf8.contains(0), let value = try? read(text) else { return }
    hold((try? read(safe)) == value, "JSON says the same: \(Array(text.utf8))")
}

private func read(_ text: String) throws -> NSObject? {
    try JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed) as? NSObject
}
