/// The answer to `LOGIN`, `REGISTER` and `LINK`: who is signed in.
public struct SignIn: Hashable, Sendable {
    /// The player.
    public var player: PlayerID
    /// The device.
    public var device: DeviceID
    /// A new device's token; `nil` after `LOGIN`.
    public var token: Token?
    /// The player's last revision; 0 if there is none.
    public var revision: Revision

    /// Creates the answer.
    public init(player: PlayerID, device: DeviceID, token: Token? = nil, revision: Revision) {
        self.player = player
        self.device = device
        self.token = token
        self.revision = revision
    }

    /// Appends the line `OK player=… device=… [token=…] revision=…`.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(option: "OK player=", player)
        bytes.append(option: " device=", device)
        if let token {
            bytes.append(text: " token=")
            token.print(into: &bytes)
        }
        bytes.append(option: " revision=", revision)
        bytes.append(UInt8(ascii: "\n"))
    }
}

/// The answer to `PAIR`.
public struct PairingOffer: Hashable, Sendable {
    /// The code to type on the other device.
    public var code: PairingCode
    /// Until when it holds.
    public var expires: Timestamp

    /// Creates the answer.
    public init(code: PairingCode, expires: Timestamp) {
        self.code = code
        self.expires = expires
    }

    /// Appends the line `OK code=… expires=…`.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: "OK code=")
        code.print(into: &bytes)
        bytes.append(option: " expires=", expires)
        bytes.append(UInt8(ascii: "\n"))
    }
}
