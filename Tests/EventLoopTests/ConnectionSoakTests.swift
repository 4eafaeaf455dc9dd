import EventLoop
import Testing

@Suite("connections under random treatment")
struct ConnectionSoakTests {
    /// One connection, what its peer has sent, and what both sides have done to it.
    private final class Subject {
        let link: Link
        var sentLines = 0
        var isPeerGone = false
        var isClosed = false

        init(over carrier: Carrier, loop: EventLoop) throws {
            var options = Connection.Options()
            options.outputHighWater = 20_000
            options.outputLowWater = 5_000
            options.maxLineBytes = 3_000
            link = try Link(over: carrier, options: options, receiveBuffer: 8_192, loop: loop)
        }

        /// What the peer sends as line number so-and-so: its number and a tail of that many bytes, more or less.
        static func line(_ number: Int) -> String { "\(number) " + String(repeating: "x", count: number * 37 % 2_500) }

        func act(_ random: inout SplitMix) {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<40 where !isPeerGone: sendLines(Int.random(in: 1...20, using: &random))
            case 40..<60: link.peer.receive()
            case 60..<75:
                link.connection?.write([UInt8](repeating: 121, count: Int.random(in: 1...9_000, using: &random)))
            case 75..<85: link.connection?.pauseReading()
            case 85..<97: link.connection?.resumeReading()
            case 97 where Bool.random(using: &random):
                isPeerGone = true
                link.peer.finishSending()
            case 98 where Int.random(in: 0..<4, using: &random) == 0:
                isPeerGone = true
                link.peer.reset()
            case 99 where Int.random(in: 0..<4, using: &random) == 0:
                isClosed = true
                if Bool.random(using: &random) {
                    link.connection?.close()
                } else {
                    link.connection?.closeAfterFlush(within: .milliseconds(100))
                }
            default: break
            }
        }

        /// Whole lines only, so that what was sent is known.
        private func sendLines(_ count: Int) {
            for _ in 0..<count {
                let bytes = Array((Self.line(sentLines) + "\n").utf8)
                var sent = link.peer.send(bytes)
                guard sent > 0 else { return }
                while sent < bytes.count, link.recorder.end == nil {
                    sent += link.peer.send(bytes[sent...])
                    link.peer.receive()
                    if link.recorder.end == nil { link.connection?.resumeReading() }
                    link.settle(.zero)
                }
                sentLines += 1
            }
        }
    }

    @Test("lines come once and in order, and every connection ends exactly once", arguments: 0..<4, Carrier.allCases)
    func soak(round: Int, over carrier: Carrier) throws {
        let seed = UInt64.random(in: 0...UInt64.max)
        var random = SplitMix(seed: seed)
        let loop = try EventLoop()
        let subjects = try (0..<25).map { _ in try Subject(over: carrier, loop: loop) }
        for step in 0..<3_000 {
            subjects.randomElement(using: &random)?.act(&random)
            if step % 3 == 0 { _ = loop.run(until: { false }, timeout: .zero) }
        }
        for subject in subjects where !subject.isPeerGone { subject.link.peer.finishSending() }
        for subject in subjects {
            subject.link.recorder.reaction = { if case .inputEnded = $0 { $1.closeAfterFlush() } }
        }
        let isOver = loop.run(
            until: {
                for subject in subjects {
                    subject.link.peer.receive()
                    subject.link.connection?.resumeReading()
                    // One whose input had ended before the reaction was set.
                    if subject.link.recorder.events.contains(where: { if case .inputEnded = $0 { true } else { false } }
                    ) {
                        subject.link.connection?.closeAfterFlush()
                    }
                }
                return subjects.allSatisfy { $0.link.recorder.end != nil }
            }, timeout: .seconds(60))
        #expect(isOver, "seed \(seed)")
        for subject in subjects {
            let recorder = subject.link.recorder
            #expect(recorder.lines == (0..<recorder.lineCount).map(Subject.line), "seed \(seed)")
            #expect(recorder.events.filter { if case .ended = $0 { true } else { false } }.count == 1, "seed \(seed)")
            #expect(!recorder.events.contains(.tooLong), "seed \(seed)")
            if !subject.isClosed, !subject.isPeerGone {
                #expect(recorder.lineCount == subject.sentLines, "seed \(seed)")
                #expect(recorder.end == .closed, "seed \(seed)")
            }
        }
    }
}
