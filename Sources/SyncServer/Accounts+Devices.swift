import Postgres
import Wire

/// What a player does with devices: `RENAME`, `REVOKE`, `ROTATE`. Each asks the database whether the device that asks is still
/// valid, in the transaction that changes something: a session that is about to end does nothing more.
extension Accounts {
    private static let rename = Statement(
        "rename-device", "SELECT rename_device($1, $2, $3, $4)", parameterTypes: [.uuid, .uuid, .uuid, .text])
    private static let revoke = Statement(
        "revoke-device", "SELECT revoke_device($1, $3, device_by => $2)", parameterTypes: [.uuid, .uuid, .uuid])
    private static let rotate = Statement(
        "rotate-token", "SELECT rotate_token($1, $2, $3)", parameterTypes: [.uuid, .uuid, .bytea])

    /// Carries a change out; the session hears once.
    func change(
        _ change: Session.AccountChange, of player: PlayerID, by device: DeviceID, _ request: RequestID,
        _ session: ClientSession
    ) {
        var parameters = ParameterList()
        parameters.append(player.uuid)
        parameters.append(device.uuid)
        switch change {
        case .rename(let named, let name):
            parameters.append(named.uuid)
            parameters.append(name)
            execute(Self.rename, parameters, request, session) { .done }
        case .revoke(let ended):
            parameters.append(ended.uuid)
            execute(Self.revoke, parameters, request, session) { [server] in
                server.log(.info, "device-revoked", ["player": player, "device": ended, "by": device])
                return .done
            }
        // The answer stands before the end of the session that asked, where it ends itself.
        case .rotate:
            guard let secret = try? Secrets.randomBytes(Token.secretLength),
                let token = Token(player: player, device: device, secret: secret)
            else { return session.accountChangeFinished(request, .failure(.internalError())) }
            parameters.append(Secrets.sha256(secret))
            execute(Self.rotate, parameters, request, session) { .rotated(TokenOffer(token: token)) }
        }
    }

    private func execute(
        _ statement: Statement, _ parameters: ParameterList, _ request: RequestID, _ session: ClientSession,
        _ done: @escaping () -> Reply
    ) {
        pool.execute(statement, parameters, isRepeatable: true) { [server] result in
            let answer: Result<Reply, WireError> = result.answer { rows throws(DatabaseError) in
                switch try rows.text(0, 0) {
                case "done": .success(done())
                case "unknown-device": .failure(.noSuchDevice)
                default: .failure(.deviceRevoked)
                }
            }
            session.accountChangeFinished(request, answer)
            if statement.name == Self.revoke.name { server.sessionsMustEnd() }
        }
    }
}
