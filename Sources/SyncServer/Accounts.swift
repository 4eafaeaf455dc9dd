import Foundation
import Postgres
import Wire

/// Signs players and devices up and in, and pairs devices.
///
/// Secrets reach PostgreSQL only as their SHA-256. Ids are made here, so that a sign-up whose answer was lost can be
/// repeated without making a second player.
final class Accounts {
    private static let login = Statement(
        "login",
        """
        SELECT p.last_revision, d.revoked IS NOT NULL
          FROM players p JOIN devices d ON d.player_id = p.player_id
         WHERE p.player_id = $1 AND d.device_id = $2 AND d.token_hash = $3
        """, parameterTypes: [.uuid, .uuid, .bytea])
    private static let register = Statement(
        "register", "SELECT register_player($1, $2, $3, $4)", parameterTypes: [.uuid, .uuid, .text, .bytea])
    private static let createCode = Statement(
        "create-pairing-code", "SELECT create_pairing_code($1, $2, $3)", parameterTypes: [.uuid, .text, .bytea])
    private static let redeemCode = Statement(
        "redeem-pairing-code", "SELECT * FROM redeem_pairing_code($1, $2, $3, $4, $5)",
        parameterTypes: [.text, .bytea, .uuid, .text, .bytea])
    /// How often a locator that is taken is replaced by another.
    private static let maxLocatorTries = 8

    private let pool: DatabasePool
    private let isRegistrationOpen: Bool

    init(pool: DatabasePool, isRegistrationOpen: Bool) {
        self.pool = pool
        self.isRegistrationOpen = isRegistrationOpen
    }

    /// `LOGIN`
    func signIn(_ token: Token, _ request: RequestID, _ session: ClientSession) {
        var parameters = ParameterList()
        parameters.append(token.player.uuid)
        parameters.append(token.device.uuid)
        parameters.append(Secrets.sha256(token.secret))
        pool.execute(Self.login, parameters, isRepeatable: true) { result in
            session.signInFinished(
                request,
                result.answer { rows throws(DatabaseError) in
                    guard rows.rowCount == 1 else { return .failure(.loginFailed) }
                    guard try !rows.bool(0, 1) else { return .failure(.deviceRevoked) }
                    return .success(SignIn(player: token.player, device: token.device, revision: try rows.int8(0, 0)))
                })
        }
    }

    /// `REGISTER`
    func register(device name: String?, _ request: RequestID, _ session: ClientSession) {
        guard isRegistrationOpen else { return session.signInFinished(request, .failure(.registrationClosed)) }
        guard let token = newToken(of: PlayerID(UUID())) else {
            return session.signInFinished(request, .failure(.internalError()))
        }
        var parameters = ParameterList()
        parameters.append(token.player.uuid)
        parameters.append(token.device.uuid)
        parameters.append(name ?? "device")
        parameters.append(Secrets.sha256(token.secret))
        pool.execute(Self.register, parameters, isRepeatable: true) { result in
            session.signInFinished(
                request,
                result.answer { _ throws(DatabaseError) in
                    .success(SignIn(player: token.player, device: token.device, token: token, revision: 0))
                })
        }
    }

    /// `PAIR`
    func createPairingCode(
        of player: PlayerID, _ request: RequestID, _ session: ClientSession, triesLeft: Int = maxLocatorTries
    ) {
        guard triesLeft > 0, let code = (try? Secrets.randomBytes(5)).flatMap(PairingCode.init(bytes:)) else {
            return session.pairingFinished(request, .failure(.busy(retryAfter: .seconds(5))))
        }
        var parameters = ParameterList()
        parameters.append(player.uuid)
        parameters.append(code.locator)
        parameters.append(Secrets.sha256(code.canonical))
        pool.execute(Self.createCode, parameters, isRepeatable: true) { [weak self] result in
            // NULL: the locator names another code that still holds.
            if case .success(let rows) = result, rows.rowCount == 1, (try? rows.isNull(0, 0)) == true {
                self?.createPairingCode(of: player, request, session, triesLeft: triesLeft - 1)
                return
            }
            session.pairingFinished(
                request,
                result.answer { rows throws(DatabaseError) in
                    let expires = Timestamp(clamping: try rows.microsecondsSince1970(0, 0))
                    return .success(PairingOffer(code: code, expires: expires))
                })
        }
    }

    /// `LINK`
    func redeem(_ code: PairingCode, device name: String?, _ request: RequestID, _ session: ClientSession) {
        guard let draft = newToken(of: PlayerID(UUID())) else {
            return session.signInFinished(request, .failure(.internalError()))
        }
        var parameters = ParameterList()
        parameters.append(code.locator)
        parameters.append(Secrets.sha256(code.canonical))
        parameters.append(draft.device.uuid)
        parameters.append(name ?? "device")
        parameters.append(Secrets.sha256(draft.secret))
        // Not repeated: a code that was used up by an answer that was lost is gone.
        pool.execute(Self.redeemCode, parameters, isRepeatable: false) { result in
            session.signInFinished(
                request,
                result.answer { rows throws(DatabaseError) in
                    guard rows.rowCount == 1, try !rows.isNull(0, 0) else { return .failure(.codeInvalid) }
                    let player = PlayerID(try rows.uuid(0, 0))
                    guard let token = Token(player: player, device: draft.device, secret: draft.secret) else {
                        return .failure(.internalError())
                    }
                    return .success(
                        SignIn(player: player, device: draft.device, token: token, revision: try rows.int8(0, 1)))
                })
        }
    }

    private func newToken(of player: PlayerID) -> Token? {
        guard let secret = try? Secrets.randomBytes(Token.secretLength) else { return nil }
        return Token(player: player, device: DeviceID(UUID()), secret: secret)
    }
}

extension Result where Success == QueryResult, Failure == DatabaseError {
    /// Turns rows into an answer; a database error becomes what a client is told.
    func answer<Value>(
        _ read: (QueryResult) throws(DatabaseError) -> Result<Value, WireError>
    ) -> Result<Value, WireError> {
        do throws(DatabaseError) {
            return try read(get())
        } catch {
            return .failure(error.wireError)
        }
    }
}
