import Foundation

/// What a device signs in with: the player's id, the device's id and a secret of 32 random bytes.
///
/// Text form: `<player>.<device>.<secret>`, each part base64url (RFC 4648 section 5) without padding: 22, 22 and 43
/// characters, 89 in all. The ids make a login a look-up by key; only a hash of the secret is stored. Neither
/// `description` nor a dump shows the secret: print it on purpose with ``text``.
public struct Token: Hashable, Sendable {
    /// Whose token it is.
    public let player: PlayerID
    /// The device that holds it.
    public let device: DeviceID
    /// The 32 secret bytes. Never log them.
    public let secret: [UInt8]

    /// The number of bytes in a secret.
    public static let secretLength = 32
    /// The number of characters in the text form.
    public static let textLength = 22 + 1 + 22 + 1 + 43

    /// Creates a token; `nil` unless the secret has 32 bytes.
    public init?(player: PlayerID, device: DeviceID, secret: [UInt8]) {
        guard secret.count == Self.secretLength else { return nil }
        self.player = player
        self.device = device
        self.secret = secret
    }

    /// Parses the text form.
    public init?(_ text: String) {
        var text = text
        guard let value = text.withUTF8({ Token(utf8: $0.span) }) else { return nil }
        self = value
    }

    /// Parses the text form from its bytes.
    public init?(utf8 text: Span<UInt8>) {
        guard text.count == Self.textLength, text[22] == UInt8(ascii: "."), text[45] == UInt8(ascii: "."),
            let player = Base64URL.decode(text.extracting(0..<22)), let playerID = UUID(bytes: player),
            let device = Base64URL.decode(text.extracting(23..<45)), let deviceID = UUID(bytes: device),
            let secret = Base64URL.decode(text.extracting(46..<89))
        else { return nil }
        self.init(player: PlayerID(playerID), device: DeviceID(deviceID), secret: secret)
    }

    /// Appends the text form, the secret included.
    public func print(into bytes: inout [UInt8]) {
        withUnsafeBytes(of: player.uuid.uuid) { Base64URL.append($0, to: &bytes) }
        bytes.append(UInt8(ascii: "."))
        withUnsafeBytes(of: device.uuid.uuid) { Base64URL.append($0, to: &bytes) }
        bytes.append(UInt8(ascii: "."))
        Base64URL.append(secret, to: &bytes)
    }

    /// The text form, the secret included: for the wire and the token file only.
    public var text: String {
        var bytes: [UInt8] = []
        print(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension Token: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
    /// The ids; never the secret.
    public var description: String { "Token(player: \(player), device: \(device), secret: hidden)" }
    /// The ids; never the secret.
    public var debugDescription: String { description }
    /// The ids; never the secret.
    public var customMirror: Mirror { Mirror(self, children: ["player": player, "device": device]) }
}

extension UUID {
    /// Creates a UUID from sixteen bytes; `nil` for another number of them.
    package init?(bytes: [UInt8]) {
        guard bytes.count == 16 else { return nil }
        var value: uuid_t = (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
        withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: bytes) }
        self.init(uuid: value)
    }
}
