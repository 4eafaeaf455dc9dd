import Foundation
import Wire

/// The few bytes beside a store's file, `<file>-mark`, that tell what the file must hold: its name, and how many changes.
///
/// SQLite cannot know of what is gone without a trace: a write-ahead log that was removed or spoiled, a file that was cut to
/// nothing or replaced by an older copy. Each looks as if the last commits had never been made. The mark is written after
/// each commit, so it is never ahead of the file unless the file has lost something. It is not flushed to the disk: after a
/// power cut it may be behind, and then says nothing.
///
/// Its lock (`flock`) is held while a store is opened, so that two processes do not set the same file aside.
final class StoreMark: Sendable {
    /// What the mark tells.
    struct Content: Hashable {
        /// The store's own name, as in its `meta`.
        var store: UUID
        /// The number of the last change that was committed.
        var change: Int64
    }

    static let suffix = "-mark"
    private static let title = "ieum-mark 1 "
    private let descriptor: Int32

    /// Opens the mark of a file; nil: there is none, or it cannot be opened.
    /// - Parameter makes: whether to make one.
    init?(of path: String, makes: Bool) {
        descriptor = open(path + Self.suffix, O_RDWR | O_CLOEXEC | (makes ? O_CREAT : 0), 0o600)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Waits for the others who are opening the store.
    func lock() {
        while flock(descriptor, LOCK_EX) != 0, errno == EINTR {}
    }

    func unlock() { _ = flock(descriptor, LOCK_UN) }

    /// What it tells; nil: nothing yet, or nothing that can be read.
    func read() -> Content? {
        var bytes = [UInt8](repeating: 0, count: Self.title.utf8.count + 36 + 1 + 19 + 1)
        let count = bytes.withUnsafeMutableBytes { pread(descriptor, $0.baseAddress, $0.count, 0) }
        guard count == bytes.count, bytes.last == UInt8(ascii: "\n") else { return nil }
        let words = String(decoding: bytes.dropLast(), as: UTF8.self).split(
            separator: " ", omittingEmptySubsequences: false)
        guard words.count == 4, Self.title == "\(words[0]) \(words[1]) ",
            let store = UUID(uuidString: String(words[2])),
            let change = Int64(words[3]), change >= 0
        else { return nil }
        return Content(store: store, change: change)
    }

    /// Tells something else from now on.
    func write(_ content: Content) {
        var bytes = Array(Self.title.utf8)
        DeviceID(content.store).print(into: &bytes)
        let number = String(max(content.change, 0))
        bytes.append(UInt8(ascii: " "))
        bytes.append(contentsOf: repeatElement(UInt8(ascii: "0"), count: 19 - number.utf8.count))
        bytes.append(contentsOf: number.utf8)
        bytes.append(UInt8(ascii: "\n"))
        // A mark that cannot be written is behind, which does no harm.
        bytes.withUnsafeMutableBytes { _ = pwrite(descriptor, $0.baseAddress, $0.count, 0) }
    }
}
