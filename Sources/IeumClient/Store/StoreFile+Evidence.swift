import Foundation

extension StoreFile {
    /// What lies at a store's path, as far as that can be told without SQLite.
    enum Found: Hashable {
        /// Nothing, or an empty file that nobody misses.
        case nothing
        /// A database; SQLite will tell more.
        case database
        /// A store that was damaged, and how.
        case damaged(String)
        /// Somebody else's file, and why.
        case foreign(String)
    }

    private static let magic = Array("SQLite format 3\0".utf8)

    /// Looks at the file. One of ours shows by more than its header, which may be what was damaged: by its mark, by its
    /// write-ahead log, by the note of a damage that was met, or by the store's name in a page further in.
    func look(_ mark: StoreMark.Content?) -> Found {
        let logged = Self.size(path + "-wal") ?? 0
        guard let size = Self.size(path), size > 0 else {
            // SQLite would delete the log, in which there may be games.
            if logged > Self.smallestLog {
                return .damaged("it is \(Self.size(path) == nil ? "gone" : "empty"), its log is not")
            }
            if Self.size(path) != nil, let mark, mark.change > 0 { return .damaged("it is empty") }
            return .nothing
        }
        guard !OpenFile.isOpen(path), let head = Self.bytes(path, upTo: 65_536), head.count >= 1 else {
            return .database
        }
        let isDatabase = head.starts(with: Self.magic)
        let id = Self.applicationID(ofPage: head[...])
        if id == Self.applicationID { return isDatabase ? .database : .damaged("its header is") }
        if isDatabase, id == 0 || id == nil { return .database }
        if Self.namesStore(head) { return .damaged("its header is") }
        // Another program's database beside our mark is that program's all the same.
        if isDatabase { return .foreign("it is another program's database") }
        return mark != nil || isSuspected || hasOwnLog
            ? .damaged("its header is") : .foreign("it is no SQLite database")
    }

    /// Whether something besides the header says that the file is a store.
    func isOurs(_ mark: StoreMark.Content?) -> Bool {
        if mark != nil || isSuspected || hasOwnLog { return true }
        guard !OpenFile.isOpen(path), let head = Self.bytes(path, upTo: 65_536) else { return false }
        return Self.namesStore(head)
    }

    /// A log's header, and a frame's header with some of a page.
    private static let smallestLog: Int64 = 32 + 24

    /// Whether the write-ahead log beside the file holds a first page of ours.
    private var hasOwnLog: Bool {
        guard let log = Self.bytes(path + "-wal", upTo: 1 << 20), log.count > 32,
            [0x82, 0x83].contains(log[3]), log[0] == 0x37, log[1] == 0x7F, log[2] == 0x06
        else { return false }
        let pageSize = Self.number(log[8..<12])
        guard (512...65_536).contains(pageSize) else { return false }
        var frame = 32
        while frame + 24 + 100 <= log.count {
            let page = log[(frame + 24)...]
            if Self.number(log[frame..<(frame + 4)]) == 1, Self.applicationID(ofPage: page) == Self.applicationID {
                return true
            }
            frame += 24 + Int(pageSize)
        }
        return false
    }

    /// Whether the name of a store's name is in these bytes.
    private static func namesStore(_ bytes: [UInt8]) -> Bool {
        let key = Array(storeKey.utf8)
        guard bytes.count >= key.count else { return false }
        return (0...(bytes.count - key.count)).contains {
            bytes[$0] == key[0] && bytes[$0..<($0 + key.count)].elementsEqual(key)
        }
    }

    private static func applicationID(ofPage page: ArraySlice<UInt8>) -> Int64? {
        guard page.count >= 72 else { return nil }
        return number(page[(page.startIndex + 68)..<(page.startIndex + 72)])
    }

    private static func number(_ bytes: ArraySlice<UInt8>) -> Int64 { bytes.reduce(0) { $0 << 8 | Int64($1) } }

    private static func size(_ path: String) -> Int64? {
        var status = stat()
        return stat(path, &status) == 0 ? Int64(status.st_size) : nil
    }

    private static func bytes(_ path: String, upTo count: Int) -> [UInt8]? {
        let descriptor = Glibc.open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return nil }
        defer { close(descriptor) }
        return [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
            while filled < count {
                let read = pread(descriptor, buffer.baseAddress.map { $0 + filled }, count - filled, off_t(filled))
                guard read > 0 else { break }
                filled += read
            }
        }
    }
}
