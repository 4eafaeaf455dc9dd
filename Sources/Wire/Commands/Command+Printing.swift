extension Command {
    /// Appends the line that asks for this, its line feed included.
    ///
    /// What is printed is read back as the same command. A line break in a push's state (JSON may hold some between its
    /// parts) becomes a blank, and blanks before the state are not part of it.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: verb.rawValue)
        switch self {
        case .hello(let client):
            if let client { bytes.append(option: " client=", text: client) }
        case .register(let device, let invite):
            if let device { bytes.append(option: " device=", text: device) }
            if let invite {
                bytes.append(text: " invite=")
                invite.print(into: &bytes)
            }
        case .login(let token):
            bytes.append(UInt8(ascii: " "))
            token.print(into: &bytes)
        case .link(let code, let device):
            bytes.append(UInt8(ascii: " "))
            code.print(into: &bytes)
            if let device { bytes.append(option: " device=", text: device) }
        case .push(let push):
            bytes.append(push.game)
            if let saved = push.saved { bytes.append(option: " saved=", saved) }
            if let base = push.base { bytes.append(option: " base=", base) }
            if push.schema != 0 { bytes.append(option: " schema=", push.schema) }
            if let state = push.state { bytes.append(state: state.span) }
        case .pull(let since, let limit):
            bytes.append(option: " since=", since)
            if let limit { bytes.append(option: " limit=", limit) }
        case .watch(let since):
            bytes.append(option: " since=", since)
        case .get(let game, let revision):
            bytes.append(game)
            if let revision { bytes.append(option: " revision=", revision) }
        case .history(let game, let before, let limit):
            bytes.append(game)
            if let before { bytes.append(option: " before=", before) }
            if let limit { bytes.append(option: " limit=", limit) }
        case .versions(let query): query.print(into: &bytes)
        case .devices(let after, let limit):
            if let after { bytes.append(option: " after=", after) }
            if let limit { bytes.append(option: " limit=", limit) }
        case .rename(let device, let name):
            if let device { bytes.append(option: " ", device) }
            bytes.append(option: " name=", text: name)
        case .revoke(let device): bytes.append(option: " ", device)
        case .importing(let part): part.print(into: &bytes)
        case .help(let topic):
            if let topic {
                bytes.append(UInt8(ascii: " "))
                bytes.append(contentsOf: topic.utf8.filter { $0 > 0x20 })
            }
        case .pair, .rotate, .unwatch, .time, .ping, .quit: break
        }
        bytes.append(UInt8(ascii: "\n"))
    }
}

extension [UInt8] {
    /// Appends a blank and the two words of a game's key.
    mutating func append(_ game: GameKey) {
        append(UInt8(ascii: " "))
        append(text: game.collection)
        append(UInt8(ascii: " "))
        append(text: game.id)
    }
}
