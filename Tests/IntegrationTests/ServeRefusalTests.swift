import Foundation
import Postgres
import TestSupport
import Testing

@Suite("ieumd refuses")
struct ServeRefusalTests {
    /// Runs `ieumd serve` where it must not start.
    private func serve(_ arguments: String...) throws -> (status: Int32, output: String, error: String) {
        try Programs.run("ieumd", ["serve", "--metrics", "off"] + arguments)
    }

    @Test("to speak plainly off loopback, unless it is told to")
    func insecure() throws {
        for host in ["0.0.0.0", "[::]", "192.0.2.1", "games.example.org", "127.example.org", "localhost.example"] {
            let result = try serve("--listen", "\(host):0", "--database", "host=/nowhere")
            #expect(result.status == 2)
            #expect(result.output == "")
            #expect(result.error.contains("not a loopback address"))
            #expect(result.error.contains("--insecure"))
            let metrics = try Programs.run(
                "ieumd", ["serve", "--metrics", "\(host):0", "--listen", "127.0.0.1:0", "--database", "host=/nowhere"])
            #expect(
                metrics.status == 2
                    && metrics.error.contains("--metrics \(host == "[::]" ? "::" : host) is not a loopback"),
                "\(metrics)")
        }
        let database = try TestDatabase.migrated()
        let folder = try TestFolder("insecure")
        let daemon = try DaemonProcess(
            database: database.conninfo, directory: URL(fileURLWithPath: folder.path), host: "0.0.0.0",
            options: ["--insecure"])
        #expect(daemon.firstLine == "listening on 0.0.0.0:\(daemon.port)")
        #expect(try RawClient(port: daemon.port).ask("PING") == "OK")
    }

    @Test("a port that is taken, and says what to do")
    func portInUse() throws {
        let database = try TestDatabase.migrated()
        let other = try FreePort.Listener()
        let result = try serve("--listen", "127.0.0.1:\(other.port)", "--database", database.conninfo)
        #expect(result.status == 1)
        #expect(result.output == "")
        #expect(result.error.contains("\(other.port)"))
        #expect(result.error.contains("--listen"))
    }

    @Test(
        "an unknown option or command, and suggests the one that was meant",
        arguments: [
            (["serve", "--lisen", "127.0.0.1:0"], "--listen"),
            (["serve", "--max-conections", "5"], "--max-connections"),
            (["sevre"], "serve"), (["migrate", "statsu"], "status"), (["restore-epcoh"], "restore-epoch"),
        ])
    func suggestions(arguments: [String], meant: String) throws {
        let result = try Programs.run("ieumd", arguments)
        #expect(result.status == 2)
        #expect(result.output == "")
        #expect(result.error.contains(meant), "\(result.error)")
    }

    @Test(
        "values that make no sense",
        arguments: [
            ["--listen", "4386"], ["--listen", "127.0.0.1:70000"], ["--listen", "::1:0"], ["--lanes", "0"],
            ["--max-connections", "many"], ["--idle-timeout", "nan"], ["--idle-timeout", "-1"], ["--log", "loud"],
            ["--registration", "maybe"], ["--max-pending", "99999999999999999999"], ["extra"], ["--listen"],
        ])
    func values(arguments: [String]) throws {
        let result = try Programs.run("ieumd", ["serve"] + arguments)
        #expect(result.status == 2)
        #expect(result.output == "")
        #expect(result.error.hasPrefix("ieumd: "))
    }

    @Test("a database that is empty, behind or ahead, and says what to run")
    func schema() throws {
        let empty = try TestDatabase.make()
        let unmigrated = try serve("--listen", "127.0.0.1:0", "--database", empty.conninfo)
        #expect(unmigrated.status == 3)
        #expect(unmigrated.output == "")
        #expect(unmigrated.error.contains("ieumd migrate up"))

        let behind = try TestDatabase.make()
        #expect(try Programs.run("ieumd", ["migrate", "up", "--to", "3", "--database", behind.conninfo]).status == 0)
        let refused = try serve("--listen", "127.0.0.1:0", "--database", behind.conninfo)
        #expect(refused.status == 3)
        #expect(refused.error.contains("behind"))
        #expect(refused.error.contains("ieumd migrate up"))
        #expect(try Programs.run("ieumd", ["migrate", "up", "--database", behind.conninfo]).status == 0)
        #expect(try DaemonProcess(database: behind.conninfo).stop() == 0)

        let ahead = try TestDatabase.migrated()
        try ahead.connect().execute(
            """
            INSERT INTO schema_migrations (set_name, version, name, checksum)
            VALUES ('ieum', 9000, '9000_future.sql', repeat('0', 64))
            """)
        let older = try serve("--listen", "127.0.0.1:0", "--database", ahead.conninfo)
        #expect(older.status == 3)
        #expect(older.output == "")
        #expect(older.error.contains("ahead"))
        #expect(older.error.contains("9000_future.sql"))
    }

    @Test("a database that cannot be reached, without telling the password")
    func unreachable() throws {
        let port = try FreePort.find()
        let conninfo = "host=127.0.0.1 port=\(port) password=hush-hush connect_timeout=5"
        let flag = try serve("--listen", "127.0.0.1:0", "--database", conninfo)
        #expect(flag.status == 2 && flag.error.contains("IEUM_DATABASE_PASSWORD_FILE"), "\(flag)")
        #expect(!flag.error.contains("hush-hush"))
        let result = try Programs.run(
            "ieumd", ["serve", "--listen", "127.0.0.1:0"], environment: ["IEUM_DATABASE_URL": conninfo])
        #expect(result.status == 4)
        #expect(result.output == "")
        #expect(result.error.contains("\(port)"))
        #expect(!result.error.contains("hush-hush"))
    }

    @Test("a data directory that another daemon uses, whose own clients do not notice")
    func secondDaemon() throws {
        let folder = try TestFolder("twice")
        let daemon = try DaemonProcess(directory: URL(fileURLWithPath: folder.path))
        let client = try RawClient(port: daemon.port)
        let result = try serve("--listen", "127.0.0.1:0", "--data-directory", folder.path)
        #expect(result.status == 2)
        #expect(result.output == "")
        #expect(result.error.contains("process \(daemon.processID) runs a PostgreSQL in"), "\(result.error)")
        #expect(try client.ask("REGISTER").hasPrefix("OK "))
    }

    /// Folders that cannot be used, with a word of what must be said of each.
    private static func unfit(in folder: String) throws -> [(directory: String, said: String)] {
        let files = FileManager.default
        try Data("a file".utf8).write(to: URL(fileURLWithPath: "\(folder)/file"))
        try files.createDirectory(atPath: "\(folder)/taken", withIntermediateDirectories: true)
        try Data("a file".utf8).write(to: URL(fileURLWithPath: "\(folder)/taken/postgres"))
        try files.createDirectory(atPath: "\(folder)/foreign/postgres/photos", withIntermediateDirectories: true)
        try files.createDirectory(atPath: "\(folder)/foreign/postgres/data", withIntermediateDirectories: true)
        for (name, mode) in [("open", 0o777), ("shared", 0o770)] {
            try files.createDirectory(atPath: "\(folder)/\(name)/postgres", withIntermediateDirectories: true)
            chmod("\(folder)/\(name)/postgres", mode_t(mode))
        }
        return [
            ("\(folder)/file", "\(folder)/file is a file"), ("\(folder)/file/below", "\(folder)/file is a file"),
            ("\(folder)/taken", "\(folder)/taken/postgres is not a folder"),
            ("\(folder)/open", "chmod go-w \(folder)/open/postgres"),
            ("\(folder)/shared", "chmod go-w \(folder)/shared/postgres"),
            ("\(folder)/foreign", "does not hold the data of a PostgreSQL"),
            ("/proc/x", "cannot make the folder /proc/x: No such file or directory"),
            ("/sys/x", "cannot make the folder /sys/x"),
            ("\(folder)/\(String(repeating: "n", count: 300))", "File name too long"),
        ]
    }

    @Test("to look at a data directory that is not there, and makes none", arguments: ["/proc/x", "not/there"])
    func missingDirectory(directory: String) throws {
        let folder = try TestFolder("missing")
        let path = directory.hasPrefix("/") ? directory : "\(folder.path)/\(directory)"
        for command in ["status", "history"] {
            let result = try Programs.run("ieumd", ["migrate", command, "--data-directory", path])
            #expect(result.status == 4, "\(result)")
            #expect(result.error.contains("there is no private PostgreSQL in \(path)"), "\(result.error)")
            #expect(!FileManager.default.fileExists(atPath: path))
        }
    }

    @Test("a data directory that cannot be used, in plain words and with what to do, whatever the command")
    func unfitDirectory() throws {
        let folder = try TestFolder("unfit")
        for (directory, said) in try Self.unfit(in: folder.path) {
            for command in [
                ["serve", "--metrics", "off", "--listen", "127.0.0.1:0"], ["migrate", "up"], ["restore-epoch"],
            ] {
                let result = try Programs.run("ieumd", command + ["--data-directory", directory])
                #expect(result.status == 2, "\(command) \(directory): \(result)")
                #expect(result.output == "")
                #expect(result.error.contains(said), "\(command) \(directory): \(result.error)")
                #expect(result.error.contains("hoose another"), "\(result.error)")
                #expect(!result.error.contains("NSCocoa") && !result.error.contains("Error Domain"), "\(result.error)")
                #expect(!result.error.contains("CocoaError"), "\(result.error)")
            }
        }
    }

    @Test("nothing of a umask that lets others write: what it makes is closed to them all the same")
    func openUmask() throws {
        let folder = try TestFolder("umask")
        let script = "umask 000; exec \"$0\" migrate up --data-directory \"$1/deep/data\""
        let result = try Programs.runInstalled(["sh", "-c", script, Programs.url("ieumd").path, folder.path])
        #expect(result.status == 0, "\(result)")
        let open = try Programs.runInstalled(["find", folder.path, "!", "-type", "l", "-perm", "/022"])
        #expect(open.status == 0 && open.output == "", "\(open)")
        let secret = try Programs.runInstalled(
            ["find", "\(folder.path)/deep/data/postgres", "-mindepth", "1", "-perm", "/077", "!", "-type", "l"])
        #expect(secret.status == 0 && secret.output == "", "\(secret)")
    }

    @Test("a data directory that this user may not write in")
    func unwritableDirectory() throws {
        let folder = try TestFolder("unwritable")
        // Root may write anywhere, so that root becomes somebody who may not.
        chmod(folder.path, 0o555)
        defer { chmod(folder.path, 0o755) }
        let arguments = [
            "serve", "--metrics", "off", "--listen", "127.0.0.1:0", "--data-directory", "\(folder.path)/data",
        ]
        let result =
            geteuid() == 0
            ? try Programs.runInstalled(
                ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", Programs.url("ieumd").path] + arguments)
            : try Programs.run("ieumd", arguments)
        #expect(result.status == 2, "\(result)")
        #expect(result.output == "")
        #expect(
            result.error.contains("cannot make the folder \(folder.path)/data: Permission denied"), "\(result.error)")
        #expect(result.error.contains("right to write"))
    }
}
