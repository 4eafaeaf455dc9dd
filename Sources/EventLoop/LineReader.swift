import Glibc

/// Cuts a stream of bytes into lines, however it was split, in linear time and bounded memory.
///
/// A line ends with `\n`; one `\r` right before it belongs to the terminator. A line that lies whole in a chunk is told
/// as a part of that chunk; only a line that spans chunks is copied, each byte once (by the array's doubling, twice).
/// A line longer than the limit is told once, as soon as that is certain, and the rest of it is dropped as it comes.
struct LineReader {
    enum Event {
        /// A line that lies in the chunk; valid as long as that is.
        case line(UnsafeRawBufferPointer)
        /// A line gathered from several chunks.
        case gathered([UInt8])
        case tooLong
    }

    /// The most bytes of a line, its terminator not counted.
    var maxLineBytes: Int
    private var partial: [UInt8] = []
    private var isDiscarding = false

    init(maxLineBytes: Int) {
        self.maxLineBytes = maxLineBytes
    }

    /// How many bytes of an unfinished line are kept; none of one that was told too long.
    var unterminatedBytes: Int { partial.count }

    /// Whether the beginning of a line was read and not its end, be it kept or too long to be kept.
    var isInsideLine: Bool { isDiscarding || !partial.isEmpty }

    /// Takes the next event from a chunk, from the offset on, and moves the offset behind what it has taken.
    /// - Returns: nil when the chunk is used up.
    mutating func next(in chunk: UnsafeRawBufferPointer, at offset: inout Int) -> Event? {
        while offset < chunk.count {
            let rest = UnsafeRawBufferPointer(rebasing: chunk[offset...])
            guard let length = rest.firstNewline else {
                offset = chunk.count
                return keep(rest) ? nil : .tooLong
            }
            offset += length + 1
            if isDiscarding {
                isDiscarding = false
                continue
            }
            return finish(UnsafeRawBufferPointer(rebasing: rest[..<length]))
        }
        return nil
    }

    private mutating func finish(_ tail: UnsafeRawBufferPointer) -> Event {
        if partial.isEmpty {
            let line = tail.droppingCarriageReturn
            return line.count > maxLineBytes ? .tooLong : .line(line)
        }
        // The array goes with the event: an idle connection keeps no memory for lines.
        var line = partial
        partial = []
        line.append(contentsOf: tail)
        if line.last == carriageReturn { line.removeLast() }
        return line.count > maxLineBytes ? .tooLong : .gathered(line)
    }

    /// Keeps the beginning of a line for later.
    /// - Returns: false when the line has just turned out to be too long.
    private mutating func keep(_ bytes: UnsafeRawBufferPointer) -> Bool {
        if isDiscarding { return true }
        let count = partial.count + bytes.count
        // One byte more may be the terminator's `\r`.
        if count > maxLineBytes, count > maxLineBytes + 1 || bytes.last != carriageReturn {
            partial = []
            isDiscarding = true
            return false
        }
        partial.append(contentsOf: bytes)
        return true
    }
}

private let carriageReturn = UInt8(ascii: "\r")

extension UnsafeRawBufferPointer {
    fileprivate var firstNewline: Int? {
        guard let start = baseAddress, let found = memchr(start, Int32(UInt8(ascii: "\n")), count) else { return nil }
        return UnsafeRawPointer(found) - start
    }

    fileprivate var droppingCarriageReturn: UnsafeRawBufferPointer {
        last == carriageReturn ? UnsafeRawBufferPointer(rebasing: self[..<(count - 1)]) : self
    }
}
