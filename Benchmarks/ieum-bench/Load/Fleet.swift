import Wire

/// Connections that do the same thing at once: connect, register, sign in, seed games, watch.
final class Fleet {
    /// The connections in order.
    private(set) var sockets: [LineSocket] = []

    private let conductor: Conductor
    private let daemon: Daemon

    /// Opens connections and reads the daemon's greeting on each.
    init(_ conductor: Conductor, to daemon: Daemon, count: Int) throws {
        self.conductor = conductor
        self.daemon = daemon
        let buffer = ReceiveBuffer()
        // In parts, so that no part overflows the listener's queue.
        for start in stride(from: 0, to: count, by: 100) {
            let part = start..<min(start + 100, count)
            for number in part {
                sockets.append(try LineSocket(conductor, buffer, port: daemon.port, number: number, tls: daemon.tls))
            }
            try exchange("the greeting", on: part) { _ in
                []
            } onLine: { _, line in
                guard line.verb == "IEUM" else { throw BenchError("an odd greeting: \(line.text.prefix(200))") }
                return true
            }
        }
    }

    /// Closes the connections, before the daemon does.
    func close() {
        for socket in sockets { socket.close() }
    }

    /// Sends something on each of some connections and reads until each has had its whole answer.
    /// - Parameters:
    ///   - what: what is waited for, for error messages.
    ///   - part: which connections; all if not given.
    ///   - limit: how long it may take.
    ///   - send: the bytes to send on a connection.
    ///   - onLine: takes a line and says whether it was the last. An `ERR` line never gets there: it is an error.
    func exchange(
        _ what: String, on part: Range<Int>? = nil, atMost limit: Duration = .seconds(60),
        send: (Int) -> [UInt8], onLine: @escaping (Int, ReplyLine) throws -> Bool
    ) throws {
        let part = part ?? sockets.indices
        var missing = part.count
        for index in part {
            var isDone = false
            sockets[index].onLine = { [conductor] bytes in
                let line = ReplyLine(bytes)
                do {
                    guard !isDone, line.verb != "ERR" else {
                        throw BenchError("\(what): the daemon answered \(line.text.prefix(200))")
                    }
                    isDone = try onLine(index, line)
                    if isDone { missing -= 1 }
                } catch {
                    conductor.fail(error)
                }
            }
            let bytes = send(index)
            if !bytes.isEmpty { sockets[index].send(bytes) }
        }
        try conductor.wait(for: "\(what) on \(missing) of \(part.count) connections", atMost: limit) { missing == 0 }
    }

    /// Makes a new player on each connection, which is signed in by that.
    func register() throws -> [Player] {
        var players = [Player?](repeating: nil, count: sockets.count)
        try exchange("the answer to REGISTER") { _ in
            Array("REGISTER device=bench\n".utf8)
        } onLine: { index, line in
            players[index] = Player(id: try line.value("player"), token: try line.value("token"))
            return true
        }
        return players.compactMap { $0 }
    }

    /// Signs a player in on each connection.
    func signIn(_ players: some RandomAccessCollection<Player>) throws {
        let players = Array(players)
        try exchange("the answer to LOGIN") { index in
            Array("LOGIN \(players[index].token)\n".utf8)
        } onLine: { index, line in
            players[index].revision = try line.number("revision")
            return true
        }
    }

    /// Gives each player, signed in on its connection, new games.
    func seedGames(_ players: [Player], count: Int, states: GameStates) throws {
        try exchange("the answers to the first pushes") { index in
            let player = players[index]
            let first = player.games.count
            player.games += (0..<count).map { Player.Game(id: gameID(player: index, game: first + $0)) }
            return (0..<count).flatMap { offset -> [UInt8] in
                let state = states.all[(index + offset) % states.all.count]
                let saved = Timestamp(clamping: player.nextSaved()).description
                return player.games[first + offset].pushPrefix + Array("\(saved) base=0 schema=1 ".utf8) + state
                    + [UInt8(ascii: "\n")]
            }
        } onLine: { index, line in
            let player = players[index]
            guard try line.value("outcome") == "created" else {
                throw BenchError("a first push was not created: \(line.text.prefix(200))")
            }
            player.revision = try line.number("revision")
            guard let game = player.games.firstIndex(where: { $0.revision == 0 }) else { return true }
            player.games[game].revision = player.revision
            return game == player.games.count - 1
        }
    }

    /// Reads each player's heads: which games there are, and at which revision.
    func learnGames(_ players: [Player]) throws {
        try exchange("the games") { index in
            players[index].games = []
            return Array("PULL since=0 limit=1000\n".utf8)
        } onLine: { index, line in
            if line.verb == "END" { return true }
            guard line.verb == "GAME", let id = line.word(1) else {
                throw BenchError("an odd line in a pull: \(line.text.prefix(200))")
            }
            players[index].games.append(Player.Game(id: id, revision: try line.number("revision")))
            return false
        }
    }
}

/// A game's id: a UUID's text made of two numbers.
private func gameID(player: Int, game: Int) -> String {
    func hex(_ number: Int, _ digits: Int) -> String {
        let text = String(number, radix: 16)
        return String(repeating: "0", count: max(0, digits - text.count)) + text
    }
    return "\(hex(player, 8))-0000-4000-8000-\(hex(game, 12))"
}
