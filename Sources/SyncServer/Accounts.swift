import Foundation
import Postgres
import Wire

/// Signs players and devices up and in, and pairs devices. `Accounts+Devices.swift` changes them.
///
/// Secrets reach PostgreSQL only as their SHA-256, and are compared there. Ids are made here, so that a sign-up
/// whose answer was lost on its way from the database can be repeated without making a second player.
final class Accounts {
    /// The key finds the device; what it must know is compared there, and no hash leaves the database.
    private static let login = Statement(
        "login", "SELECT last_revision, is_revoked, is_current, generation FROM find_device($1, $2, $3)",
        parameterTypes: [.uuid, .uuid, .bytea])
    private static let beginToken = Statement(
        "begin-token", "SELECT begin_token($1, $2, $3)", parameterTypes: [.uuid, .uuid, .bytea])
    private static let register = Statement(
        "register", "SELECT register_player($1, $2, $3, $4)", parameterTypes: [.uuid, .uuid, .text, .bytea])
    private static let registerByInvite = Statement(
        "register-by-invite", "SELECT register_player_by_invite($5, $6, $1, $2, $3, $4)",
        parameterTypes: [.uuid, .uuid, .text, .bytea, .text, .bytea])
    private static let createCode = Statement(
        "create-pairing-code", "SELECT is_valid, until FROM create_pairing_code($1, $2, $3, $4)",
        parameterTypes: [.uuid, .uuid, .text, .bytea])
    private static let redeemCode = Statement(
        "redeem-pairing-code", "SELECT * FROM redeem_pairing_code($1, $2, $3, $4, $5)",
        parameterTypes: [.text, .bytea, .uuid, .text, .bytea])
    /// How often a locator that is taken is replaced by another.
    private static let maxLocatorTries = 8

    // The server owns its accounts and outlives them.
    unowned let server: SyncServer
    let pool: DatabasePool

    init(server: SyncServer, pool: DatabasePool) {
        self.server = server
        self.pool = pool
    }

    /// Who a token says that somebody is, as the database is asked.
    ///
    /// The secret itself is not in it: while a request waits, it is in nobody's memory.
    private struct Claim {
        let player: PlayerID
        let device: DeviceID
        /// Both, and the secret's digest.
        let parameters: ParameterList

        init(_ token: Token) {
            (player, device) = (token.player, token.device)
            var parameters = ParameterList()
            parameters.append(token.player.uuid)
            parameters.append(token.device.uuid)
            parameters.append(Secrets.sha256(token.secret))
            self.parameters = parameters
        }
    }

    /// What a look at a token found.
    private enum Finding {
        case valid(SignIn, generation: Int32)
        /// The token waits for this first login.
        case isNext
        case refused(WireError)
    }

    /// `LOGIN`
    func signIn(_ token: Token, _ request: RequestID, _ session: ClientSession) {
        signIn(Claim(token), request, session, mayBegin: true)
    }

    private func signIn(_ claim: Claim, _ request: RequestID, _ session: ClientSession, mayBegin: Bool) {
        pool.execute(Self.login, claim.parameters, isRepeatable: true, isStrangers: true) { [weak self] result in
            let finding: Result<Finding, WireError> = result.answer { rows throws(DatabaseError) in
                .success(try Self.look(rows, claim))
            }
            switch finding {
            case .success(.valid(let signIn, let generation)):
                session.signInFinished(request, .success(signIn), tokenGeneration: generation)
            case .success(.isNext) where mayBegin: self?.begin(claim, request, session)
            // Another took its place in between.
            case .success(.isNext): session.signInFinished(request, .failure(.loginFailed))
            case .success(.refused(let error)), .failure(let error): session.signInFinished(request, .failure(error))
            }
        }
    }

