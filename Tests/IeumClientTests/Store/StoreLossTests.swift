import CSQLite
import Foundation
import TestSupport
import Testing
import Wire

@testable import IeumClient

@Suite("What a store's file has lost")
struct StoreLossTests {
    private let folder: TestFolder
    private let url: URL

    init() throws {
        folder = try TestFolder("store-loss")
        url = URL(fileURLWithPath: folder.path + "/games.sqlite")
    }

    private func game(_ id: Int, _ row: Int = 0) -> WordGame {
        WordGame(
            id: "\(id)", timestamp: Date(timeIntervalSinceReferenceDate: Double(id)), answer: "사람", currentRow: row)
    }

    private func path(_ suffix: String) -> String { url.path + suffix }

    private func data(_ suffix: String) throws -> Data { try Data(contentsOf: URL(fileURLWithPath: path(suffix))) }

    private func write(_ data: Data, _ suffix: String) throws { try data.write(to: URL(fileURLWithPath: path(suffix))) }

    private func remove(_ suffix: String) { try? FileManager.default.removeItem(atPath: path(suffix)) }

    /// The files of a process that was killed: ten games in the file, ten more in its log.
    private func killed() throws -> (file: Data, log: Data) {
        let store = try GameStore(at: url)
        try store.save((0..<10).map { game($0) })
        try store.write { _ in }
        try store.checkpoint()
        try store.save((10..<20).map { game($0) })
        return (try data(""), try data("-wal"))
    }

    /// Puts files in place of those that closing has tidied.
    private func put(_ file: Data?, log: Data?) throws {
        for suffix in ["", "-wal", "-shm"] { remove(suffix) }
        if let file { try write(file, "") }
        if let log { try write(log, "-wal") }
    }

