import Foundation
import Handle
import TestSupport
import Testing

@testable import Play

private func read(_ bytes: some Sequence<UInt8>, _ reader: inout KeyReader) -> [Keystroke] {
    bytes.compactMap { reader.read($0) }
}

private func read(_ text: String) -> [Keystroke] {
    var reader = KeyReader()
    return read(text.utf8, &reader)
}

@Suite("Reading keys")
struct KeyReaderTests {
    @Test("control characters are what they are for; the others are nothing")
    func controls() {
        let known: [UInt8: Keystroke] = [
            0x03: .leave, 0x04: .leave, 0x08: .backspace, 0x0A: .enter, 0x0C: .redraw, 0x0D: .enter, 0x1A: .suspend,
            0x7F: .backspace,
        ]
        for byte in Array(UInt8(0)..<0x20) + [0x7F] {
            var reader = KeyReader()
            #expect(reader.read(byte) == known[byte], "\(byte)")
        }
        #expect(read("12") == [.digit(1), .digit(2)])
        #expect(read(" !-é字😀\u{AD}") == [])
    }

    @Test(
        "sequences mean nothing, and what follows them is read",
        arguments: [
            "\u{1B}[A", "\u{1B}[1;5D", "\u{1B}OP", "\u{1B}[[A", "\u{1B}[3~", "\u{1B}[M q ", "\u{1B}[<0;12;5M",
            "\u{1B}[<0;12;5m",
            "\u{1B}]0;title\u{7}", "\u{1B}]11;rgb:0/0/0\u{1B}\\", "\u{1B}P1$r0m\u{1B}\\", "\u{1B}[?62;1c", "\u{1B}q",
            "\u{1B}\u{1B}[B",
            "\u{1B}[\(String(repeating: "1;", count: 500))R", "\u{1B}_G\u{1B}\\", "\u{1B}[12;40R", "\u{1B}[I\u{1B}[O",
        ])
    func sequences(text: String) {
        var reader = KeyReader()
        #expect(read((text + "사").utf8, &reader) == [.letters([.siot, .a])])
        #expect(!reader.isInside)
    }

    @Test("a lone ESC, and a sequence or a character that is broken off, end with a pause")
    func pauses() {
        for text in ["\u{1B}", "\u{1B}[", "\u{1B}[1;", "\u{1B}O", "\u{1B}]0;abc", "\u{1B}[M!", "\u{1B}[200~"] {
            var reader = KeyReader()
            _ = read(text.utf8, &reader)
            #expect(reader.isInside, "\(text.debugDescription)")
            reader.pause()
            #expect(read("\r1q".utf8, &reader) == [.enter, .digit(1), .letters([.bieup])], "\(text.debugDescription)")
        }
    }

    @Test("Ctrl-C is heard inside anything")
    func wayOut() {
        for text in [
            "\u{1B}", "\u{1B}[", "\u{1B}[1;", "\u{1B}O", "\u{1B}]0;abc", "\u{1B}[M!", "\u{1B}[200~abc", "\u{1B}P\u{1B}",
        ] {
            #expect(read(text + "\u{3}").last == .leave, "\(text.debugDescription)")
        }
    }

    @Test("a paste gives its letters and nothing else")
    func pastes() {
        let pasted = "\u{1B}[200~사\r\n\u{7F}1ㄹ\t\u{1B}[201~\r"
        #expect(read(pasted) == [.letters([.siot, .a]), .letters([.rieul]), .enter])
    }

    @Test("a character that is cut off, overlong, a surrogate, or no UTF-8 at all is nothing, and the next one is read")
    func brokenText() {
        let broken: [[UInt8]] = [
            [0xEC], [0xEC, 0x82], [0x82], [0xC0, 0x80], [0xC1, 0xBF], [0xE0, 0x80, 0x80], [0xED, 0xA0, 0x80],
            [0xF5, 0x80],
            [0xF4, 0x90, 0x80, 0x80], [0xFF], [0xFE], [0xF0, 0x80, 0x80, 0x80], [0xEC, 0x82, 0xEC],
        ]
        for bytes in broken {
            var reader = KeyReader()
            #expect(
                read(bytes + Array("살q".utf8), &reader) == [.letters([.siot, .a, .rieul]), .letters([.bieup])],
                "\(bytes)")
        }
    }

    @Test("100,000 random byte strings trap nothing, and leave the reader able to read")
    func randomBytes() {
        var random = SeededRandom(for: "KeyReaderTests.randomBytes")
        var reader = KeyReader()
        var session = PlaySession(Game(day: 273), connection: Connection(.local))
        let seeds = ["\u{1B}[", "\u{1B}]", "\u{1B}[200~", "사", "\u{1B}[M", "\r"].map { Array($0.utf8) }
        for round in 0..<100_000 {
            var bytes = random.bytes(Int.random(in: 0...8, using: &random))
            if round % 3 == 0 { bytes = seeds[Int.random(in: seeds.indices, using: &random)] + bytes }
            for key in read(bytes, &reader) {
                for action in session.press(key) {
                    var game = session.game
                    if case .make(let move) = action { game.make(move) }
                    session.played(game)
                    if case .lookUp(let letters) = action { _ = session.answered(.noWord, for: letters) }
                }
            }
            if round % 1_000 == 0 { _ = session.canvas(hasColours: true) }
        }
        reader.pause()
        #expect(read("사".utf8, &reader) == [.letters([.siot, .a])])
    }
}