    private static func look(_ rows: QueryResult, _ claim: Claim) throws(DatabaseError) -> Finding {
        guard rows.rowCount == 1 else { return .refused(.loginFailed) }
        guard try !rows.bool(0, 1) else { return .refused(.deviceRevoked) }
        guard try rows.bool(0, 2) else { return .isNext }
        let signIn = SignIn(player: claim.player, device: claim.device, revision: try rows.int8(0, 0))
        return .valid(signIn, generation: try rows.int4(0, 3))
    }

    /// The first login with a token that `ROTATE` gave: it takes the place of the one before, whose sessions end.
    ///
    /// Then the device is looked up once more, whatever came out: the token may have been begun by a call whose answer was
    /// lost, or by another connection.
    private func begin(_ claim: Claim, _ request: RequestID, _ session: ClientSession) {
        pool.execute(Self.beginToken, claim.parameters, isRepeatable: true, isStrangers: true) { [weak self] result in
            if case .failure(let error) = result {
                return session.signInFinished(request, .failure(error.wireError))
            }
            guard let self else { return }
            server.log(.info, "token-rotated", ["player": claim.player, "device": claim.device])
            server.sessionsMustEnd()
            signIn(claim, request, session, mayBegin: false)
        }
    }

    /// `REGISTER`
    func register(device name: String?, invite: InviteCode?, _ request: RequestID, _ session: ClientSession) {
        let registration = server.configuration.registration
        if registration == .closed { return session.signInFinished(request, .failure(.registrationClosed)) }
        if registration == .invite, invite == nil { return session.signInFinished(request, .failure(.inviteRequired)) }
        guard let token = newToken(of: PlayerID(UUID())) else {
            return session.signInFinished(request, .failure(.internalError()))
        }
        var parameters = ParameterList()
        parameters.append(token.player.uuid)
        parameters.append(token.device.uuid)
        parameters.append(name ?? "device")
        parameters.append(Secrets.sha256(token.secret))
        // Where anyone may register, an invite is not used up.
        let redeemed = registration == .invite ? invite : nil
        if let redeemed {
            parameters.append(redeemed.locator)
            parameters.append(Secrets.sha256(redeemed.canonical))
        }
        let statement = redeemed == nil ? Self.register : Self.registerByInvite
        pool.execute(statement, parameters, isRepeatable: true, isStrangers: true) { [server] result in
            session.signInFinished(
                request,
                result.answer { rows throws(DatabaseError) in
                    if let redeemed {
                        guard try rows.bool(0, 0) else { return .failure(.inviteInvalid) }
                        server.log(.info, "invite-redeemed", ["invite": redeemed.locator, "player": token.player])
                    }
                    return .success(SignIn(player: token.player, device: token.device, token: token, revision: 0))
                })
        }
    }

    /// `PAIR`
    func createPairingCode(
        of player: PlayerID, device: DeviceID, _ request: RequestID, _ session: ClientSession,
        triesLeft: Int = maxLocatorTries
    ) {
        guard triesLeft > 0, let code = (try? Secrets.randomBytes(5)).flatMap(PairingCode.init(bytes:)) else {
            return session.pairingFinished(request, .failure(.busy(retryAfter: .seconds(5))))
        }
        var parameters = ParameterList()
        parameters.append(player.uuid)
        parameters.append(device.uuid)
        parameters.append(code.locator)
        parameters.append(Secrets.sha256(code.canonical))
        pool.execute(Self.createCode, parameters, isRepeatable: true) { [weak self] result in
            // NULL: the locator names another code that still holds.
            if case .success(let rows) = result, rows.rowCount == 1, (try? rows.bool(0, 0)) == true,
                (try? rows.isNull(0, 1)) == true
            {
                self?.createPairingCode(of: player, device: device, request, session, triesLeft: triesLeft - 1)
                return
            }
            session.pairingFinished(
                request,
                result.answer { rows throws(DatabaseError) in
                    guard try rows.bool(0, 0) else { return .failure(.deviceRevoked) }
                    let expires = Timestamp(clamping: try rows.microsecondsSince1970(0, 1))
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
        pool.execute(Self.redeemCode, parameters, isRepeatable: false, isStrangers: true) { result in
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
