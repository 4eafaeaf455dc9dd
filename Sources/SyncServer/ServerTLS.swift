import EventLoop
import Wire

/// The server's certificate: read at the start, read again when the operator says so, watched as its end comes near.
///
/// Connections keep what they began with; a reload is for those that come after it.
public final class ServerTLS {
    /// The files, as the operator named them.
    public let files: TLSServerContext.Files
    /// What new connections get.
    private(set) var context: TLSServerContext

    /// Reads the files.
    public init(files: TLSServerContext.Files) throws(TLSError) {
        self.files = files
        context = try Self.read(files)
    }

    /// Reads the files again; when they cannot be used, everything stays as it is.
    func reload() throws(TLSError) {
        context = try Self.read(files)
    }

    /// Whole days that the certificate still has; negative once it has expired.
    func daysLeft(at now: Timestamp) -> Int64 {
        let seconds = context.notAfter - now.microseconds / 1_000_000
        return seconds < 0 ? -1 - (-1 - seconds) / 86_400 : seconds / 86_400
    }

    /// From here on an operator is reminded.
    static let remindedDays: Int64 = 14

    private static func read(_ files: TLSServerContext.Files) throws(TLSError) -> TLSServerContext {
        var answer: [UInt8] = []
        Reply.bye(.tlsRequired).print(into: &answer)
        return try TLSServerContext(files: files, protocolName: "ieum/1", plainAnswer: answer)
    }
}

extension SyncServer {
    /// Reads certificate, key and authorities again, for the connections that come from now on. Files that cannot be used
    /// are logged, and the old ones stay.
    public func reloadCertificate() {
        guard let tls else { return log(.info, "nothing-to-reload") }
        do throws(TLSError) {
            try tls.reload()
            logCertificate(tls, "certificate-reloaded")
        } catch {
            metrics.failedReloads += 1
            log(.error, "certificate-reload-failed", ["error": error, "kept": tls.context.fingerprint])
        }
    }

    /// Says at the start which certificate it is, and then twice a day whether it ends soon.
    func watchCertificate(_ tls: ServerTLS) -> EventLoop.Timer {
        logCertificate(tls, "certificate")
        return EventLoop.Timer(on: loop, after: .seconds(43_200), every: .seconds(43_200)) { [weak self] in
            self?.remindOfExpiry(tls)
        }
    }

    private func logCertificate(_ tls: ServerTLS, _ event: String) {
        log(
            .info, event,
            [
                "file": tls.files.certificate, "fingerprint": tls.context.fingerprint,
                "expires": Timestamp(
                    clamping: tls.context.notAfter.multipliedReportingOverflow(by: 1_000_000).partialValue),
            ])
        remindOfExpiry(tls)
    }

    private func remindOfExpiry(_ tls: ServerTLS) {
        let now = Clock.now()
        if tls.context.notBefore > now.microseconds / 1_000_000 {
            log(.error, "certificate-not-yet-valid", ["file": tls.files.certificate])
        }
        let days = tls.daysLeft(at: now)
        guard days < ServerTLS.remindedDays else { return }
        let event = days < 0 ? "certificate-expired" : "certificate-expires-soon"
        log(days < 0 ? .error : .warning, event, ["days": days, "file": tls.files.certificate])
    }
}

extension TLSError.Kind {
    /// A label of `ieum_tls_failures_total`.
    var label: String {
        switch self {
        case .plainPeer: "plain"
        case .versionTooOld: "version"
        case .noCommonProtocol: "protocol"
        case .clientCertificateRequired, .certificateExpired, .certificateNotYetValid, .unknownIssuer,
            .certificateInvalid, .wrongHost, .pinMismatch:
            "client-certificate"
        case .certificateRefused: "refused-by-client"
        case .timedOut: "timeout"
        case .truncated: "truncated"
        case .file, .other: "other"
        }
    }

    /// Every label.
    static var labels: [String] { Set(allCases.map(\.label)).sorted() }
}
