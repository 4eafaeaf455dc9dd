import Testing

@testable import Wire

@Suite("Any bytes at all")
struct FuzzTests {
    @Test("150,000 random and damaged lines each give a command, nothing, or a coded error")
    func commands() throws {
        var random = SeededRandom.fresh()
        let parser = CommandParser(limits: Limits(maxLineBytes: 2_000, maxStateBytes: 500))
        let known = Set(WireError.Code.all)
        let seeds = try random.lines(400) { try $0.command().print(into: &$1) }
        var counts = (commands: 0, blanks: 0, errors: 0)
        var codes: Set<WireError.Code> = []
        for _ in 0..<150_000 {
            let line = random.damagedLine(seeds)
            do throws(WireError) {
                if try parser.parse(line.span) == nil { counts.blanks += 1 } else { counts.commands += 1 }
            } catch {
                counts.errors += 1
                codes.insert(error.code)
            }
        }
        #expect(counts.commands > 1_000 && counts.blanks > 0 && counts.errors > 1_000)
        #expect(codes.isSubset(of: known))
        // The damage reaches far into the parser.
        let reached: Set<WireError.Code> = [
            .invalidUTF8, .invalidCharacter, .unknownCommand, .missingArgument, .invalidArgument, .unexpectedArgument,
            .invalidID, .missingState, .invalidJSON,
        ]
        #expect(reached.isSubset(of: codes), "missed \(reached.subtracting(codes))")
    }

    @Test("50,000 random and damaged lines of a server each give a line, nothing, or a malformed line")
    func replies() throws {
        var random = SeededRandom.fresh()
        let seeds = try random.lines(400) { try $0.reply().print(into: &$1) }
        var counts = (lines: 0, malformed: 0)
        for _ in 0..<50_000 {
            let line = random.damagedLine(seeds)
            do throws(MalformedLine) {
                if try ServerLine.parse(line.span) != nil { counts.lines += 1 }
            } catch {
                counts.malformed += 1
            }
        }
        #expect(counts.lines > 1_000 && counts.malformed > 1_000)
    }

    @Test("before a sign-in no line, however it is spelled, asks for more than a sign-in")
    func unsigned() throws {
        var random = SeededRandom.fresh()
        let seeds = try random.lines(200) { try $0.command().print(into: &$1) }
        let before = ["", " ", "\t", "  ", "/", "//", "\u{FEFF}", "\r", "0 "].map { Array($0.utf8) }
        let behind = ["", " ", "\t", "\r", "/", " \r", "\r\r"].map { Array($0.utf8) }
        var session = Session(server: ServerDescription(version: "test", epoch: random.uuid()))
        var effects = Session.Effects()
        var signIns = 0
        for _ in 0..<20_000 {
            var line = seeds.randomElement(using: &random) ?? []
            // Some letters of the verb the other way, a blank of another kind or one more behind it, and something around it all.
            let end = line.firstIndex(of: 0x20) ?? line.endIndex
            for place in 0..<end where random.chance(0.3) { line[place] ^= 0x20 }
            if random.chance(0.3) { line.insert(random.chance(0.5) ? 0x20 : 0x09, at: end) }
            if random.chance(0.3) { line.replaceSubrange(0..<end, with: line[..<end] + line[..<end]) }
            line = (before.randomElement(using: &random) ?? []) + line + (behind.randomElement(using: &random) ?? [])
            session.lineReceived(line.span, at: .earliest, into: &effects)
            for action in effects.actions {
                switch action {
                case .signIn(_, let request), .register(_, _, let request), .redeem(_, _, let request):
                    signIns += 1
                    session.requestFailed(request, .loginFailed, into: &effects)
                case .pauseReading, .resumeReading: break
                case .close: session = Session(server: session.server)
                default: Issue.record("\(action) after \(String(decoding: line, as: UTF8.self).debugDescription)")
                }
            }
            effects.removeAll()
            guard session.state == .awaitingLogin else {
                Issue.record("\(session) after \(String(decoding: line, as: UTF8.self).debugDescription)")
                return
            }
        }
        #expect(signIns > 100)
    }

    @Test("a session takes 20,000 random and damaged lines and stays in step")
    func session() throws {
        var random = SeededRandom.fresh()
        let seeds = try random.lines(200) { try $0.command().print(into: &$1) }
        var session = Session(server: ServerDescription(version: "test", epoch: random.uuid()))
        var effects = Session.Effects()
        var lines = 0
        for _ in 0..<20_000 {
            let line = random.damagedLine(seeds)
            session.lineReceived(line.span, at: random.timestamp(), into: &effects)
            for action in effects.actions {
                switch action {
                case .signIn(_, let request), .register(_, _, let request), .redeem(_, _, let request):
                    session.requestFailed(request, .loginFailed, into: &effects)
                case .close: session = Session(server: session.server)
                default: break
                }
            }
            lines += effects.output.filter { $0 == UInt8(ascii: "\n") }.count
            effects.removeAll()
            guard session.state == .awaitingLogin, !session.isPaused, !session.hasWorkInFlight else {
                Issue.record("\(session) after \(String(decoding: line, as: UTF8.self))")
                return
            }
        }
        #expect(lines > 5_000)
    }
}

extension SeededRandom {
    /// Printed lines without their line feeds: short ones, for there are many to read.
    fileprivate mutating func lines(
        _ count: Int, _ print: (inout SeededRandom, inout [UInt8]) throws -> Void
    ) rethrows -> [[UInt8]] {
        var lines: [[UInt8]] = []
        while lines.count < count {
            var line: [UInt8] = []
            try print(&self, &line)
            if line.count <= 200 { lines.append(line.dropLast()) }
        }
        return lines
    }

    /// Random bytes, or one of some lines with a few bytes changed, lost, doubled or cut off.
    fileprivate mutating func damagedLine(_ seeds: [[UInt8]]) -> [UInt8] {
        guard !chance(0.1) else { return bytes(Int.random(in: 0...40, using: &self)) }
        guard !chance(0.02) else { return [UInt8](repeating: 0x20, count: Int.random(in: 0...5, using: &self)) }
        var line = seeds.randomElement(using: &self) ?? []
        let marks = Array(" \t=\"\\{}[]:,\0\r\n0aZ-.".utf8) + [0x80, 0xC3, 0xFF]
        for _ in 0..<Int.random(in: 0...3, using: &self) where !line.isEmpty {
            let place = Int.random(in: 0..<line.count, using: &self)
            switch Int.random(in: 0..<6, using: &self) {
            case 0: line[place] = UInt8.random(in: 0...255, using: &self)
            case 1, 2: line.insert(marks.randomElement(using: &self) ?? 0, at: place)
            case 3: line.remove(at: place)
            case 4: line.removeLast(line.count - place)
            default: line.append(contentsOf: line[place...].prefix(20))
            }
        }
        return line
    }
}
