import Foundation

@testable import Wire

/// Random values of every kind that stands on the wire.
extension SeededRandom {
    mutating func uuid() -> UUID {
        var raw: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        let bytes = bytes(16)
        withUnsafeMutableBytes(of: &raw) { $0.copyBytes(from: bytes) }
        return UUID(uuid: raw)
    }

    mutating func timestamp() -> Timestamp {
        Timestamp(clamping: Int64.random(in: 0...Timestamp.latest.microseconds, using: &self))
    }

    mutating func revision(from least: Int64 = 1) -> Revision {
        chance(0.1) ? Int64.max : Int64.random(in: least...(chance(0.5) ? 100 : Int64.max), using: &self)
    }

    mutating func number() -> Int {
        Int.random(in: 1...Int(Int32.max), using: &self)
    }

    mutating func schema() -> Int32 {
        chance(0.3) ? 0 : Int32.random(in: 0...Int32.max, using: &self)
    }

    mutating func gameKey() throws -> GameKey {
        let first = Array("abzAZ")
        let later = Array("abzAZ09._-")
        let idCharacters = Array("abzAZ09._-{}[]:,/\\'`~!@#$%^&*()한글éß😀漢")
        var collection = String(first.randomElement(using: &self) ?? "a")
        for _ in 0..<Int.random(in: 0..<64, using: &self) {
            collection.append(later.randomElement(using: &self) ?? "a")
        }
        var id = String(first.randomElement(using: &self) ?? "a")
        for _ in 0..<Int.random(in: 0..<30, using: &self) { id.append(idCharacters.randomElement(using: &self) ?? "a") }
        return try GameKey(collection: collection, id: id)
    }

    /// Text with everything that quoting must survive.
    mutating func text(allowingControls: Bool = true) -> String {
        let plain = Array("abc XYZ 019 =\"\\{}[]/'한글é😀\u{200D}")
        let controls: [Character] = ["\n", "\r", "\t", "\u{1}", "\u{7F}", "\u{85}", "\u{9F}", "\u{2028}"]
        let all = allowingControls ? plain + controls : plain
        return String((0..<Int.random(in: 1...16, using: &self)).map { _ in all.randomElement(using: &self) ?? "a" })
    }

    mutating func name() -> String { text(allowingControls: false) }

    mutating func token() throws -> Token {
        let token = Token(player: PlayerID(uuid()), device: DeviceID(uuid()), secret: bytes(32))
        guard let token else { throw MalformedLine("no token") }
        return token
    }

    mutating func pairingCode() throws -> PairingCode {
        guard let code = PairingCode(bytes: bytes(5)) else { throw MalformedLine("no code") }
        return code
    }

    mutating func inviteCode() throws -> InviteCode {
        guard let code = InviteCode(bytes: bytes(InviteCode.byteCount)) else { throw MalformedLine("no invite") }
        return code
    }

    /// A JSON text, now and then with blanks between its parts and behind it.
    mutating func json(depth: Int = 4) -> String {
        let blank = chance(0.1) ? " " : ""
        switch Int.random(in: 0..<(depth > 0 ? 9 : 6), using: &self) {
        case 0: return "null"
        case 1: return chance(0.5) ? "true" : "false"
        case 2: return String(Int64.random(in: Int64.min...Int64.max, using: &self))
        case 3:
            let exponent = Int.random(in: -20...20, using: &self)
            return "-0.\(UInt16.random(in: 0...UInt16.max, using: &self))e\(exponent)"
        case 4: return "1E+\(Int.random(in: 0...300, using: &self))"
        case 5: return "\"\(jsonCharacters())\""
        case 6, 7:
            let members = (0..<Int.random(in: 0...4, using: &self)).map { _ in
                "\"\(jsonCharacters())\"\(blank):\(blank)\(json(depth: depth - 1))"
            }
            return "{\(blank)\(members.joined(separator: ","))\(blank)}"
        default:
            let members = (0..<Int.random(in: 0...4, using: &self)).map { _ in json(depth: depth - 1) }
            return "[\(blank)\(members.joined(separator: "\(blank),"))]"
        }
    }

    private mutating func jsonCharacters() -> String {
        let parts = [
            "a", "key", "한글", "é", "😀", "\\n", "\\\"", "\\\\", "\\/", "\\u0041", "\\ud83d\\ude00", "\\u00e9", "\u{7F}",
        ]
        return (0..<Int.random(in: 0...5, using: &self)).map { _ in parts.randomElement(using: &self) ?? "" }.joined()
    }

    mutating func command() throws -> Command {
        switch Int.random(in: 0..<21, using: &self) {
        case 0: return .hello(client: maybe { $0.name() })
        case 1: return .register(device: maybe { $0.name() }, invite: try chance(0.5) ? inviteCode() : nil)
        case 2: return .login(try token())
        case 3: return .pair
        case 4: return .link(code: try pairingCode(), device: maybe { $0.name() })
        case 5, 6, 7:
            return .push(
                Push(
                    game: try gameKey(), saved: maybe { $0.timestamp() }, base: maybe { $0.revision(from: 0) },
                    schema: schema(), state: chance(0.2) ? nil : Array(json().utf8)))
        case 8: return .pull(since: revision(from: 0), limit: maybe { $0.number() })
        case 9: return .watch(since: revision(from: 0))
        case 10: return .unwatch
        case 11: return .get(try gameKey(), revision: maybe { $0.revision() })
        case 12:
            return .history(try gameKey(), before: maybe { $0.revision() }, limit: maybe { $0.number() })
        case 13: return chance(0.5) ? .time : .ping
        case 14: return .help(topic: maybe { _ in "push" })
        case 15:
            let place: VersionsQuery.Place =
                [.since(revision(from: 0)), .before(revision()), .revision(revision())].randomElement(using: &self)
                ?? .since(0)
            return .versions(
                VersionsQuery(
                    place, limit: maybe { $0.number() }, onlyConflicts: chance(0.5), withStates: chance(0.5)))
        case 16: return .devices(after: maybe { DeviceID($0.uuid()) }, limit: maybe { $0.number() })
        case 17:
            switch Int.random(in: 0..<3, using: &self) {
            case 0: return .rename(maybe { DeviceID($0.uuid()) }, name: name())
            case 1: return .revoke(DeviceID(uuid()))
            default: return .rotate
            }
        case 18, 19: return .importing(try importPart())
        default: return .quit
        }
    }

