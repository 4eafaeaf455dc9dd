import Handle

/// Reads keystrokes from a terminal's bytes, one byte at a time, wherever they were cut apart.
///
/// Understood are UTF-8 text in syllables or letters of any Unicode normal form, the Latin two-set keys, and the control
/// characters of ``Keystroke``. Everything else is taken in and means nothing: bytes that are no UTF-8, and the escape
/// sequences of arrows, function keys, mouse and replies (ECMA-48; xterm's "Control Sequences"). In a bracketed paste only
/// letters count, so that a text of many lines guesses nothing.
package struct KeyReader: Hashable, Sendable {
    private enum State: Hashable, Sendable {
        /// Nothing is begun.
        case ground
        /// Inside a character: what it is so far, bytes still to come, the least value that is not overlong.
        case character(UInt32, left: Int, least: UInt32)
        /// Behind ESC.
        case escape
        /// Behind ESC O or ESC [ [: one more byte.
        case oneMore
        /// Behind ESC [, with what came so far of it.
        case sequence([UInt8])
        /// Behind ESC [ M: three bytes of an old mouse report.
        case mouse(left: Int)
        /// In a string that only its terminator ends; whether an ESC came in it.
        case string(escaped: Bool)
    }

    private var state = State.ground
    private var isPasting = false

    /// Begins with nothing.
    package init() {}

    /// Whether something was begun that the next bytes should end: if none come for a moment, call ``pause()``.
    package var isInside: Bool { state != .ground || isPasting }

    /// No byte came for a moment, so what was begun is not going to be ended: a lone ESC, a paste whose end was lost.
    package mutating func pause() {
        state = .ground
        isPasting = false
    }

    /// Reads a byte.
    /// - Returns: the keystroke that it ends, if it ends one.
    package mutating func read(_ byte: UInt8) -> Keystroke? {
        if byte < 0x20 || byte == 0x7F { return readControl(byte) }
        switch state {
        case .ground: return readText(byte)
        case .character(let value, let left, let least):
            return readContinuation(byte, value, left: left, least: least)
        case .escape:
            switch byte {
            case UInt8(ascii: "["): state = .sequence([])
            case UInt8(ascii: "O"): state = .oneMore
            case UInt8(ascii: "]"), UInt8(ascii: "P"), UInt8(ascii: "^"), UInt8(ascii: "_"), UInt8(ascii: "X"):
                state = .string(escaped: false)
            case 0x80...:
                state = .ground
                return readText(byte)
            // Alt and a key.
            default: state = .ground
            }
        case .oneMore: state = .ground
        case .sequence(let bytes): readSequence(byte, bytes)
        case .mouse(let left): state = left > 1 ? .mouse(left: left - 1) : .ground
        case .string(let escaped): state = escaped && byte == UInt8(ascii: "\\") ? .ground : .string(escaped: false)
        }
        return nil
    }

    private mutating func readControl(_ byte: UInt8) -> Keystroke? {
        if case .string = state {
            // BEL ends a string, ESC may begin its end; of the others only the way out counts inside it.
            switch byte {
            case 0x07: state = .ground
            case 0x1B: state = .string(escaped: true)
            case 0x03: break
            default: return nil
            }
            guard byte == 0x03 else { return nil }
        }
        state = byte == 0x1B ? .escape : .ground
        switch byte {
        case 0x03, 0x04: return .leave
        case 0x0C: return .redraw
        case 0x1A: return .suspend
        case 0x08, 0x7F: return isPasting ? nil : .backspace
        case 0x0A, 0x0D: return isPasting ? nil : .enter
        default: return nil
        }
    }

    private mutating func readText(_ byte: UInt8) -> Keystroke? {
        switch byte {
        case ..<0x80: return keystroke(Unicode.Scalar(byte))
        case 0xC2...0xDF: state = .character(UInt32(byte & 0x1F), left: 1, least: 0x80)
        case 0xE0...0xEF: state = .character(UInt32(byte & 0x0F), left: 2, least: 0x800)
        case 0xF0...0xF4: state = .character(UInt32(byte & 0x07), left: 3, least: 0x10000)
        // A continuation without a beginning, or no byte of UTF-8.
        default: break
        }
        return nil
    }

    private mutating func readContinuation(
        _ byte: UInt8, _ value: UInt32, left: Int, least: UInt32
    ) -> Keystroke? {
        guard byte & 0xC0 == 0x80 else {
            // The character was cut off; this byte begins something else.
            state = .ground
            return readText(byte)
        }
        let value = value << 6 | UInt32(byte & 0x3F)
        guard left == 1 else {
            state = .character(value, left: left - 1, least: least)
            return nil
        }
        state = .ground
        guard value >= least, let scalar = Unicode.Scalar(value) else { return nil }
        return keystroke(scalar)
    }

    private mutating func readSequence(_ byte: UInt8, _ bytes: [UInt8]) {
        switch byte {
        case 0x20...0x3F:
            // No sequence that means something here is so long; what follows still belongs to it.
            state = .sequence(bytes.count < 16 ? bytes + [byte] : bytes)
        case UInt8(ascii: "["): state = bytes.isEmpty ? .oneMore : .ground
        case UInt8(ascii: "M") where bytes.isEmpty: state = .mouse(left: 3)
        case UInt8(ascii: "~"):
            if bytes == Array("200".utf8) { isPasting = true }
            if bytes == Array("201".utf8) { isPasting = false }
            state = .ground
        default: state = .ground
        }
    }

    private func keystroke(_ scalar: Unicode.Scalar) -> Keystroke? {
        if let letters = TwoSet.letters(on: scalar) ?? (try? Hangul.letters(of: String(scalar))), !letters.isEmpty {
            return .letters(letters)
        }
        guard !isPasting, ("0"..."9").contains(scalar) else { return nil }
        return .digit(Int(scalar.value) - 0x30)
    }
}
