import Foundation
import Testing

@testable import Wire

@Test("a session signs in, pushes and answers in order")
func sessionSignsInAndPushes() throws {
    let server = ServerDescription(version: "0.1.0", epoch: UUID())
    var session = Session(server: server)
    var effects = Session.Effects()
    func send(_ text: String) { session.lineReceived(Array(text.utf8).span, at: .earliest, into: &effects) }
    send("PUSH a b {}")
    send("REGISTER device=\"my iPad\"\r")
    guard case .register(device: "my iPad", let request)? = effects.actions.first else {
        Issue.record("no registration: \(effects)")
        return
    }
    send("PUSH handle.game today base=0 {\"a\":[1,2.5e3,\"\\ud83d\\ude00\"]}")
    #expect(session.isPaused)
    let player = PlayerID(UUID())
    let device = DeviceID(UUID())
    session.signedIn(request, as: SignIn(player: player, device: device, revision: 0), into: &effects)
    #expect(!session.isPaused)
    guard case .push(let push, player, device, let id)? = effects.actions.dropFirst(2).first else {
        Issue.record("no push: \(effects)")
        return
    }
    #expect(push.base == 0)
    send("PING")
    send("PUSH handle.game bad {\"answer\":")
    session.pushFinished(id, .success(PushReceipt(outcome: .created, revision: 1, stamp: .earliest)), into: &effects)
    let lines = String(decoding: effects.output, as: UTF8.self).split(separator: "\n")
    #expect(lines.count == 5)
    #expect(lines[0].hasPrefix("ERR not-signed-in "))
    #expect(lines[1] == "OK player=\(player) device=\(device) revision=0")
    #expect(lines[2] == "OK outcome=created revision=1 stamp=1970-01-01T00:00:00.000000Z")
    #expect(lines[3] == "OK")
    #expect(lines[4].hasPrefix("ERR invalid-json offset=10 ") && lines[4].hasSuffix("inside an object\""))
    #expect(MemoryLayout<Session>.size <= 200)
}
