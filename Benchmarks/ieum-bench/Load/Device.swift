import Glibc
import Wire

/// One device that pushes its player's games, one after the other.
final class Device {
    let socket: LineSocket
    let player: Player

    private let states: GameStates
    private var random: SplitMix
    private var game = 0
    private var sentAt: Int64 = 0
    private let line: LineBuffer

    init(socket: LineSocket, player: Player, states: GameStates, seed: UInt64) {
        self.socket = socket
        self.player = player
        self.states = states
        random = SplitMix(seed: seed)
        line = LineBuffer(capacity: 512 + (states.all.map(\.count).max() ?? 0))
    }

    /// Pushes one of the games, chosen at random, as an advance on what the device saw last.
    func sendNext() {
        let number = random.next()
        game = Int(truncatingIfNeeded: (number & 0xFFFF_FFFF) % UInt64(player.games.count))
        line.removeAll()
        line.append(player.games[game].pushPrefix)
        line.append(time: player.nextSaved())
        line.append(Self.base)
        line.append(decimal: player.games[game].revision)
        line.append(Self.schema)
        line.append(states.all[Int(truncatingIfNeeded: (number >> 32) % UInt64(states.all.count))])
        line.append(Self.end)
        sentAt = monotonicNanoseconds()
        socket.send(line.bytes)
    }

    /// Checks the reply to the push.
    /// - Returns: microseconds since the push was sent.
    func takeReply(_ reply: UnsafeBufferPointer<UInt8>) throws -> UInt32 {
        let latency = (monotonicNanoseconds() - sentAt) / 1_000
        guard starts(reply, with: Self.advanced) else {
            throw BenchError("a push was answered \(String(decoding: reply.prefix(200), as: UTF8.self))")
        }
        var revision: Int64 = 0
        var index = Self.advanced.count
        while index < reply.count, index < 64, (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(reply[index]) {
            revision = revision &* 10 &+ Int64(reply[index] - UInt8(ascii: "0"))
            index += 1
        }
        guard revision == player.revision + 1 else {
            throw BenchError("a push got revision \(revision) after \(player.revision)")
        }
        player.revision = revision
        player.games[game].revision = revision
        return UInt32(clamping: latency)
    }

    private static let base = Array(" base=".utf8)
    private static let schema = Array(" schema=1 ".utf8)
    private static let end = [UInt8(ascii: "\n")]
    private static let advanced = Array("OK outcome=advanced revision=".utf8)
}

/// A line that is put together anew for every push, in memory that stays.
final class LineBuffer {
    private let start: UnsafeMutableRawPointer
    private let capacity: Int
    private var count = 0
    /// The minute of the last time that was printed, and its text up to the seconds.
    private var minute: (number: Int64, text: [UInt8]) = (-1, [])

    init(capacity: Int) {
        self.capacity = capacity
        start = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit {
        start.deallocate()
    }

    var bytes: UnsafeRawBufferPointer { UnsafeRawBufferPointer(start: start, count: count) }

    func removeAll() {
        count = 0
    }

    func append(_ bytes: [UInt8]) {
        precondition(bytes.count <= capacity - count, "a push longer than its buffer")
        bytes.withUnsafeBytes {
            (start + count).copyMemory(from: $0.baseAddress ?? UnsafeRawPointer(start), byteCount: $0.count)
        }
        count += bytes.count
    }

    func append(decimal number: Int64) {
        var divisor: Int64 = 1
        while number / divisor >= 10 { divisor *= 10 }
        while divisor > 0 {
            append(digit: number / divisor % 10)
            divisor /= 10
        }
    }

    /// Appends a time in microseconds since 1970; only the seconds are printed anew each time.
    func append(time: Int64) {
        let (number, rest) = time.quotientAndRemainder(dividingBy: 60_000_000)
        if number != minute.number {
            var text: [UInt8] = []
            Timestamp(clamping: number * 60_000_000).print(into: &text)
            minute = (number, Array(text.prefix(17)))
        }
        append(minute.text)
        append(digit: rest / 10_000_000)
        append(digit: rest / 1_000_000 % 10)
        append(Self.point)
        var divisor: Int64 = 100_000
        while divisor > 0 {
            append(digit: rest / divisor % 10)
            divisor /= 10
        }
        append(Self.zone)
    }

    private func append(digit: Int64) {
        precondition(count < capacity, "a push longer than its buffer")
        start.storeBytes(of: UInt8(ascii: "0") &+ UInt8(truncatingIfNeeded: digit), toByteOffset: count, as: UInt8.self)
        count += 1
    }

    private static let point = [UInt8(ascii: ".")]
    private static let zone = [UInt8(ascii: "Z")]
}
