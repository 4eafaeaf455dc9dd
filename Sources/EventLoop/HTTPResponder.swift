import CLibEvent
import Glibc
import Synchronization

/// A small HTTP/1.1 server for machines that look after this one: metrics, liveness, readiness.
///
/// It answers `GET` and `HEAD` on the paths it was given, nothing else, and is meant for a loopback port: no TLS, no
/// authentication. Requests are bounded in size and time.
public final class HTTPResponder {
    /// What a route answers.
    public struct Response: Sendable {
        /// The status code, e.g. 200 or 503.
        public var status: Int
        /// The media type, e.g. `text/plain; charset=utf-8`.
        public var contentType: String
        /// The body.
        public var body: [UInt8]

        /// A response with any body.
        public init(status: Int = 200, contentType: String, body: [UInt8]) {
            self.status = status
            self.contentType = contentType
            self.body = body
        }

        /// A response of plain text.
        public init(status: Int = 200, text: String) {
            self.init(status: status, contentType: "text/plain; charset=utf-8", body: Array(text.utf8))
        }
    }

    /// Bounds of a request.
    public struct Limits: Sendable {
        /// Request line and headers together.
        public var maxHeaderBytes = 8_192
        /// A body, which no route needs.
        public var maxBodyBytes = 1_024
        /// How long a connection may be without progress, between two requests too.
        public var timeout: Duration = .seconds(30)

        /// The defaults.
        public init() {}
    }

    /// Where it listens; the port is the one really bound when 0 was asked for.
    public let address: SocketAddress
    /// The port it listens on.
    public var port: UInt16 { address.port }

    private let loop: EventLoop
    private var server: OpaquePointer?
    private var routes: [String: () -> Response] = [:]
    private var listener: OpaquePointer?
    private var restTimer: EventLoop.Timer?

    /// Binds, listens and begins to answer.
    /// - Parameters:
    ///   - loop: the loop that answers.
    ///   - host: an address of digits.
    ///   - port: 0 for a free one.
    ///   - limits: what a client may ask of it.
    public init(
        on loop: EventLoop, host: String = "127.0.0.1", port: UInt16, limits: Limits = Limits()
    ) throws(EventLoopError) {
        guard let server = evhttp_new(loop.base) else { throw EventLoopError(call: "evhttp_new", number: ENOMEM) }
        guard let socket = evhttp_bind_socket_with_handle(server, host, port),
            let address = SocketAddress.local(of: evhttp_bound_socket_get_fd(socket))
        else {
            let error = EventLoopError(call: "bind")
            evhttp_free(server)
            throw error
        }
        self.loop = loop
        self.server = server
        self.address = address
        listener = evhttp_bound_socket_get_listener(socket)
        evhttp_set_max_headers_size(server, limits.maxHeaderBytes)
        evhttp_set_max_body_size(server, limits.maxBodyBytes)
        var timeout = timeval(limits.timeout)
        evhttp_set_timeout_tv(server, &timeout)
        // All that libevent knows, so that the refusal is ours: 405 with an Allow header.
        evhttp_set_allowed_methods(server, 0x1ff)
        // Unretained is right: deinit frees the server, and with it the callbacks.
        let context = Unmanaged.passUnretained(self).toOpaque()
        evhttp_set_gencb(
            server,
            { request, context in
                guard let request, let context else { return }
                Unmanaged<HTTPResponder>.fromOpaque(context).takeUnretainedValue().answer(request)
            }, context)
        Self.responders.withLock { $0[UInt(bitPattern: listener)] = UInt(bitPattern: context) }
        evconnlistener_set_error_cb(listener) { listener, _ in HTTPResponder.responder(of: listener)?.rest() }
    }

    deinit {
        forgetListener()
        if let server { evhttp_free(server) }
    }

    /// Answers `GET` on a path, exactly as written, by what a closure says; replaces an earlier route.
    public func route(_ path: String, _ respond: @escaping () -> Response) {
        routes[path] = respond
    }

    /// Stops listening and closes all connections; in a route's closure, soon after it.
    public func close() {
        guard let server else { return }
        self.server = nil
        routes = [:]
        forgetListener()
        loop.enqueue { evhttp_free(server) }
    }

    /// Descriptors ran out: lets others wait instead of trying again and again, which libevent does by itself.
    private func rest() {
        guard let listener else { return }
        evconnlistener_disable(listener)
        restTimer = EventLoop.Timer(on: loop, after: .milliseconds(500)) { evconnlistener_enable(listener) }
    }

    private func forgetListener() {
        restTimer = nil
        Self.responders.withLock { $0[UInt(bitPattern: listener)] = nil }
        listener = nil
    }

    /// The responder of each listener, as addresses. libevent's HTTP server keeps the listener's context for itself, so its
    /// error callback has no other way here. An entry is used on its responder's thread alone, and goes before it.
    private static let responders = Mutex<[UInt: UInt]>([:])

    private static func responder(of listener: OpaquePointer?) -> HTTPResponder? {
        let address = responders.withLock { $0[UInt(bitPattern: listener)] }
        return address.flatMap(UnsafeRawPointer.init(bitPattern:)).map {
            Unmanaged<HTTPResponder>.fromOpaque($0).takeUnretainedValue()
        }
    }

    private func answer(_ request: OpaquePointer) {
        // libevent goes on with its server after this call: it must not be freed before this turn's deferred work.
        loop.enqueue { withExtendedLifetime(self) {} }
        let response: Response
        switch evhttp_request_get_command(request) {
        case EVHTTP_REQ_GET, EVHTTP_REQ_HEAD:
            let path = evhttp_request_get_evhttp_uri(request).flatMap(evhttp_uri_get_path).map { String(cString: $0) }
            response = path.flatMap { routes[$0] }.map { $0() } ?? notFound
        default:
            evhttp_add_header(evhttp_request_get_output_headers(request), "Allow", "GET, HEAD")
            response = Response(status: 405, text: "This server answers GET and HEAD only.\n")
        }
        send(response, to: request)
    }

    private var notFound: Response {
        Response(status: 404, text: "There is nothing here. Try \(routes.keys.sorted().joined(separator: ", ")).\n")
    }

    private func send(_ response: Response, to request: OpaquePointer) {
        guard let body = evbuffer_new() else { return evhttp_send_error(request, 500, nil) }
        defer { evbuffer_free(body) }
        let headers = evhttp_request_get_output_headers(request)
        evhttp_add_header(headers, "Content-Type", response.contentType)
        evhttp_add_header(headers, "Content-Length", String(response.body.count))
        // libevent would send a body with the answer to HEAD too.
        if evhttp_request_get_command(request) != EVHTTP_REQ_HEAD {
            let isCopied = response.body.withUnsafeBytes { evbuffer_add(body, $0.baseAddress, $0.count) == 0 }
            guard isCopied else { return evhttp_send_error(request, 500, nil) }
        }
        evhttp_add_header(headers, "Cache-Control", "no-store")
        evhttp_send_reply(request, Int32(clamping: response.status), nil, body)
    }
}