    @Test("a first page of garbage is ours to set aside where anything says that the file was ours")
    func garbageFirst() throws {
        try GameStore(at: url).save((0..<40).map { game($0) })
        var bytes = [UInt8](try data(""))
        for index in 0..<4_096 { bytes[index] = UInt8(truncatingIfNeeded: index &* 31 &+ 7) }
        try write(Data(bytes), "")
        // Beside the mark.
        let store = try GameStore(at: url)
        #expect(store.damage?.extent == .wholeFile)
        #expect(try Data(contentsOf: try #require(store.damagedCopy)) == Data(bytes))
        #expect(try store.count(WordGame.self) == 0)
        // Alone: by what is further in.
        let alone = URL(fileURLWithPath: folder.path + "/alone.sqlite")
        try Data(bytes).write(to: alone)
        #expect(try GameStore(at: alone).damage?.extent == .wholeFile)
        // Alone, with nothing of ours in it.
        let stranger = URL(fileURLWithPath: folder.path + "/stranger")
        let noise = Data(bytes[..<4_096])
        try noise.write(to: stranger)
        #expect(#expect(throws: StoreError.self) { try GameStore(at: stranger) }?.kind == .foreign)
        #expect(try Data(contentsOf: stranger) == noise)
        #expect(
            try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { $0.hasPrefix("stranger") } == [
                "stranger"
            ])
    }

    @Test("a note of damage that was met is enough for the file to be ours")
    func noted() throws {
        do { try GameStore(at: url).save(game(1)) }
        try write(Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }), "")
        remove("-mark")
        #expect(#expect(throws: StoreError.self) { try GameStore(at: url) }?.kind == .foreign)
        StoreFile(path: url.path).suspectDamage()
        #expect(try GameStore(at: url).damage?.extent == .wholeFile)
        #expect(try GameStore(at: url).damage == nil)
    }

    @Test("a write-ahead log of ours is enough, too")
    func ownLog() throws {
        // The first page is in the log of a store that was just made.
        let store = try GameStore(at: url)
        try store.save(game(1))
        let log = try data("-wal")
        try put(Data((0..<20_000).map { UInt8(truncatingIfNeeded: $0 &* 7 &+ 1) }), log: log)
        remove("-mark")
        #expect(try GameStore(at: url).damage?.extent == .wholeFile)
        withExtendedLifetime(store) {}
    }

    @Test("another program's database is left as it is, beside our mark too, and a damaged one")
    func foreignBesideMark() throws {
        do { try GameStore(at: url).save(game(1)) }
        remove("")
        let other = try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
        try other.script(
            "PRAGMA application_id = 77; CREATE TABLE recipes (name TEXT); INSERT INTO recipes VALUES ('soup')")
        var before = try data("")
        #expect(#expect(throws: StoreError.self) { try GameStore(at: url) }?.kind == .foreign)
        #expect(try data("") == before)
        // Its catalogue is damaged, and nothing says that it is ours.
        let alone = URL(fileURLWithPath: folder.path + "/recipes")
        for index in 100..<4_096 { before[index] = 0xA5 }
        before.replaceSubrange(68..<72, with: [0, 0, 0, 0])
        try before.write(to: alone)
        #expect(#expect(throws: StoreError.self) { try GameStore(at: alone) }?.kind == .foreign)
        #expect(try Data(contentsOf: alone) == before)
    }

    @Test(
        "a file that was cut to nothing beside its log, or is gone, loses neither the log nor the word",
        arguments: [true, false])
    func emptyBesideLog(isThere: Bool) throws {
        let (_, log) = try killed()
        try put(isThere ? Data() : nil, log: log)
        let store = try GameStore(at: url)
        #expect(store.damage?.extent == .wholeFile)
        let copy = try #require(store.damagedCopy)
        #expect(try Data(contentsOf: URL(fileURLWithPath: copy.path + "-wal")) == log)
        #expect(try store.count(WordGame.self) == 0)
        try store.save(game(1))
        #expect(try GameStore(at: url).damage == nil)
    }

    @Test("a file that was cut to nothing without a log is told, too; one that was removed is a new one")
    func empty() throws {
        do { try GameStore(at: url).save(game(1)) }
        try put(Data(), log: nil)
        #expect(try GameStore(at: url).damage?.extent == .wholeFile)
        do { try GameStore(at: url).save(game(1)) }
        try put(nil, log: nil)
        #expect(try GameStore(at: url).damage == nil)
    }

    @Test(
        "a log that is gone, spoiled or cut is told, what the file has stays, and the server's changes come anew",
        arguments: ["gone", "spoiled", "cut", "empty"])
    func lostLog(_ how: String) throws {
        let store = try GameStore(at: url)
        _ = try store.meet(
            SignIn(player: PlayerID(UUID()), device: DeviceID(UUID()), revision: 0), epoch: UUID(), clockOffset: 0,
            offersRefused: false)
        _ = try store.apply(ChangePage(games: [], cursor: 77, hasMore: false), since: 0)
        var (file, log) = try killed()
        switch how {
        case "gone": try put(file, log: nil)
        case "cut": try put(file, log: log.prefix(2_000))
        case "empty": try put(file, log: Data())
        default:
            for index in stride(from: 60, to: log.count, by: 4_120) { log[index] ^= 0xFF }
            try put(file, log: log)
        }
        file = try data("")
        let after = try GameStore(at: url)
        let damage = try #require(after.damage)
        #expect(damage.extent == .lastSaves)
        #expect(damage.message.contains("had 20"))
        #expect(try after.objects(WordGame.self).map(\.id).sorted() == (0..<10).map { "\($0)" })
        #expect(try after.syncPoint().cursor == 0)
        if how == "spoiled" { #expect(try Data(contentsOf: try #require(damage.copy)) == log) }
        // Told once; and change numbers rise on.
        try after.save(game(30))
        let next = try GameStore(at: url)
        #expect(next.damage == nil)
        #expect(try next.count(WordGame.self) == 11)
        withExtendedLifetime(store) {}
    }

    @Test("a file without its mark, and with the mark of another, is opened without a word")
    func noMark() throws {
        do { try GameStore(at: url).save((0..<5).map { game($0) }) }
        let mark = try data("-mark")
        remove("-mark")
        #expect(try GameStore(at: url).damage == nil)
        for suffix in ["", "-wal", "-shm"] { remove(suffix) }
        do { try GameStore(at: url).save(game(1)) }
        try write(mark, "-mark")
        #expect(try GameStore(at: url).damage == nil)
        for bytes in [
            Data(), Data("ieum-mark".utf8), Data(repeating: 0xFF, count: 200), mark.dropLast(3) + Data("x\n".utf8),
        ] {
            try write(bytes, "-mark")
            let store = try GameStore(at: url)
            #expect(store.damage == nil)
            #expect(try store.count(WordGame.self) == 1)
        }
    }

    /// Those of formats 1 and 2, which differ in their indexes.
    private static let oldTables = """
        PRAGMA journal_mode = WAL;
        CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
        CREATE TABLE games (
            collection TEXT NOT NULL, id TEXT NOT NULL, state BLOB, timestamp INTEGER NOT NULL,
            schema INTEGER NOT NULL, saved INTEGER NOT NULL, stamp INTEGER, base INTEGER, device BLOB,
            unsent INTEGER NOT NULL, change INTEGER NOT NULL, PRIMARY KEY (collection, id));
        """

    @Test("a store of format 2 is brought up, with all that was in it, and watched from any change on")
    func formatTwo() throws {
        let size = 40
        do {
            let old = try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            try old.script(
                """
                \(Self.oldTables)
                CREATE INDEX games_latest ON games (collection, timestamp, id) WHERE state IS NOT NULL;
                CREATE INDEX games_changed ON games (change, collection);
                CREATE INDEX games_unsent ON games (unsent) WHERE unsent <> 0;
                \(SyncTables.schema)
                INSERT INTO meta (key, value) VALUES ('schema_version', 0), ('\(StoreFile.storeKey)', '\(UUID())');
                PRAGMA application_id = 1229280589; PRAGMA user_version = 2;
                """)
            for number in 1...size {
                try old.run(
                    "INSERT INTO games VALUES ('handle.game', ?, ?, ?, 0, 5, 6, 7, x'08', 1, ?)", .text("\(number)"),
                    .bytes(try StateCoder.encode(game(number))), .integer(Int64(number) * 1_000_000),
                    .integer(Int64(number)))
            }
        }
        let store = try GameStore(at: url)
        #expect(store.damage == nil)
        #expect(try store.latest(WordGame.self) == game(size))
        #expect(try store.syncPoint().waiting == size)
        for since in 0...Int64(size) {
            let changes = try store.changes(of: WordGame.self, since: since).rows.map(\.change).sorted()
            #expect(changes == Array((since + 1)..<Int64(size + 1)))
        }
        try store.save(game(size + 1))
        #expect(try store.changes(of: WordGame.self, since: Int64(size)).rows.map(\.change) == [Int64(size) + 1])
        #expect(try GameStore(at: url).count(WordGame.self) == size + 1)
    }

    @Test("a store of format 1 is brought up, with all that was in it")
    func formatOne() throws {
        do {
            let old = try SQLiteConnection(path: url.path, flags: SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE)
            try old.script(
                """
                \(Self.oldTables)
                CREATE INDEX games_latest ON games (collection, timestamp, id, change) WHERE state IS NOT NULL;
                CREATE INDEX games_changed ON games (collection, change);
                CREATE INDEX games_unsent ON games (saved, unsent) WHERE unsent IN (1, 2);
                INSERT INTO meta (key, value) VALUES ('change', 9), ('schema_version', 0);
                PRAGMA application_id = 1229280589; PRAGMA user_version = 1;
                """)
            try old.run(
                "INSERT INTO games VALUES ('handle.game', '4', ?, 4000000, 0, 5, NULL, NULL, NULL, 1, 9)",
                .bytes(try StateCoder.encode(game(4))))
        }
        let store = try GameStore(at: url)
        #expect(store.damage == nil)
        #expect(try store.latest(WordGame.self) == game(4))
        #expect(try store.syncPoint().waiting == 1)
        try store.save(game(5))
        #expect(try store.changes(of: WordGame.collection).map(\.change) == [9, 10])
        #expect(try GameStore(at: url).count(WordGame.self) == 2)
    }

    @Test("the file and what belongs to it are the user's alone")
    func modes() throws {
        let store = try GameStore(at: url)
        try store.save(game(1))
        for suffix in ["", "-wal", "-shm", "-mark"] {
            let mode = try FileManager.default.attributesOfItem(atPath: path(suffix))[.posixPermissions] as? Int
            #expect(mode == 0o600, "\(suffix)")
        }
        withExtendedLifetime(store) {}
    }

    @Test("once nothing is saved for a while, the file itself has every save")
    func idleCheckpoint() throws {
        let store = try GameStore(at: url)
        try store.save((0..<3).map { game($0) })
        let copy = URL(fileURLWithPath: folder.path + "/copy.sqlite")
        func copied() throws -> Int64 {
            // By another process: closing the file here would drop the store's locks on it.
            let copying = try Process.run(URL(fileURLWithPath: "/bin/cp"), arguments: [url.path, copy.path])
            copying.waitUntilExit()
            let file = try SQLiteConnection(path: copy.path, flags: SQLITE_OPEN_READWRITE)
            guard try file.integer("SELECT count(*) FROM sqlite_master WHERE name = 'games'") == 1 else { return 0 }
            return try file.integer("SELECT count(*) FROM games") ?? 0
        }
        let deadline = ContinuousClock.now + .seconds(60)
        while try copied() < 3, .now < deadline { usleep(50_000) }
        #expect(try copied() == 3)
        withExtendedLifetime(store) {}
    }

    @Test("a large file is looked through later, and damage is for the next opening")
    func inspected() throws {
        do { try GameStore(at: url).save((0..<600).map { game($0) }) }
        var bytes = try data("")
        #expect(bytes.count > Int(StoreFile.checkedBytes))
        for index in (bytes.count / 2)..<(bytes.count / 2 + 65_536) { bytes[index] = 0xA5 }
        try write(bytes, "")
        let store = try GameStore(at: url)
        #expect(store.damage == nil)
        try store.inspect()
        #expect(try GameStore(at: url).damage?.extent == .wholeFile)
    }
}
