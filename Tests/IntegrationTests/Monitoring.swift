import Foundation
import Testing

/// Asks a path of the daemon's monitoring port.
func http(port: Int, path: String) throws -> (status: Int, body: String) {
    let client = try RawClient(port: port, readsGreeting: false)
    try client.send("GET \(path) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".utf8)
    var lines: [String] = []
    while let line = try client.line() { lines.append(line.hasSuffix("\r") ? String(line.dropLast()) : line) }
    let status = try #require(lines.first?.split(separator: " ").dropFirst().first.flatMap { Int($0) })
    let body = lines.drop { !$0.isEmpty }.dropFirst()
    return (status, body.joined(separator: "\n"))
}

/// The status code that a path of the monitoring port answers with.
func httpStatus(port: Int, path: String) throws -> Int { try http(port: port, path: path).status }

/// The value of a metric without labels.
func metric(_ name: String, port: Int) throws -> Double {
    let line = try http(port: port, path: "/metrics").body.split(separator: "\n").first { $0.hasPrefix(name + " ") }
    return try #require(line?.split(separator: " ").last.flatMap { Double($0) }, "no metric \(name)")
}
