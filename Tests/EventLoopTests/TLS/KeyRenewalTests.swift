import TestSupport
import Testing

@testable import EventLoop

@Suite("new keys on a connection that lasts")
struct KeyRenewalTests {
    @Test(
        "a peer that renews its keys without end, and reads no answer, is cut off and leaves nothing to be kept",
        arguments: [true, false])
    func flood(isAsking: Bool) throws {
        // Small, so that answers stay with us.
        let link = try Link(over: .tls, receiveBuffer: 4_096)
        var (rounds, most) = (0, 0)
        while link.recorder.end == nil, rounds < 200_000, link.peer.renewKeys(isAsking: isAsking) {
            rounds += 1
            if rounds % 100 == 0 { _ = link.loop.run(until: { link.recorder.end != nil }, timeout: .milliseconds(1)) }
            most = max(most, link.connection?.pendingOutputBytes ?? 0)
        }
        _ = link.run { link.recorder.end != nil }
        guard case .insecure(let error) = link.recorder.end else {
            Issue.record("after \(rounds) rounds: \(String(describing: link.recorder.end)), \(most) bytes waited")
            return
        }
        #expect(error.message.contains("new keys"))
        #expect(most < 65_536)
    }

    @Test("a peer that renews its keys as it sends much, or a few times in a row, is served")
    func now() throws {
        let link = try Link(over: .tls)
        link.recorder.keepsLines = false
        for _ in 0..<20 { #expect(link.peer.renewKeys(isAsking: true)) }
        let line = [UInt8](repeating: 0x78, count: 65_535) + [10]
        for number in 1...200 {
            #expect(link.peer.renewKeys(isAsking: number % 2 == 0))
            var rest = line[...]
            try #require(
                link.run {
                    rest = rest.dropFirst(link.peer.send(rest))
                    return rest.isEmpty && link.recorder.lineCount == number || link.recorder.end != nil
                })
            try #require(link.recorder.end == nil)
        }
        link.connection?.write(Array("read all\n".utf8))
        #expect(
            link.run {
                link.peer.receive()
                return link.peer.text == "read all\n"
            }, "\(String(describing: link.peer.tlsError))")
    }
}
