extension String {
    /// The text with everything escaped that would steer a terminal or turn text around: control characters, line
    /// separators, and invisible format characters but for the joiners that emoji and some scripts need.
    package var terminalSafe: String {
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isTerminalSafe {
                text.unicodeScalars.append(scalar)
            } else {
                text += "\\u{" + String(scalar.value, radix: 16, uppercase: true) + "}"
            }
        }
        return text
    }

    /// A JSON text that says the same, with what would steer a terminal, or turn text around, escaped.
    ///
    /// Such characters stand in a JSON text only inside strings, where an escape says the same; line feeds and tabs stand
    /// between its parts and stay.
    package var terminalSafeJSON: String {
        var text = ""
        for scalar in unicodeScalars {
            if scalar.isTerminalSafe || scalar == "\n" || scalar == "\t" {
                text.unicodeScalars.append(scalar)
                continue
            }
            if scalar == "\r" {
                // No string may hold it as it is: it stands between the parts, where a blank says the same.
                text += " "
                continue
            }
            for unit in String(scalar).utf16 {
                let digits = String(unit, radix: 16)
                text += "\\u" + String(repeating: "0", count: 4 - digits.count) + digits
            }
        }
        return text
    }

    /// Of a printed time the day and the time to the second: `2026-11-29 12:00:00`.
    package var shortTime: String { "\(prefix(10)) \(dropFirst(11).prefix(8))" }

    /// How many columns of a terminal the text takes: two for East Asian wide characters and emoji, none for marks.
    package var terminalWidth: Int {
        reduce(0) { $0 + $1.terminalWidth }
    }

    /// The text, if it is wider than that with its end cut off and an ellipsis in its place.
    package func cut(to width: Int) -> String {
        guard terminalWidth > width else { return self }
        guard width > 1 else { return width == 1 ? "…" : "" }
        var kept = ""
        var room = width - 1
        for character in self {
            let needed = String(character).terminalWidth
            guard needed <= room else { break }
            kept.append(character)
            room -= needed
        }
        return kept + "…"
    }

    /// The text, filled up with spaces to a width.
    package func padded(to width: Int, alignedRight: Bool = false) -> String {
        let space = String(repeating: " ", count: max(0, width - terminalWidth))
        return alignedRight ? space + self : self + space
    }
}

extension FixedWidthInteger {
    /// Bytes for people: `512 B`, `1.1 kB`, `2.5 MB`, `3.0 GB`, `4.2 TB`
    package var sizeText: String {
        switch Int64(clamping: self) {
        case ..<1_000: "\(self) B"
        case ..<1_000_000: "\(tenths(of: 1_000)) kB"
        case ..<1_000_000_000: "\(tenths(of: 1_000_000)) MB"
        case ..<1_000_000_000_000: "\(tenths(of: 1_000_000_000)) GB"
        default: "\(tenths(of: 1_000_000_000_000)) TB"
        }
    }

    private func tenths(of unit: Int64) -> String {
        let tenths = (Int64(clamping: self) / (unit / 100) + 5) / 10
        return "\(tenths / 10).\(tenths % 10)"
    }
}

extension Unicode.Scalar {
    /// Whether it may be shown as it is.
    package var isTerminalSafe: Bool {
        switch properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator, .surrogate, .privateUse, .unassigned: false
        case .format: value == 0x200C || value == 0x200D
        default: true
        }
    }

    /// Unicode's East Asian Width W or F (UAX #11), in ranges.
    fileprivate var isWide: Bool {
        switch value {
        case 0x1100...0x115F, 0x231A...0x231B, 0x2329...0x232A, 0x2E80...0x303E, 0x3041...0x33FF, 0x3400...0x4DBF,
            0x4E00...0x9FFF, 0xA000...0xA4CF, 0xA960...0xA97F, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE10...0xFE19,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x16FE0...0x18CFF, 0x1AFF0...0x1B2FF,
            0x1F300...0x1F64F, 0x1F680...0x1F6FF, 0x1F900...0x1F9FF, 0x1FA70...0x1FAFF, 0x20000...0x3FFFD:
            true
        default: properties.isEmojiPresentation
        }
    }
}

extension Character {
    /// How many columns of a terminal the character takes.
    package var terminalWidth: Int {
        guard let first = unicodeScalars.first else { return 0 }
        if first.isWide || unicodeScalars.contains("\u{FE0F}") { return 2 }
        switch first.properties.generalCategory {
        case .nonspacingMark, .enclosingMark, .format, .control: return 0
        default: return 1
        }
    }
}
