import Dispatch
import EventLoop
import Foundation
import Synchronization
import Wire

@testable import IeumClient

/// A server on a real socket, on a thread of its own, that says what a script tells it to: the first connection plays the
/// first script, and so on; those after the last play the last.
final class Peer: Sendable {
    enum Step: Sendable {
        /// Send bytes.
        case say([UInt8])
        /// Wait for a line that begins like this; others are recorded and passed over.
        case hear(String)
        /// Let time pass: for a slow way, which is nothing but time.
        case pause(Duration)
        /// Close when all is sent.
        case close

        static func say(_ text: String) -> Step { .say(Array(text.utf8)) }
    }

    /// Where it listens.
    let address: ServerAddress
    private let shared: Shared

    /// What its thread and the test both look at.
    fileprivate final class Shared: Sendable {
        let heard = Mutex<[[String]]>([])
        let port = Mutex<UInt16>(0)
        let remote = Mutex<EventLoop.Remote?>(nil)
        let isStopped = Mutex(false)
    }

    init(_ scripts: [Step]...) {
        let shared = Shared()
        let isReady = DispatchSemaphore(value: 0)
        Thread {
            guard let loop = try? EventLoop() else { return _ = isReady.signal() }
            var players: [Player] = []
            let listener = try? Listener(on: loop, host: "127.0.0.1", port: 0) { socket in
                let index = shared.heard.withLock { lines in
                    lines.append([])
                    return lines.count - 1
                }
                let script = scripts.isEmpty ? [] : scripts[min(index, scripts.count - 1)]
                let connection = Connection(on: loop, socket: socket)
                players.append(Player(connection, script, index: index, shared: shared, on: loop))
            }
            shared.port.withLock { $0 = listener?.port ?? 0 }
            shared.remote.withLock { $0 = loop.remote }
            isReady.signal()
            _ = loop.run(until: { shared.isStopped.withLock { $0 } }, timeout: .seconds(600))
            listener?.close()
            // Each is its connection's delegate, which keeps it until the end.
            for player in players { player.close() }
            _ = loop.run(until: { players.allSatisfy(\.isOver) }, timeout: .seconds(10))
        }.start()
        isReady.wait()
        self.shared = shared
        address = ServerAddress(host: "127.0.0.1", port: shared.port.withLock { $0 })
    }

    deinit {
        stop()
    }

    /// The lines that each connection sent.
    var heard: [[String]] { shared.heard.withLock { $0 } }

    /// Ends all connections.
    func stop() {
        shared.isStopped.withLock { $0 = true }
        _ = shared.remote.withLock { $0?.post {} }
    }
}

private final class Player: ConnectionDelegate {
    private let connection: Connection
    private var script: ArraySlice<Peer.Step>
    private let index: Int
    private let shared: Peer.Shared
    private let loop: EventLoop
    private var timer: EventLoop.Timer?
    private(set) var isOver = false

    init(_ connection: Connection, _ script: [Peer.Step], index: Int, shared: Peer.Shared, on loop: EventLoop) {
        self.loop = loop
        self.connection = connection
        self.script = script[...]
        self.index = index
        self.shared = shared
        connection.start(delegate: self)
        play()
    }

    func close() { connection.close() }

    private func play() {
        while let step = script.first {
            switch step {
            case .say(let bytes): connection.write(bytes)
            case .hear: return
            case .pause(let time):
                script.removeFirst()
                timer = EventLoop.Timer(on: loop, after: time) { [unowned self] in self.play() }
                return
            case .close: connection.closeAfterFlush(within: .seconds(30))
            }
            script.removeFirst()
        }
    }

    func lineReceived(_ line: Span<UInt8>, on connection: Connection) {
        let text = line.withUnsafeBufferPointer { String(decoding: $0, as: UTF8.self) }
        shared.heard.withLock { $0[index].append(text) }
        guard case .hear(let start)? = script.first, text.hasPrefix(start) else { return }
        script.removeFirst()
        play()
    }

    func lineTooLong(on connection: Connection) {}
    func outputDrained(on connection: Connection) {}
    func inputEnded(on connection: Connection, unterminatedBytes: Int) { connection.close() }
    func ended(_ reason: Connection.EndReason, on connection: Connection) { isOver = true }
}

/// Ready-made lines of a server.
enum Said {
    static let epoch = UUID(uuidString: "6c1e0000-0000-4000-8000-000000000001") ?? UUID()
    static let otherEpoch = UUID(uuidString: "6c1e0000-0000-4000-8000-000000000002") ?? UUID()
    static let token = newToken()

    /// A token of a player and a device of their own.
    static func newToken() -> Token {
        guard let token = Token(player: PlayerID(UUID()), device: DeviceID(UUID()), secret: Array(0..<32)) else {
            preconditionFailure("32 bytes are a secret")
        }
        return token
    }

    static func greeting(version: Int = 1, epoch: UUID = Said.epoch) -> [UInt8] {
        let greeting = Greeting(
            protocolVersion: version, server: "0.1.0", epoch: epoch, maxLineBytes: 1_048_576, maxStateBytes: 1_000_000,
            time: .now)
        return line { greeting.print(into: &$0) }
    }

    static func signIn(_ token: Token = Said.token, revision: Revision = 0, isNew: Bool = false) -> [UInt8] {
        let signIn = SignIn(player: token.player, device: token.device, token: isNew ? token : nil, revision: revision)
        return line { signIn.print(into: &$0) }
    }

    static func receipt(
        _ outcome: Outcome, first: Outcome? = nil, _ revision: Revision, rival: Revision? = nil,
        head: PushReceipt.Head? = nil
    ) -> [UInt8] {
        let receipt = PushReceipt(
            outcome: outcome, first: first, revision: revision, stamp: stamp, rival: rival, head: head)
        return line { receipt.print(into: &$0) }
    }

    static let stamp = Timestamp(clamping: 1_790_000_000_000_000)

    static func game(_ key: GameKey, _ revision: Revision, _ state: String?) -> [UInt8] {
        let header = GameHeader(revision: revision, saved: stamp, stamp: stamp, device: token.device, schema: 0)
        let version = GameVersion(game: key, header: header, state: state.map { Array($0.utf8) })
        return line { version.print(into: &$0) }
    }

    static func line(_ print: (inout [UInt8]) -> Void) -> [UInt8] {
        var bytes: [UInt8] = []
        print(&bytes)
        return bytes
    }
}

/// A folder that goes with the value.
final class TemporaryFolder {
    let path: String

    init() throws {
        path = FileManager.default.temporaryDirectory.appendingPathComponent("ieum-\(UUID())").path
        try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(atPath: path)
    }

    /// A home inside it, with an identity for a server.
    func home(at server: ServerAddress, token: Token = Said.token) throws -> DeviceHome {
        let home = DeviceHome(path: path + "/home")
        _ = try home.enroll(isReplacing: false, now: .now) {
            Identity(server: server, deviceName: "phone", token: token)
        }
        return home
    }
}
