import Testing

@testable import Wire

@Suite("The line check")
struct LineCheckTests {
    /// Bytes at the edges of what each place in a sequence may hold.
    private static let edges: [UInt8] = [
        0x20, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
        0xEF,
        0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xF8, 0xFC, 0xFE, 0xFF,
    ]

    private func passes(_ bytes: [UInt8]) -> Bool {
        do throws(LineCheck.Failure) {
            try LineCheck.check(bytes.span)
            return true
        } catch {
            return false
        }
    }

    @Test("every short sequence of edge bytes is taken exactly if Swift's decoder takes it")
    func agreesWithSwift() {
        for first in Self.edges {
            for second in Self.edges {
                for third in Self.edges {
                    let three = [first, second, third]
                    #expect(passes(three) == (String(validating: three, as: UTF8.self) != nil), "\(three)")
                }
            }
        }
        for lead in [0xED, 0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5] as [UInt8] {
            for second in Self.edges {
                for third in Self.edges {
                    for fourth in Self.edges {
                        let four = [lead, second, third, fourth]
                        let isValid = String(validating: four, as: UTF8.self) != nil
                        if passes(four) != isValid { Issue.record("\(four)") }
                    }
                }
            }
        }
    }

    @Test(
        "the first offence is named with its byte, wherever it stands",
        arguments: [
            ([0xC0, 0x80], .invalidUTF8(offset: 0)), ([0xE0, 0x9F, 0x80], .invalidUTF8(offset: 0)),
            ([0xED, 0xA0, 0x80], .invalidUTF8(offset: 0)), ([0xF4, 0x90, 0x80, 0x80], .invalidUTF8(offset: 0)),
            ([0xE2, 0x82], .invalidUTF8(offset: 0)), ([0x80], .invalidUTF8(offset: 0)),
            ([0xFF], .invalidUTF8(offset: 0)),
            ([0x00], .controlCharacter(offset: 0)), ([0x1F], .controlCharacter(offset: 0)),
            ([0x0D], .controlCharacter(offset: 0)), ([0x0A], .controlCharacter(offset: 0)),
            ([0x1B, 0xFF], .controlCharacter(offset: 0)), ([0xFF, 0x00], .invalidUTF8(offset: 0)),
        ] as [([UInt8], LineCheck.Failure)])
    func offences(bytes: [UInt8], expected: LineCheck.Failure) {
        for before in 0..<20 {
            let line = [UInt8](repeating: 0x61, count: before) + bytes + [UInt8](repeating: 0x62, count: 12)
            let failure = #expect(throws: LineCheck.Failure.self) { try LineCheck.check(line.span) }
            switch expected {
            case .invalidUTF8(let offset): #expect(failure == .invalidUTF8(offset: before + offset))
            case .controlCharacter(let offset): #expect(failure == .controlCharacter(offset: before + offset))
            }
        }
    }

    @Test("tabs, DEL and everything above pass")
    func passesText() {
        #expect(passes([]))
        #expect(passes([0x09, 0x7F]))
        for length in 0..<40 {
            #expect(passes(Array(String(repeating: "é", count: length).utf8)))
            #expect(passes(Array((String(repeating: "a", count: length) + "\t한글😀\u{10FFFF}").utf8)))
        }
    }
}
