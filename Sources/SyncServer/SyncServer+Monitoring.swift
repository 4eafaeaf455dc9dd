import EventLoop

extension SyncServer {
    /// Opens `/metrics`, `/healthz` and `/readyz`.
    func openMonitoring(host: String, port: Int) throws(EventLoopError) -> HTTPResponder {
        let responder = try HTTPResponder(on: loop, host: host, port: UInt16(port))
        responder.route("/healthz") { .init(text: "ok\n") }
        responder.route("/readyz") { [weak self] in
            guard let self, !isDraining, isDatabaseReady else { return .init(status: 503, text: "not ready\n") }
            return .init(text: "ready\n")
        }
        responder.route("/metrics") { [weak self] in
            .init(contentType: "text/plain; version=0.0.4; charset=utf-8", body: Array((self?.metricsText ?? "").utf8))
        }
        return responder
    }

    private var metricsText: String {
        let certificate = tls.map {
            (
                "tls_certificate_expires_seconds", "When the certificate ends, in seconds since 1970.",
                Double($0.context.notAfter)
            )
        }
        return metrics.text(
            gauges: [
                ("connections", "Open client connections.", Double(sessionCount)),
                ("watchers", "Connections that watch.", Double(watchers.count)),
                ("pushes_under_way", "Pushes accepted and not answered.", Double(pushesUnderWay)),
                ("pending_bytes", "Bytes of them and of unread replies.", Double(pendingBytes)),
                ("unfinished_bytes", "Bytes of lines that have not ended.", Double(unfinishedBytes)),
                ("database_ready", "Whether PostgreSQL is reached.", isDatabaseReady ? 1 : 0),
            ] + (certificate.map { [$0] } ?? []))
    }
}
