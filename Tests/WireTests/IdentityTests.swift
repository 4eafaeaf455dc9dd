import Foundation
import Testing

@testable import Wire

@Suite("Identifiers, tokens, codes and keys")
struct IdentityTests {
    @Test("a UUID is printed in lower case, read in either, and refused when malformed")
    func uuids() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<2_000 {
            let uuid = random.uuid()
            let player = PlayerID(uuid)
            #expect(player.description == uuid.uuidString.lowercased())
            #expect(PlayerID(uuid.uuidString) == player)
            #expect(PlayerID(player.description) == player)
        }
        let good = "3f2504e0-4f89-41d3-9a0c-0305e82c3301"
        for bad in [
            "", String(good.dropLast()), good + "0", good.replacingOccurrences(of: "-", with: "_"), "{\(good)}",
            good.replacingOccurrences(of: "f", with: "g"), good.replacingOccurrences(of: "-", with: ""),
        ] {
            #expect(DeviceID(bad) == nil)
        }
    }

    @Test("devices are ordered by their bytes")
    func deviceOrder() {
        var random = SeededRandom.fresh()
        for _ in 0..<1_000 {
            let (left, right) = (DeviceID(random.uuid()), DeviceID(random.uuid()))
            #expect((left < right) == (left.description < right.description))
        }
    }

    @Test("a token is read back, and hides its secret from text and dumps")
    func tokens() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<1_000 {
            let token = try random.token()
            let text = token.text
            #expect(text.utf8.count == Token.textLength)
            #expect(Token(text) == token)
            let secret = try #require(text.split(separator: ".").last)
            var dumped = ""
            dump(token, to: &dumped)
            for shown in ["\(token)", String(reflecting: token), dumped, "\(Command.login(token))"] {
                #expect(!shown.contains(secret) && !shown.contains("\(token.secret)"))
                #expect(!shown.contains("[\(token.secret[0]), "))
            }
        }
        #expect(
            Token(player: PlayerID(UUID()), device: DeviceID(UUID()), secret: [UInt8](repeating: 0, count: 31)) == nil)
    }

    @Test("a token has one text: other trailing bits, lengths, alphabets and padding are refused")
    func tokenIsCanonical() throws {
        var random = SeededRandom(seed: 1)
        let text = try random.token().text
        let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
        // The last characters of the parts carry 4, 4 and 2 bits to spare: one letter in 16, 16 and 4 leaves them zero.
        for (position, spare) in [(21, 16), (44, 16), (88, 4)] {
            var readable = 0
            for letter in alphabet {
                var characters = Array(text)
                characters[position] = letter
                if let token = Token(String(characters)) {
                    readable += 1
                    #expect(token.text == String(characters))
                }
            }
            #expect(readable == alphabet.count / spare)
        }
        for bad in ["", text + "=", text + "A", String(text.dropLast()), text.replacingOccurrences(of: ".", with: "-")]
        {
            #expect(Token(bad) == nil)
        }
        var withPlus = Array(text)
        withPlus[50] = "+"
        #expect(Token(String(withPlus)) == nil)
    }

    @Test("a pairing code is read as people type it")
    func pairingCodes() throws {
        let code = try #require(PairingCode("7K3M-Q9TD"))
        #expect(code.text == "7K3M-Q9TD")
        #expect(code.locator == "7K3M")
        #expect(code.canonical == Array("7K3MQ9TD".utf8))
        for typed in ["7k3m-q9td", "7K3MQ9TD", "7k3mq9td", "7-K-3-M-Q-9-T-D", "7K3M--Q9TD"] {
            #expect(PairingCode(typed) == code)
        }
        #expect(PairingCode("oOiI-lL01")?.text == "0011-1101")
        for bad in [
            "", "7K3M", "7K3M-Q9T", "7K3M-Q9TDX", "7K3M-Q9TU", "7K3M Q9TD", "7K3M-Q9T한", "--------", "7K3M_Q9TD",
        ] {
            #expect(PairingCode(bad) == nil)
        }
        #expect(PairingCode(bytes: [0, 0, 0, 0, 0])?.text == "0000-0000")
        #expect(PairingCode(bytes: [255, 255, 255, 255, 255])?.text == "ZZZZ-ZZZZ")
        #expect(PairingCode(bytes: [1, 2, 3, 4]) == nil)
        var shown = "\(code) \(String(reflecting: code))"
        dump(code, to: &shown)
        #expect(!shown.contains("Q9TD") && shown.contains("7K3M"))
    }

    @Test("an invite is read as people type it, has 80 bits, and shows its secret only when asked to")
    func inviteCodes() throws {
        let code = try #require(InviteCode("7K3M-Q9TD-0V5R-ZX2C"))
        #expect(code.text == "7K3M-Q9TD-0V5R-ZX2C")
        #expect(code.locator == "7K3M")
        #expect(code.canonical == Array("7K3MQ9TD0V5RZX2C".utf8))
        for typed in ["7k3m-q9td-ov5r-zx2c", "7K3MQ9TD0V5RZX2C", "7-K-3-M-Q-9-T-D-O-V-5-R-Z-X-2-C"] {
            #expect(InviteCode(typed) == code)
        }
        for bad in [
            "", "7K3M-Q9TD", "7K3M-Q9TD-0V5R-ZX2", "7K3M-Q9TD-0V5R-ZX2CX", "7K3M-Q9TD-0V5R-ZX2U", "7K3M Q9TD 0V5R ZX2C",
            String(repeating: "-", count: 16),
        ] {
            #expect(InviteCode(bad) == nil)
        }
        #expect(InviteCode(bytes: [UInt8](repeating: 255, count: 10))?.text == "ZZZZ-ZZZZ-ZZZZ-ZZZZ")
        #expect(InviteCode(bytes: [UInt8](repeating: 0, count: 9)) == nil)
        var shown = "\(code) \(String(reflecting: code))"
        dump(code, to: &shown)
        #expect(!shown.contains("Q9TD") && shown.contains("7K3M"))
        var random = SeededRandom.fresh()
        for _ in 0..<2_000 {
            let code = try random.inviteCode()
            #expect(InviteCode(code.text) == code && InviteCode(code.text.lowercased()) == code)
        }
    }

    @Test("a random pairing code is read back")
    func randomPairingCodes() throws {
        var random = SeededRandom.fresh()
        for _ in 0..<2_000 {
            let code = try random.pairingCode()
            #expect(PairingCode(code.text) == code)
            #expect(PairingCode(code.text.lowercased()) == code)
        }
    }

    @Test(
        "a game's key is taken when it is as it must be",
        arguments: [
            ("handle.game", "today"), ("a", "1"), ("A-b_c.9", "{}"), ("x", "한글"), ("x", "é"), ("x", "🎮👩‍👩‍👧"),
            (String(repeating: "a", count: 64), String(repeating: "b", count: 128)), ("x", "a:b/c?d&e+f\\g'"),
        ])
    func goodKeys(collection: String, id: String) throws {
        let key = try GameKey(collection: collection, id: id)
        #expect(key.collection == collection)
        #expect(Array(key.id.utf8) == Array(id.utf8))
    }

    @Test(
        "a game's key is refused with its field when it is not",
        arguments: [
            ("", "x", "collection"), ("1a", "x", "collection"), (".a", "x", "collection"), ("a b", "x", "collection"),
            ("a/b", "x", "collection"), ("é", "x", "collection"),
            (String(repeating: "a", count: 65), "x", "collection"),
            ("a", "", "id"), ("a", String(repeating: "b", count: 129), "id"), ("a", "x y", "id"), ("a", "x\ty", "id"),
            ("a", "x\u{A0}y", "id"), ("a", "x\u{3000}y", "id"), ("a", "x\u{85}y", "id"), ("a", "x\u{2028}y", "id"),
            ("a", "x\u{9F}", "id"), ("a", "x\u{7F}", "id"), ("a", "x\u{0}", "id"), ("a", "a=b", "id"),
            ("a", "a\"b", "id"),
            ("a", "e\u{301}", "id"), ("a", "\u{1112}\u{1161}\u{11AB}", "id"), ("a", "\u{212B}", "id"),
            ("a", "q\u{307}\u{323}", "id"), ("a", String(repeating: "한", count: 43), "id"),
        ])
    func badKeys(collection: String, id: String, field: String) {
        let error = #expect(throws: WireError.self) { try GameKey(collection: collection, id: id) }
        #expect(error?.code == .invalidID)
        #expect(error?["field"] == field)
    }

    @Test("an id in another normal form is refused with a hint")
    func normalFormHint() {
        let error = #expect(throws: WireError.self) { try GameKey(collection: "a", id: "\u{1112}\u{1161}\u{11AB}") }
        #expect(error?.hint?.contains("NFC") == true)
    }
}
