import EventLoop
import Glibc
import Testing

@Suite("the HTTP responder")
struct HTTPResponderTests {
    private let loop: EventLoop
    private let responder: HTTPResponder

    init() throws {
        loop = try EventLoop()
        var limits = HTTPResponder.Limits()
        limits.timeout = .milliseconds(200)
        responder = try HTTPResponder(on: loop, port: 0, limits: limits)
        responder.route("/healthz") { .init(text: "ok\n") }
        responder.route("/readyz") { .init(status: 503, text: "no database\n") }
        responder.route("/metrics") {
            .init(contentType: "text/plain; version=0.0.4", body: Array("ieum_up 1\n".utf8))
        }
    }

    /// Sends raw bytes and gives all that comes until the responder hangs up.
    private func exchange(_ request: some Collection<UInt8>) throws -> String {
        let peer = try RawSocket(connectingTo: responder.port)
        var sent = 0
        let bytes = Array(request)
        let isOver = loop.run(
            until: {
                if sent < bytes.count { sent += peer.send(bytes[sent...]) }
                peer.receive()
                return peer.isAtEnd || peer.isBroken
            }, timeout: .seconds(60))
        #expect(isOver, "the responder never hung up")
        return peer.text
    }

    private func exchange(_ request: String) throws -> String { try exchange(request.utf8) }

    @Test("a route answers with its status, type and body")
    func answers() throws {
        let healthy = try exchange("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        #expect(healthy.hasPrefix("HTTP/1.1 200 OK\r\n"))
        #expect(healthy.contains("Content-Type: text/plain; charset=utf-8\r\n"))
        #expect(healthy.hasSuffix("\r\n\r\nok\n"))
        let unready = try exchange("GET /readyz?verbose HTTP/1.0\r\n\r\n")
        #expect(unready.hasPrefix("HTTP/1.0 503 Service Unavailable\r\n"))
        let metrics = try exchange("GET /metrics HTTP/1.0\r\n\r\n")
        #expect(metrics.contains("Content-Type: text/plain; version=0.0.4\r\n"))
        #expect(metrics.hasSuffix("\r\n\r\nieum_up 1\n"))
    }

    @Test("HEAD has no body, other paths are 404, other methods 405")
    func refuses() throws {
        let head = try exchange("HEAD /healthz HTTP/1.0\r\n\r\n")
        #expect(head.hasPrefix("HTTP/1.0 200 OK\r\n") && head.hasSuffix("\r\n\r\n"))
        #expect(head.contains("Content-Length: 3\r\n"))
        let missing = try exchange("GET /nothing HTTP/1.0\r\n\r\n")
        #expect(missing.hasPrefix("HTTP/1.0 404 ") && missing.hasSuffix("Try /healthz, /metrics, /readyz.\n"))
        for method in ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"] {
            let refusal = try exchange("\(method) /healthz HTTP/1.0\r\nContent-Length: 0\r\n\r\n")
            #expect(refusal.hasPrefix("HTTP/1.0 405 "), "\(method): \(refusal)")
            #expect(refusal.contains("Allow: GET, HEAD\r\n"))
        }
    }

    @Test("two requests on one connection are both answered")
    func keepsAlive() throws {
        let request = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"
        let text = try exchange(request + request)
        #expect(text.split(separator: "ok\n").count == 2)
    }

    @Test(
        "garbage, floods and silence get a refusal or a hang-up, and the next request works",
        arguments: [
            Array("\0\u{1}\u{2}\r\n\r\n".utf8), Array("GET\r\n\r\n".utf8), Array("GET /healthz HTTP/9.9\r\n\r\n".utf8),
            Array("BREW /healthz HTTP/1.1\r\n\r\n".utf8), Array("GET http://[:::/ HTTP/1.1\r\n\r\n".utf8),
            Array("GET /healthz HTTP/1.1\r\n no: name\r\n: x\r\n\r\n".utf8), [UInt8](repeating: 0xff, count: 100_000),
            Array("GET /".utf8) + [UInt8](repeating: 97, count: 100_000) + Array(" HTTP/1.0\r\n\r\n".utf8),
            Array("GET / HTTP/1.0\r\nx: ".utf8) + [UInt8](repeating: 97, count: 100_000) + Array("\r\n\r\n".utf8),
            Array("GET / HTTP/1.0\r\nContent-Length: 99999999999\r\n\r\nx".utf8),
            Array("GET / HTTP/1.0\r\nContent-Length: -1\r\n\r\nx".utf8), Array("GET /hea".utf8), [],
        ])
    func garbage(request: [UInt8]) throws {
        let text = try exchange(request)
        #expect(!text.contains("200 OK"))
        #expect(try exchange("GET /healthz HTTP/1.0\r\n\r\n").hasSuffix("ok\n"))
    }

    @Test("closing and releasing inside a route is safe")
    func closesInside() throws {
        let box = Box<HTTPResponder?>(try HTTPResponder(on: loop, port: 0))
        let port = try #require(box.value?.port)
        for isReleased in [false, true] {
            if isReleased { box.value = try HTTPResponder(on: loop, port: 0) }
            let isAsked = Box(false)
            box.value?.route("/") {
                isAsked.value = true
                box.value?.close()
                if isReleased { box.value = nil }
                return .init(text: "bye")
            }
            let peer = try RawSocket(connectingTo: box.value?.port ?? port)
            peer.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            #expect(
                loop.run(
                    until: {
                        peer.receive()
                        return peer.isAtEnd || peer.isBroken
                    }, timeout: .seconds(60)))
            #expect(isAsked.value)
        }
    }
}
