import Foundation
import Testing

/// A device that is played by the program `ieum`: a home folder of its own, and calls.
final class CommandLineDevice: Sendable {
    /// What a call said, and how it ended.
    struct Call {
        /// The exit code; of a call that a signal ended, the signal's number, negative.
        var status: Int32
        /// Stdout.
        var data: String
        /// Stderr.
        var talk: String

        /// The JSON objects on stdout, one a line.
        func objects() throws -> [[String: Any]] {
            try data.split(separator: "\n").map { line in
                try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
            }
        }

        /// The one JSON object on stdout.
        func object() throws -> [String: Any] {
            let objects = try objects()
            try #require(objects.count == 1, "\(data)\(talk)")
            return objects[0]
        }
    }

    let home: URL
    let folder: URL

    /// A device without an identity.
    init() throws {
        folder = try TemporaryDirectory.make()
        home = folder.appendingPathComponent("home")
    }

    /// A new player's first device.
    convenience init(registeredAt daemon: DaemonProcess, name: String = "phone") throws {
        try self.init()
        let call = try run("register", "--server", "127.0.0.1:\(daemon.port)", "--device", name)
        try #require(call.status == 0, "\(call.talk)")
    }

    /// Another device of a device's player.
    convenience init(linkedTo other: CommandLineDevice, at daemon: DaemonProcess, name: String = "tablet") throws {
        try self.init()
        let code = try #require(try other.run("pair", "--json").object()["code"] as? String)
        let call = try run("link", code.lowercased(), "--server", "127.0.0.1:\(daemon.port)", "--device", name)
        try #require(call.status == 0, "\(call.talk)")
    }

    deinit {
        try? FileManager.default.removeItem(at: folder)
    }

    /// Runs a call to its end.
    func run(_ arguments: String..., input: String? = nil) throws -> Call {
        try run(arguments, input: input)
    }

    /// Runs a call to its end.
    func run(_ arguments: [String], input: String? = nil) throws -> Call {
        let result = try Programs.run("ieum", arguments, environment: ["IEUM_HOME": home.path], input: input)
        return Call(status: result.status, data: result.output, talk: result.error)
    }

    /// Pushes a state of the game `handle.game today`.
    func push(_ state: String, _ options: String...) throws -> Call {
        try run(["push", "handle.game", "today", "--file", "-", "--json"] + options, input: state)
    }
}
