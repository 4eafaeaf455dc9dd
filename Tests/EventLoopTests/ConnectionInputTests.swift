import Glibc
import TestSupport
import Testing

@testable import EventLoop

@Suite("what a connection reads")
struct ConnectionInputTests {
    /// What must come of a stream of bytes, by the plainest reading of the rule.
    private func expectation(of bytes: [UInt8], limit: Int) -> [Recorder.Event] {
        var pieces = bytes.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false).map(Array.init)
        let last = pieces.removeLast()
        var events: [Recorder.Event] = pieces.map { piece in
            let line = piece.last == UInt8(ascii: "\r") ? Array(piece.dropLast()) : piece
            return line.count > limit ? .tooLong : .line(line)
        }
        let isLastTooLong = last.count > limit + 1 || (last.count == limit + 1 && last.last != UInt8(ascii: "\r"))
        if isLastTooLong { events.append(.tooLong) }
        events.append(.inputEnded(unterminated: isLastTooLong ? 0 : last.count))
        return events
    }

    @Test("any split of a stream gives the same lines", arguments: 0..<60, Carrier.allCases)
    func splits(round: Int, over carrier: Carrier) throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix(seed: seed)
        let limit = Int.random(in: 0...24, using: &random)
        var bytes: [UInt8] = []
        for _ in 0..<Int.random(in: 0...40, using: &random) {
            let length = [0, 1, limit - 1, limit, limit + 1, limit + 2, 3 * limit, 5_000].randomElement(using: &random)
            for _ in 0..<max(0, length ?? 0) {
                bytes.append([0, 13, 97, 0xea, 0xff].randomElement(using: &random) ?? 0)
            }
            bytes.append(contentsOf: [[10], [13, 10], [13, 13, 10], [10, 10]].randomElement(using: &random) ?? [])
        }
        bytes.append(contentsOf: [UInt8](repeating: 13, count: Int.random(in: 0...3, using: &random)))

        var options = Connection.Options()
        options.maxLineBytes = limit
        let link = try Link(over: carrier, options: options)
        let sizes = [1...1, 1...3, 1...100, 1...9_000].randomElement(using: &random) ?? 1...1
        var sent = 0
        while sent < bytes.count {
            let end = min(bytes.count, sent + Int.random(in: sizes, using: &random))
            sent += link.peer.send(bytes[sent..<end])
            // Mostly one turn between two pieces, so that they are read one by one.
            if Bool.random(using: &random) { link.settle(.zero) }
        }
        link.peer.finishSending()
        let isOver = link.run { if case .inputEnded = link.recorder.events.last { true } else { false } }
        #expect(isOver, "seed \(seed)")
        #expect(link.recorder.events == expectation(of: bytes, limit: limit), "seed \(seed)")
    }

    @Test(
        "lines of limit - 1 and limit pass, limit + 1 is too long, with and without CR, whole and in pieces",
        arguments: Carrier.allCases)
    func limits(over carrier: Carrier) throws {
        var options = Connection.Options()
        options.maxLineBytes = 10_000
        let link = try Link(over: carrier, options: options)
        var expected: [Recorder.Event] = []
        for terminator in ["\n", "\r\n"] {
            for length in [9_999, 10_000, 10_001] {
                let line = [UInt8](repeating: 120, count: length)
                link.peer.send(line + Array(terminator.utf8))
                expected.append(length <= 10_000 ? .line(line) : .tooLong)
            }
        }
        link.peer.send("next\n")
        expected.append(.line(Array("next".utf8)))
        #expect(link.run { link.recorder.events.count == expected.count })
        #expect(link.recorder.events == expected)
    }

    @Test("a line of 1 MB that arrives in small pieces arrives whole")
    func longLineInPieces() throws {
        let link = try Link()
        let line = (0..<1_048_576).map { UInt8(truncatingIfNeeded: $0 % 251) | 0x80 }
        var sent = 0
        while sent < line.count {
            sent += link.peer.send(line[sent..<min(sent + 997, line.count)])
            link.settle(.zero)
        }
        link.peer.send("\n")
        #expect(link.run { link.recorder.lineCount == 1 })
        #expect(link.recorder.events == [.line(line)])
    }

    @Test("the time for a line grows with its length, not with its square")
    func isLinear() throws {
        // 64 MB in a million pieces take some seconds at most; scanning or copying from the beginning at each piece
        // would touch 32 TB.
        var reader = LineReader(maxLineBytes: 1 << 26)
        let piece = [UInt8](repeating: 120, count: 64)
        let start = ContinuousClock.now
        piece.withUnsafeBytes { chunk in
            for _ in 0..<1 << 20 {
                var offset = 0
                if reader.next(in: chunk, at: &offset) != nil { Issue.record("a line out of nothing") }
            }
        }
        #expect(reader.unterminatedBytes == 1 << 26)
        #expect(ContinuousClock.now - start < .seconds(60))
    }

    // In a process of its own, whose memory is nobody else's.
    @Test("a line of 100 MB is dropped as it comes, in bounded memory, and the next line works")
    func endlessLine() async {
        await #expect(processExitsWith: .success) {
            let link = try Link()
            let piece = [UInt8](repeating: 120, count: 65_536)
            let before = residentBytes()
            var sent = 0
            while sent < 100_000_000 {
                sent += link.peer.send(piece)
                link.settle(.zero)
            }
            while link.peer.send([10]) == 0 { link.settle(.zero) }
            link.peer.send("next\n")
            try #require(link.run { link.recorder.events.count == 2 })
            try #require(link.recorder.events == [.tooLong, .line(Array("next".utf8))])
            try #require(residentBytes() - before < 32_000_000)
        }
    }

    @Test(
        "pausing inside a line stops delivery at once; resuming delivers the rest in order, not recursively",
        arguments: Carrier.allCases)
    func pausesInside(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.recorder.reaction = { _, connection in connection.pauseReading() }
        link.peer.send((0..<50).map { "\($0)\n" }.joined())
        for count in 1...50 {
            try #require(link.run { link.recorder.lineCount == count })
            link.settle(.zero)
            let connection = try #require(link.connection)
            #expect(connection.isReadingPaused)
            connection.resumeReading()
            #expect(link.recorder.lineCount == count)
        }
        #expect(link.recorder.lines == (0..<50).map(String.init))
    }

    @Test("pausing and resuming inside one line goes on with the next", arguments: Carrier.allCases)
    func pausesAndResumesInside(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.recorder.reaction = { _, connection in
            connection.pauseReading()
            connection.resumeReading()
        }
        link.peer.send("a\nb\nc\n")
        #expect(link.run { link.recorder.lineCount == 3 })
    }

    @Test("while paused, no more than one read is taken from the socket", arguments: Carrier.allCases)
    func pausedReadsLittle(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.connection?.pauseReading()
        let piece = (0..<65_536).map { $0 % 256 == 255 ? UInt8(10) : 120 }
        var sent = 0
        var quiet = 0
        while quiet < 20 {
            let count = link.peer.send(piece[(sent % piece.count)...])
            sent += count
            quiet = count == 0 ? quiet + 1 : 0
            link.settle(.milliseconds(1))
        }
        #expect(link.recorder.lineCount == 0)
        #expect(unreadBytes(of: link) + link.peer.queuedBytes >= sent - 8_192)
        link.recorder.keepsLines = false
        link.connection?.resumeReading()
        #expect(
            link.run {
                link.peer.receive()
                return link.recorder.lineCount == sent / 256
            })
    }

    /// What lies in the system's buffers between the two: sent by the peer and not read by us.
    private func unreadBytes(of link: Link) -> Int {
        var outgoing: Int32 = 0
        _ = ioctl(link.peer.descriptor, UInt(TIOCOUTQ), &outgoing)
        var incoming: Int32 = 0
        _ = ioctl(link.socketDescriptor, UInt(FIONREAD), &incoming)
        return Int(outgoing + incoming)
    }

    @Test("a connection with thousands of buffered lines does not starve another one", arguments: Carrier.allCases)
    func isFair(over carrier: Carrier) throws {
        let loop = try EventLoop()
        let (busy, other) = (try Link(over: carrier, loop: loop), try Link(over: carrier, loop: loop))
        busy.recorder.keepsLines = false
        busy.recorder.reaction = { _, _ in
            let end = ContinuousClock.now + .microseconds(5)
            while ContinuousClock.now < end {}
        }
        busy.connection?.pauseReading()
        busy.peer.send([UInt8](repeating: 10, count: 10_000))
        busy.settle()
        other.peer.send("hello\n")
        // The system may take its time to carry it over.
        var arrival = pollfd(fd: other.socketDescriptor, events: Int16(POLLIN), revents: 0)
        try #require(poll(&arrival, 1, 60_000) == 1)
        let before = Box(-1)
        other.recorder.reaction = { _, _ in before.value = busy.recorder.lineCount }
        busy.connection?.resumeReading()
        #expect(busy.run { busy.recorder.lineCount == 10_000 })
        #expect(before.value >= 0)
        #expect(before.value <= 512)
    }

    @Test(
        "when the peer half-closes, full lines come first, a rest is counted, and writing still works",
        arguments: Carrier.allCases)
    func halfClose(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.connection?.pauseReading()
        link.peer.send("one\ntwo\nthr")
        link.peer.finishSending()
        link.settle()
        #expect(link.recorder.events.isEmpty)
        link.recorder.reaction = { event, connection in
            if case .inputEnded = event {
                connection.write(Array("bye\n".utf8))
                connection.closeAfterFlush()
            }
        }
        link.connection?.resumeReading()
        #expect(link.run { link.recorder.end != nil })
        #expect(
            link.recorder.events == [
                .line(Array("one".utf8)), .line(Array("two".utf8)), .inputEnded(unterminated: 3), .ended(.closed),
            ])
        link.peer.receive()
        #expect(link.peer.text == "bye\n")
        #expect(link.peer.isAtEnd)
    }

    @Test("a smaller line limit set in between counts from then on", arguments: Carrier.allCases)
    func changesLimit(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.peer.send("123456\n")
        #expect(link.run { link.recorder.lineCount == 1 })
        link.connection?.maxLineBytes = 5
        link.peer.send("123456\n12345\n")
        #expect(link.run { link.recorder.events.count == 3 })
        #expect(link.recorder.events.suffix(2) == [.tooLong, .line(Array("12345".utf8))])
    }
}

/// A small random source with a seed that can be printed.
struct SplitMix: RandomNumberGenerator {
    private var state: UInt64
    init(seed: UInt64) { state = seed }
    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
        return mixed ^ (mixed >> 31)
    }
}

/// The resident memory of this process; nothing with a sanitizer in it, whose own memory it would be.
func residentBytes() -> Int {
    if Sanitizer.isActive { return 0 }
    guard let file = fopen("/proc/self/statm", "r") else { return 0 }
    defer { fclose(file) }
    var line = [CChar](repeating: 0, count: 128)
    fgets(&line, Int32(line.count), file)
    let fields = String(decoding: line.prefix { $0 != 0 }.map(UInt8.init), as: UTF8.self).split(separator: " ")
    return fields.count > 1 ? (Int(fields[1]) ?? 0) * Int(getpagesize()) : 0
}
