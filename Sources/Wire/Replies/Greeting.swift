import Foundation

/// What the server says first, and answers to `HELLO`.
///
/// `IEUM 1 server=0.1.0 epoch=<uuid> max-line=1048576 max-state=1047552 time=<time>`
public struct Greeting: Hashable, Sendable {
    /// The protocol's version.
    public var protocolVersion: Int
    /// The server's version.
    public var server: String
    /// This life of the database.
    public var epoch: UUID
    /// The longest line that the server reads, in bytes, without its line ending.
    public var maxLineBytes: Int
    /// The largest state that the server takes, in bytes.
    public var maxStateBytes: Int
    /// The server's clock.
    public var time: Timestamp

    /// The protocol's version that this module speaks.
    public static let currentVersion = 1

    /// Creates a greeting.
    public init(
        protocolVersion: Int = currentVersion, server: String, epoch: UUID, maxLineBytes: Int, maxStateBytes: Int,
        time: Timestamp
    ) {
        self.protocolVersion = protocolVersion
        self.server = server
        self.epoch = epoch
        self.maxLineBytes = maxLineBytes
        self.maxStateBytes = maxStateBytes
        self.time = time
    }

    /// Appends the line that opens a connection.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(option: "IEUM ", protocolVersion)
        printOptions(into: &bytes)
    }

    func printAsReply(into bytes: inout [UInt8]) {
        bytes.append(option: "OK protocol=", protocolVersion)
        printOptions(into: &bytes)
    }

    private func printOptions(into bytes: inout [UInt8]) {
        bytes.append(option: " server=", text: server)
        bytes.append(text: " epoch=")
        epoch.print(into: &bytes)
        bytes.append(option: " max-line=", maxLineBytes)
        bytes.append(option: " max-state=", maxStateBytes)
        bytes.append(option: " time=", time)
        bytes.append(UInt8(ascii: "\n"))
    }
}
