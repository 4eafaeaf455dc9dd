import Foundation
import TestSupport
import Testing

/// A program on a terminal of its own (a pty), with a player before it: types, looks, and waits for what it sees.
final class PlayTerminal: Sendable {
    /// The program's process.
    let process: pid_t
    /// What the player sees.
    let screen: Shared<ScreenModel>
    /// All that the program has sent.
    let sent = Shared<[UInt8]>([])
    /// The terminal's settings before the program began.
    let before: Settings
    private let main: Int32
    private let line: Int32
    private let isHungUp = Shared(false)
    private let isStalled = Shared(false)
    /// `TIOCSPTLCK` and `TIOCGPTN`.
    private static let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)
    private let status = Shared<Int32?>(nil)

    /// What `stty` shows; two are equal when nothing differs.
    struct Settings: Equatable {
        var flags: [tcflag_t]
        var characters: [UInt8]

        init(_ descriptor: Int32) throws {
            var settings = termios()
            guard tcgetattr(descriptor, &settings) == 0 else { throw WaitError(description: "tcgetattr: \(errno)") }
            flags = [settings.c_iflag, settings.c_oflag, settings.c_cflag, settings.c_lflag]
            characters = withUnsafeBytes(of: settings.c_cc) { Array($0) }
        }
    }

    /// Starts `ieum play` for a home.
    convenience init(
        _ arguments: [String] = ["--day", "273"], home: String, environment: [String: String] = [:],
        width: Int = 80, height: Int = 24
    ) throws {
        let environment = ["IEUM_HOME": home].merging(environment) { $1 }
        try self.init(
            program: Programs.url("ieum").path, ["play"] + arguments, environment: environment, width: width,
            height: height)
    }

    /// Starts any program.
    init(
        program: String, _ arguments: [String], environment: [String: String], width: Int = 80, height: Int = 24
    ) throws {
        // Source: ioctl_tty(2), for what the C library's calls need macros that Swift does not see.
        main = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC)
        var (isLocked, number): (Int32, UInt32) = (0, 0)
        guard main >= 0, ioctl(main, Self.setLock, &isLocked) == 0, ioctl(main, Self.getNumber, &number) == 0 else {
            throw WaitError(description: "there is no pty: \(errno)")
        }
        let path = "/dev/pts/\(number)"
        // Kept open here, so that the settings can be read when the program is gone.
        line = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC)
        var size = winsize(ws_row: UInt16(height), ws_col: UInt16(width), ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(main, UInt(TIOCSWINSZ), &size)
        before = try Settings(line)
        screen = Shared(ScreenModel(width: width, height: height))
        process = try Self.spawn(program, arguments, environment, on: path)
        let (main, line, process, screen) = (main, line, process, screen)
        let (sent, status, isHungUp, isStalled) = (sent, status, isHungUp, isStalled)
        Thread.detachNewThread {
            defer {
                close(line)
                close(main)
            }
            var chunk = [UInt8](repeating: 0, count: 65_536)
            // A read that waits would keep the terminal open.
            while !isHungUp.current {
                var ready = pollfd(fd: main, events: Int16(POLLIN), revents: 0)
                if isStalled.current {
                    usleep(10_000)
                    continue
                }
                guard poll(&ready, 1, 20) > 0 else { continue }
                let count = Glibc.read(main, &chunk, chunk.count)
                if count < 0, errno == EINTR { continue }
                guard count > 0 else { continue }
                let bytes = Array(chunk[..<count])
                sent.change { $0 += bytes }
                screen.change { $0.take(bytes) }
            }
        }
        Thread.detachNewThread {
            var code: Int32 = 0
            while waitpid(process, &code, 0) < 0, errno == EINTR {}
            let result = code & 0x7F == 0 ? code >> 8 & 0xFF : -(code & 0x7F)
            status.change { $0 = result }
        }
    }

    deinit {
        if status.current == nil { kill(process, SIGKILL) }
        hangUp()
    }

    private static func spawn(
        _ program: String, _ arguments: [String], _ extra: [String: String], on path: String
    ) throws -> pid_t {
        var actions = posix_spawn_file_actions_t()
        var attributes = posix_spawnattr_t()
        posix_spawn_file_actions_init(&actions)
        posix_spawnattr_init(&attributes)
        defer {
            posix_spawn_file_actions_destroy(&actions)
            posix_spawnattr_destroy(&attributes)
        }
        // A session of its own, whose first terminal is the one that it opens first. POSIX_SPAWN_SETSID is 0x80 here.
        var signals = sigset_t()
        sigemptyset(&signals)
        posix_spawnattr_setsigmask(&attributes, &signals)
        posix_spawnattr_setflags(&attributes, Int16(0x80 | POSIX_SPAWN_SETSIGMASK))
        posix_spawn_file_actions_addopen(&actions, 0, path, O_RDWR, 0)
        posix_spawn_file_actions_adddup2(&actions, 0, 1)
        posix_spawn_file_actions_adddup2(&actions, 0, 2)
        var environment = ["TERM": "xterm-256color", "TZ": "UTC", "PATH": "/usr/bin:/bin", "HOME": "/nonexistent"]
        environment.merge(Sanitizer.environment) { $1 }
        environment.merge(extra) { $1 }
        var words = ([program] + arguments).map { strdup($0) } + [nil]
        var variables = environment.map { strdup("\($0)=\($1)") } + [nil]
        defer {
            for word in words + variables { free(word) }
        }
        var process: pid_t = 0
        let result = posix_spawn(&process, program, &actions, &attributes, &words, &variables)
        guard result == 0 else { throw WaitError(description: "\(program) does not start: \(result)") }
        return process
    }

    // MARK: The player

    /// Types bytes, however many.
    func type(_ bytes: [UInt8]) {
        var rest = bytes[...]
        while !rest.isEmpty {
            let count = rest.withUnsafeBytes { Glibc.write(main, $0.baseAddress, $0.count) }
            guard count > 0 else { return }
            rest = rest.dropFirst(count)
        }
    }

    func type(_ text: String) { type(Array(text.utf8)) }

    /// Types a word and submits it.
    func guess(_ word: String) { type(word + "\r") }

    /// Looks at the screen until it is as it should be.
    @discardableResult
    func see(_ purpose: String, within seconds: Double = 60, _ isReached: (ScreenModel) -> Bool) throws -> ScreenModel {
        do {
            return try screen.wait(seconds, for: purpose, until: isReached)
        } catch {
            throw WaitError(description: "\(purpose): not within \(seconds) s; the screen is\n\(screen.current.text)")
        }
    }

    /// Waits for a text anywhere on the screen.
    @discardableResult
    func see(_ text: String, within seconds: Double = 60) throws -> ScreenModel {
        try see("“\(text)” is shown", within: seconds) { $0.text.contains(text) }
    }

    /// Waits for the letters of a row of the board, with the word behind them.
    @discardableResult
    func see(row: Int, _ text: String, within seconds: Double = 60) throws -> ScreenModel {
        try see("row \(row) is \(text)", within: seconds) { $0.board(row) == text }
    }

    func resize(width: Int, height: Int) {
        screen.change { $0 = ScreenModel(width: width, height: height) }
        var size = winsize(ws_row: UInt16(height), ws_col: UInt16(width), ws_xpixel: 0, ws_ypixel: 0)
        _ = ioctl(main, UInt(TIOCSWINSZ), &size)
    }

    /// Takes nothing any more, as behind a connection that is stuck, and makes the program draw until it notices.
    func stall() throws {
        isStalled.change { $0 = true }
        for _ in 0..<1_000 {
            type("\u{C}")
            // The key is on its way to the line for a moment. One that is not taken there tells that the program waits for its screen.
            usleep(5_000)
            for count in 0... {
                var waiting: Int32 = 0
                guard ioctl(line, UInt(FIONREAD), &waiting) == 0 else {
                    throw WaitError(description: "FIONREAD: \(errno)")
                }
                if waiting == 0 { break }
                if count == 100 { return }
                usleep(10_000)
            }
        }
        throw WaitError(description: "the program never waits for its screen")
    }

    /// Takes again what the program draws.
    func goOn() { isStalled.change { $0 = false } }

    func signal(_ number: Int32) { kill(process, number) }

    /// The terminal's settings now.
    func settings() throws -> Settings { try Settings(line) }

    /// Hangs up, as when a window is closed.
    func hangUp() { isHungUp.change { $0 = true } }

    /// Waits for the program's end: its exit code, or the signal that ended it, negative.
    func end(within seconds: Double = 60) throws -> Int32 {
        try status.wait(seconds, for: "the program ends") { $0 != nil } ?? 0
    }

    /// Waits for the end, and checks that the terminal is as it was before: settings, screen, cursor, pastes.
    func endRestored(within seconds: Double = 60, _ location: SourceLocation = #_sourceLocation) throws -> Int32 {
        let code = try end(within: seconds)
        // The last bytes may still be on their way to the screen.
        try see("the screen is left") { !$0.isAlternate && $0.isCursorShown && !$0.isPasteBracketed }
        #expect(try settings() == before, sourceLocation: location)
        #expect(screen.current.strange == [], sourceLocation: location)
        return code
    }
}

/// Homes for players, in a folder that goes with the object.
final class PlayHomes: Sendable {
    let folder: URL

    init() throws { folder = try TemporaryDirectory.make() }

    deinit { try? FileManager.default.removeItem(at: folder) }

    func home(_ name: String) -> String { folder.appendingPathComponent(name).path }

    /// A new player's phone, and a tablet that joined.
    func players(at port: Int) throws -> (phone: String, tablet: String) {
        let (phone, tablet) = (home("phone"), home("tablet"))
        let server = "127.0.0.1:\(port)"
        func ieum(_ home: String, _ words: String...) throws -> String {
            let result = try Programs.run("ieum", words, environment: ["IEUM_HOME": home])
            guard result.status == 0 else { throw StartError(description: "ieum \(words): \(result.error)") }
            return result.output
        }
        _ = try ieum(phone, "register", "--server", server, "--device", "phone")
        let code = try ieum(phone, "pair").trimmingCharacters(in: .whitespacesAndNewlines)
        _ = try ieum(tablet, "link", code, "--server", server, "--device", "tablet")
        return (phone, tablet)
    }
}
