import Foundation
import TestSupport

/// A daemon with a database of its own, which goes with it.
final class House {
    let daemon: DaemonProcess
    private let database: TestDatabase

    init(_ options: [String] = []) throws {
        database = try TestDatabase.migrated()
        daemon = try DaemonProcess(database: database.conninfo, options: options)
    }
}

/// A client that comes through a load balancer on this machine, from an address as a test wants it.
enum BalancedClient {
    /// Options of a daemon that believes balancers on this machine.
    static let options = ["--proxy-protocol", "127.0.0.1"]

    /// Connects as from an address, and reads the greeting unless told otherwise.
    static func connect(_ daemon: DaemonProcess, from host: String, readsGreeting: Bool = true) throws -> RawClient {
        let client = try RawClient(port: daemon.port, readsGreeting: false)
        try client.send(header(from: host))
        if readsGreeting {
            let line = try client.line() ?? ""
            guard line.hasPrefix("IEUM 1 ") else { throw SocketError(call: "greeting: \(line)", code: 0) }
        }
        return client
    }

    /// A PROXY header, version 2, of a connection over TCP.
    static func header(from host: String) -> [UInt8] {
        let isIPv6 = host.contains(":")
        var source = [UInt8](repeating: 0, count: isIPv6 ? 16 : 4)
        inet_pton(isIPv6 ? AF_INET6 : AF_INET, host, &source)
        let body = source + [UInt8](repeating: 1, count: source.count) + [0xC0, 0x00, 0x11, 0x22]
        let signature: [UInt8] = [0x0D, 0x0A, 0x0D, 0x0A, 0x00, 0x0D, 0x0A, 0x51, 0x55, 0x49, 0x54, 0x0A]
        return signature + [0x21, isIPv6 ? 0x21 : 0x11, 0, UInt8(body.count)] + body
    }
}
