import EventLoop
import Glibc
import TestSupport
import Testing

@Suite("what a connection writes")
struct ConnectionOutputTests {
    @Test("many writes in one turn arrive whole and in order", arguments: Carrier.allCases)
    func gathers(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        for number in 0..<1_000 { link.connection?.write(Array("\(number)\n".utf8)) }
        #expect((link.connection?.pendingOutputBytes ?? 0) > 0)
        let expected = (0..<1_000).map { "\($0)\n" }.joined()
        #expect(
            link.run {
                link.peer.receive()
                return link.peer.received.count >= expected.utf8.count
            })
        #expect(link.peer.text == expected)
        #expect(link.connection?.pendingOutputBytes == 0)
    }

    @Test("a reply written in lineReceived has left when that turn of the loop ends", arguments: Carrier.allCases)
    func repliesAtOnce(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        link.recorder.reaction = { event, connection in
            if case .line(let line) = event { connection.write(line + [10]) }
        }
        link.peer.send("ping\n")
        #expect(link.run { link.recorder.lineCount == 1 })
        link.peer.receive()
        #expect(link.peer.text == "ping\n")
    }

    @Test(
        "what is larger than all buffers arrives whole, and outputDrained tells when more may come",
        arguments: Carrier.allCases)
    func largeOutput(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        let connection = try #require(link.connection)
        let pattern = (0..<9_973).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) }
        var bytes: [UInt8] = []
        while bytes.count < 20_000_000 { bytes += pattern }
        connection.write(bytes)
        #expect(connection.isOutputBlocked)
        #expect(
            link.run {
                link.peer.receive()
                return link.peer.received.count >= bytes.count
            })
        #expect(link.peer.received == bytes)
        #expect(link.run { link.recorder.events == [.drained] })
        #expect(!connection.isOutputBlocked)
    }

    // In a process of its own, whose memory is nobody else's.
    @Test(
        "a peer that never reads is not read from either, our memory stays bounded, and the write timeout ends it",
        arguments: Carrier.allCases)
    func backPressure(over carrier: Carrier) async {
        await #expect(processExitsWith: .success) { [carrier] in
            var options = Connection.Options()
            options.outputHighWater = 100_000
            options.outputLowWater = 20_000
            options.writeTimeout = .milliseconds(300)
            let link = try Link(over: carrier, options: options, receiveBuffer: 4_096)
            let reply = [UInt8](repeating: 120, count: 1_000)
            link.recorder.keepsLines = false
            let peak = Box(0)
            link.recorder.reaction = { event, connection in
                guard case .line = event else { return }
                connection.write(reply)
                peak.value = max(peak.value, connection.pendingOutputBytes)
            }
            let before = residentBytes()
            let request = Array("give\n".utf8)
            var flood: [UInt8] = []
            for _ in 0..<10_000 { flood += request }
            var sent = 0
            let isOver = link.run {
                sent += link.peer.send(flood[(sent % flood.count)...])
                return link.recorder.end != nil
            }
            try #require(isOver)
            try #require(link.recorder.end == .writeTimeout)
            try #require(peak.value <= options.outputHighWater + reply.count)
            // Far fewer requests were answered than were sent.
            try #require(link.recorder.lineCount * 5 < sent - 100_000)
            try #require(residentBytes() - before < 20_000_000)
        }
    }

    @Test(
        "output that goes on slowly is no write timeout, and reading comes back when it drains",
        arguments: Carrier.allCases)
    func slowReader(over carrier: Carrier) throws {
        // Where the machine stands still for as long as the timeout, the peer takes nothing.
        var isKept = false
        for _ in 0..<5 where !isKept { isKept = try keepsSlowReader(over: carrier) }
        #expect(isKept)
    }

    private func keepsSlowReader(over carrier: Carrier) throws -> Bool {
        var options = Connection.Options()
        options.outputHighWater = 100_000
        options.outputLowWater = 20_000
        options.writeTimeout = .milliseconds(400)
        let link = try Link(over: carrier, options: options, receiveBuffer: 4_096)
        let connection = try #require(link.connection)
        connection.write([UInt8](repeating: 120, count: 8_000_000))
        link.peer.send("more\n")
        let start = link.loop.now
        // Three times the timeout, a sip at a time.
        let sip = EventLoop.Timer(on: link.loop, after: .zero, every: .milliseconds(20)) {
            var buffer = [UInt8](repeating: 0, count: 60_000)
            _ = recv(link.peer.descriptor, &buffer, buffer.count, 0)
        }
        _ = link.run { link.loop.now - start > .milliseconds(1_200) || link.recorder.end != nil }
        sip.cancel()
        guard link.recorder.events.isEmpty else { return false }
        #expect(
            link.run {
                link.peer.receive()
                return link.recorder.lineCount == 1
            })
        #expect(link.recorder.events == [.drained, .line(Array("more".utf8))])
        return true
    }

    @Test(
        "closeAfterFlush sends all, is not reset by input that nobody reads, and ends once", arguments: Carrier.allCases
    )
    func closesAfterFlush(over carrier: Carrier) throws {
        let link = try Link(over: carrier)
        let connection = try #require(link.connection)
        let bytes = [UInt8](repeating: 120, count: 3_000_000)
        connection.write(bytes)
        link.peer.send("ignored\nignored too\n")
        connection.closeAfterFlush()
        connection.write(Array("too late".utf8))
        link.connection = nil  // The loop keeps it till the end.
        #expect(
            link.run {
                link.peer.send("x")
                link.peer.receive()
                return link.peer.isAtEnd
            })
        #expect(link.peer.received == bytes)
        link.peer.hangUp()
        #expect(link.run { link.recorder.end != nil })
        #expect(link.recorder.events == [.ended(.closed)])
    }

    @Test(
        "closeAfterFlush gives up on a peer that takes nothing, and on one that never hangs up",
        arguments: Carrier.allCases)
    func closingIsBounded(over carrier: Carrier) throws {
        for (size, reason) in [(8_000_000, Connection.EndReason.writeTimeout), (1, .closed)] {
            let link = try Link(over: carrier, receiveBuffer: 4_096)
            link.connection?.write([UInt8](repeating: 120, count: size))
            link.connection?.closeAfterFlush(within: .milliseconds(50))
            #expect(link.run { link.recorder.end != nil })
            #expect(link.recorder.events == [.ended(reason)])
        }
    }

    @Test(
        "a close that waits for silence ends soon where the peer is silent, also if it had begun to wait longer, and goes on while it speaks",
        arguments: Carrier.allCases)
    func closesAfterSilence(over carrier: Carrier) throws {
        let silent = try Link(over: carrier)
        silent.connection?.write(Array("bye\n".utf8))
        silent.connection?.closeAfterFlush(within: .seconds(60))
        silent.settle()
        #expect(silent.recorder.end == nil)
        silent.connection?.closeAfterFlush(within: .seconds(60), untilSilentFor: .milliseconds(50))
        #expect(silent.run { silent.recorder.end != nil })
        #expect(silent.recorder.events == [.ended(.closed)])
        silent.peer.receive()
        #expect(silent.peer.text == "bye\n" && silent.peer.isAtEnd)

        // Where the machine stands still meanwhile, the peer is silent.
        var isHeard = false
        for _ in 0..<5 where !isHeard {
            let speaking = try Link(over: carrier)
            speaking.connection?.closeAfterFlush(within: .milliseconds(1_500), untilSilentFor: .milliseconds(300))
            let begin = ContinuousClock.now
            #expect(
                speaking.run {
                    speaking.peer.send("x")
                    return speaking.recorder.end != nil
                })
            isHeard = ContinuousClock.now - begin > .milliseconds(1_400)
            #expect(speaking.recorder.events == [.ended(.closed)])
        }
        #expect(isHeard)
    }

    @Test("a reset by the peer is the end's reason, when reading and when writing", arguments: Carrier.allCases)
    func resets(over carrier: Carrier) throws {
        let reading = try Link(over: carrier)
        reading.peer.reset()
        #expect(reading.run { reading.recorder.end != nil })
        guard case .failed(let error) = reading.recorder.end else {
            Issue.record("ended by \(String(describing: reading.recorder.end))")
            return
        }
        #expect(error.number == ECONNRESET)

        let writing = try Link(over: carrier)
        writing.connection?.pauseReading()
        writing.peer.reset()
        writing.settle()
        writing.connection?.write(Array("x".utf8))
        #expect(writing.run { writing.recorder.end != nil })
        guard case .failed = writing.recorder.end else {
            Issue.record("ended by \(String(describing: writing.recorder.end))")
            return
        }
        #expect(writing.recorder.events.count == 1)
    }
}