    mutating func importPart() throws -> ImportPart {
        switch Int.random(in: 0..<6, using: &self) {
        case 0: return .begin
        case 1: return .cancel
        case 2: return .device(ImportedDevice(device: DeviceID(uuid()), created: timestamp(), name: name()))
        case 3:
            return .end(
                ImportTotals(
                    versions: revision(from: 0), devices: revision(from: 0),
                    lastRevision: min(revision(from: 0), Int64.max - 1), purgedBefore: revision(from: 0),
                    id: maybe { $0.uuid() }))
        default:
            let state = chance(0.2) ? nil : Array(json().utf8)
            var detail = versionDetail()
            if detail.outcome == .repeated { detail.outcome = .won }
            (detail.size, detail.isHead, detail.isTombstone) = (state?.count ?? 0, false, state == nil)
            return .version(VersionEntry(game: try gameKey(), detail: detail, state: state))
        }
    }

    mutating func outcome() -> Outcome { Outcome.allCases.randomElement(using: &self) ?? .created }

    mutating func wireError() -> WireError {
        let fields = (0..<Int.random(in: 0...2, using: &self)).map { index in
            WireError.Field("field-\(index)", text())
        }
        return WireError(
            WireError.Code.all.randomElement(using: &self) ?? .busy, text(), fields: fields,
            retryAfter: maybe { .milliseconds(Int64.random(in: 0...90_000, using: &$0)) }, hint: maybe { $0.text() })
    }

    mutating func greeting() -> Greeting {
        Greeting(
            protocolVersion: number(), server: text(), epoch: uuid(), maxLineBytes: number(), maxStateBytes: number(),
            time: timestamp())
    }

    mutating func receipt() -> PushReceipt {
        let head = PushReceipt.Head(
            revision: revision(), saved: timestamp(), stamp: timestamp(), device: DeviceID(uuid()), schema: schema(),
            state: maybe { Array($0.json().utf8) })
        return PushReceipt(
            outcome: outcome(), first: maybe { $0.outcome() }, revision: revision(), stamp: timestamp(),
            rival: maybe { $0.revision() }, head: maybe { _ in head })
    }

    mutating func gameHeader() -> GameHeader {
        GameHeader(
            revision: revision(), saved: timestamp(), stamp: timestamp(), device: DeviceID(uuid()), schema: schema(),
            outcome: maybe { $0.outcome() }, base: maybe { $0.revision(from: 0) }, rival: maybe { $0.revision() })
    }

    mutating func versionDetail() -> VersionDetail {
        VersionDetail(
            revision: revision(), outcome: outcome(), saved: timestamp(), stamp: timestamp(), received: timestamp(),
            device: DeviceID(uuid()), base: maybe { $0.revision(from: 0) }, rival: maybe { $0.revision() },
            schema: schema(), size: number(), isHead: chance(0.5), isTombstone: chance(0.5))
    }

    mutating func reply() throws -> Reply {
        switch Int.random(in: 0..<19, using: &self) {
        case 0: return .greeting(greeting())
        case 1: return .hello(greeting())
        case 2:
            let token = chance(0.5) ? try token() : nil
            return .signIn(
                SignIn(player: PlayerID(uuid()), device: DeviceID(uuid()), token: token, revision: revision(from: 0)))
        case 3: return .pairing(PairingOffer(code: try pairingCode(), expires: timestamp()))
        case 4: return .receipt(receipt())
        case 5: return .watching(revision: revision(from: 0))
        case 6: return .time(timestamp())
        case 7: return .done
        case 8:
            return .game(
                GameVersion(game: try gameKey(), header: gameHeader(), state: maybe { Array($0.json().utf8) }))
        case 9:
            return .version(
                VersionEntry(game: try gameKey(), detail: versionDetail(), state: maybe { Array($0.json().utf8) }))
        case 10: return .help(name())
        case 11:
            switch Int.random(in: 0..<5, using: &self) {
            case 0: return .end(PageEnd())
            case 1: return .end(PageEnd(cursor: revision(from: 0), more: chance(0.5)))
            case 2: return .end(PageEnd(after: maybe { DeviceID($0.uuid()) }))
            case 3:
                var end = PageEnd(cursor: revision(from: 0), more: chance(0.5))
                (end.lastRevision, end.purgedBefore) = (revision(from: 0), maybe { $0.revision() })
                return .end(end)
            default: return .end(PageEnd(before: maybe { $0.revision() }))
            }
        case 12: return .error(wireError())
        case 13: return .changed(revision: revision())
        case 14: return .importBegun(uuid())
        case 15: return .imported(revision: revision(from: 0))
        case 16:
            return .device(
                DeviceEntry(
                    device: DeviceID(uuid()), name: text(), created: timestamp(), seen: maybe { $0.timestamp() },
                    clockOffset: maybe { Int64.random(in: -Int64.max...Int64.max, using: &$0) },
                    revoked: maybe { $0.timestamp() }, isThis: chance(0.5)))
        case 17: return .rotated(TokenOffer(token: try token()))
        default: return .bye(wireError())
        }
    }
}
