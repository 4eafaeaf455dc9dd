import EventLoop
import Wire

/// Who comes in, and who has been silent, slow or greedy for too long.
extension SyncServer {
    /// A connection came: from a balancer it first says whose it is.
    func accepted(_ socket: consuming ConnectedSocket) {
        let peer = socket.peer
        guard configuration.balancers.contains(where: { $0.contains(peer.host) }) else { return admit(socket) }
        guard sessionCount + prefaces.count < configuration.limits.maxConnections else {
            // Whom it is for is not known: it is closed without a word.
            metrics.refusedConnections += 1
            return
        }
        nextPreface += 1
        let number = nextPreface
        do throws(EventLoopError) {
            prefaces[number] = try ProxyPreface(
                on: loop, socket: socket, timeout: configuration.limits.handshakeTimeout
            ) { [weak self] result in
                guard let self else { return }
                prefaces[number] = nil
                switch consume result {
                case .success(let socket): admit(socket)
                case .failure(let failure):
                    metrics.failedPrefaces += 1
                    log(.debug, "proxy-header-failed", ["peer": peer, "error": failure])
                }
            }
        } catch {
            log(.warning, "accept-failed", ["error": error])
        }
    }

    /// Takes a connection whose peer is known.
    private func admit(_ socket: consuming ConnectedSocket) {
        guard !isDraining else { return }
        let limits = configuration.limits
        var options = Connection.Options()
        // Nobody needs more before signing in, and strangers get no more memory.
        options.maxLineBytes = maxLineBytesOfStrangers
        options.idleTimeout = limits.idleTimeout
        options.writeTimeout = limits.writeTimeout
        options.handshakeTimeout = limits.handshakeTimeout
        let peer = socket.peer
        let security = tls.map { Connection.Security.server($0.context) } ?? .plain
        let connection = Connection(on: loop, socket: socket, options: options, security: security)
        guard sessionCount < limits.maxConnections else { return refuse(connection, .tooManyConnections()) }
        guard addressLimits.enter(peer) else { return refuse(connection, .tooManyConnections(of: "this address")) }
        metrics.accepted += 1
        begin(ClientSession(server: self, connection: connection))
    }

    /// The longest line before a device is signed in, in bytes: a token, a code and a name are far shorter.
    var maxLineBytesOfStrangers: Int { min(configuration.limits.maxLineBytes, 4_096) }

    /// Looks at all sessions: ends those that do not sign in, those whose line does not end, and, when unfinished lines take
    /// more memory than there may be, those with the longest.
    func sweepSessions() {
        let now = loop.now
        var unfinished = 0
        for session in allSessions { unfinished += session.sweep(at: now) }
        unfinishedBytes = unfinished
        playerLimits.sweep()
        let most = configuration.limits.maxPendingBytes
        guard unfinished > most else { return }
        let byLength = allSessions.map { (session: $0, bytes: $0.unfinishedBytes) }.sorted { $0.bytes > $1.bytes }
        for (session, bytes) in byLength {
            guard unfinished > most / 2 else { break }
            session.hangUp(.busy())
            unfinished -= bytes
        }
    }

    /// How often ``sweepSessions()`` looks: often enough that no limit is passed by more than a quarter of it.
    var sweepInterval: Duration {
        let limits = configuration.limits
        return min(max(min(limits.loginTimeout, limits.lineTimeout) / 4, .milliseconds(20)), .seconds(1))
    }
}
