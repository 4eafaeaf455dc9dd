import Wire

/// The commands by which a player looks after devices.
extension ServerConnection {
    /// Calls a device otherwise; nil: this one.
    package func rename(_ device: DeviceID?, to name: String) throws(ClientError) {
        _ = try request(.rename(device, name: name))
    }

    /// Ends one of the player's devices; this one too.
    package func revoke(_ device: DeviceID) throws(ClientError) {
        _ = try request(.revoke(device))
    }

    /// Gets another token for a device. The old one holds until the first login with the new one.
    package func rotateToken(of old: Token) throws(ClientError) -> Token {
        guard case .ok(let fields)? = try request(.rotate).last, let offer = try? TokenOffer(fields),
            offer.token.player == old.player, offer.token.device == old.device
        else { throw .protocolViolation("its reply to ROTATE holds no token of this device") }
        return offer.token
    }
}
