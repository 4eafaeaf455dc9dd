import Foundation
import FuzzSupport
import Wire

@testable import IeumClient

/// The files of a device's home, whoever wrote them: what is read and written is read again as the same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzHome(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    var input = FuzzInput(start, count)
    switch input.byte() % 4 {
    case 0: checkIdentity(input.rest)
    case 1: checkSeen(input.rest)
    case 2: checkAddress(String(decoding: input.rest, as: UTF8.self))
    default: checkToken(String(decoding: input.rest, as: UTF8.self))
    }
    return 0
}

/// The token that belongs to the identities of the corpus.
private let token = PlayerID("00000000-0000-4000-8000-000000000001").flatMap { player in
    DeviceID("00000000-0000-4000-8000-000000000002").flatMap { device in
        Token(player: player, device: device, secret: Array(repeating: 7, count: 32))
    }
}

private func checkIdentity(_ bytes: [UInt8]) {
    guard let token, let identity = try? Identity(card: bytes, token: token) else { return }
    hold((try? Identity(card: identity.card, token: token)) == identity, "\(identity) is read again")
}

private func checkSeen(_ bytes: [UInt8]) {
    guard var seen = try? Seen(text: bytes) else { return }
    hold((try? Seen(text: seen.text)) == seen, "\(seen) is read again")
    for key in seen.games.keys.prefix(4) {
        let stamp = seen.games[key]?.stamp
        let saved = seen.saved(for: key, state: [], now: .earliest)
        if let stamp, seen.games[key]?.pending == nil, stamp < Timestamp.latest {
            hold(saved > stamp, "a save comes after what was seen")
        }
        seen.willPush(key, state: [], saved: saved)
        hold(seen.saved(for: key, state: [], now: .latest) == saved, "a push that is repeated is the same")
        seen.pushAnswered(key, saved: saved)
        seen.saw(key, revision: .max, stamp: .latest)
        hold(seen.base(for: key) == .max, "what was seen is the base")
    }
    seen.meet(epoch: UUID())
    hold((try? Seen(text: seen.text)) == seen, "\(seen) is read again")
}

private func checkAddress(_ text: String) {
    guard let address = ServerAddress(text) else { return }
    hold(address.port > 0, "a port is one")
    hold(ServerAddress(address.description) == address, "\(address) is read again")
}

private func checkToken(_ text: String) {
    guard let token = Token(text) else { return }
    hold(Token(token.text) == token, "a token is read again")
}
