import Foundation

/// A folder of its own for one test, removed with the last reference.
final class TemporaryFolder {
    let url: URL

    init(_ files: [String: String] = [:]) throws {
        url = FileManager.default.temporaryDirectory.appending(
            path: "migrator-\(UUID().uuidString)", directoryHint: .isDirectory)
        try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        for (name, contents) in files { try write(name, contents) }
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    var path: String { String(url.path(percentEncoded: false).dropLast()) }

    func write(_ name: String, _ contents: String) throws {
        try Data(contents.utf8).write(to: url.appending(path: name))
    }

    func write(_ name: String, bytes: [UInt8]) throws {
        try Data(bytes).write(to: url.appending(path: name))
    }

    func remove(_ name: String) throws {
        try FileManager.default.removeItem(at: url.appending(path: name))
    }
}
