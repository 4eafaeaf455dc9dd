import Wire

/// Who this device is: which server, which player, which device of theirs, and the token that proves it.
package struct Identity: Hashable, Sendable {
    /// Where the server is.
    package var server: ServerAddress
    /// What the device calls itself.
    package var deviceName: String
    /// Signs the device in; names player and device.
    package var token: Token

    /// Whose device it is.
    package var player: PlayerID { token.player }
    /// Which device it is.
    package var device: DeviceID { token.device }

    /// Puts an identity together.
    package init(server: ServerAddress, deviceName: String, token: Token) {
        self.server = server
        self.deviceName = deviceName
        self.token = token
    }
}

extension Identity {
    /// What stands in `identity.json`: everything but the secret.
    private struct Card: Codable {
        var server: String
        /// The PEM file of trusted authorities, in place of the system's.
        var authorities: String?
        /// The pinned certificate.
        var fingerprint: String?
        /// PEM files of the device's certificate and its key.
        var certificate: String?
        var certificateKey: String?
        var player: String
        var device: String
        var deviceName: String
    }

    /// The text of `identity.json`.
    var card: [UInt8] {
        var card = Card(
            server: server.description, player: player.description, device: device.description, deviceName: deviceName)
        switch server.trust {
        case .system: break
        case .authorities(let file): card.authorities = file
        case .pinned(let fingerprint): card.fingerprint = fingerprint.description
        }
        card.certificate = server.certificate?.file
        card.certificateKey = server.certificate?.key
        return JSONFile.encode(card)
    }

    /// Reads `identity.json` beside a token that belongs to it.
    /// - Throws: ``JSONFile/Problem`` with words on what is wrong.
    init(card bytes: [UInt8], token: Token) throws(JSONFile.Problem) {
        let card = try JSONFile.decode(Card.self, bytes)
        guard var server = ServerAddress(card.server) else {
            throw JSONFile.Problem("its server is not HOST:PORT")
        }
        if let text = card.fingerprint {
            guard let fingerprint = ServerTrust.Fingerprint(text) else {
                throw JSONFile.Problem("its fingerprint is not 64 hexadecimal digits")
            }
            server.trust = .pinned(fingerprint)
        } else if let file = card.authorities {
            server.trust = .authorities(file: file)
        }
        if let file = card.certificate, let key = card.certificateKey {
            server.certificate = ClientCertificate(file: file, key: key)
        }
        guard PlayerID(card.player) == token.player, DeviceID(card.device) == token.device else {
            throw JSONFile.Problem("it names another player or device than the token beside it")
        }
        self.init(server: server, deviceName: card.deviceName, token: token)
    }
}
