import EventLoop
import Foundation

/// Certificates of an authority of a test's own, as files that are gone with it.
public final class TestCertificates: Sendable {
    /// A certificate's files, and its fingerprint.
    public struct Files: Sendable {
        /// The path of the certificate.
        public let certificate: String
        /// The path of its key.
        public let key: String
        /// The SHA-256 of the certificate.
        public let fingerprint: CertificateFingerprint
    }

    private let folder: TestFolder

    /// Who issues, as a PEM file.
    public var authority: String { folder.path + "/authority.pem" }
    /// The folder of all files.
    public var path: String { folder.path }

    /// `@unchecked`: an authority is only read once it is made, under the lock of the calls below.
    private final class Issuer: @unchecked Sendable {
        let issued: CertificateMaker.Issued
        let lock = NSLock()
        init(_ issued: CertificateMaker.Issued) { self.issued = issued }
    }

    private let issuer: Issuer

    /// Makes an authority.
    public init() throws {
        folder = try TestFolder("certificates")
        let name = "test authority \(UInt32.random(in: .min ... .max))"
        let request = CertificateMaker.Request(hosts: [], commonName: name, isAuthority: true)
        issuer = Issuer(try CertificateMaker.make(request))
        try Data(issuer.issued.certificateText()).write(to: URL(fileURLWithPath: folder.path + "/authority.pem"))
    }

    /// An authority, and a certificate of its for 127.0.0.1 and localhost, that the tests of a process share.
    public static func shared() throws -> (certificates: TestCertificates, server: Files) { try made.get() }

    private static let made = Result {
        let certificates = try TestCertificates()
        return (certificates: certificates, server: try certificates.issue("server"))
    }

    /// Issues a certificate under a name for its files, which may be there already.
    /// - Parameter isSelfSigned: whether the authority has nothing to do with it.
    @discardableResult
    public func issue(
        _ name: String, hosts: [String] = ["127.0.0.1", "localhost"], begin: Int = -300, end: Int = 86_400,
        isSelfSigned: Bool = false
    ) throws -> Files {
        var request = CertificateMaker.Request(hosts: hosts, commonName: name)
        (request.begin, request.end) = (begin, end)
        let issued = try issuer.lock.withLock {
            try CertificateMaker.make(request, issuer: isSelfSigned ? nil : issuer.issued)
        }
        let files = Files(
            certificate: "\(folder.path)/\(name).pem", key: "\(folder.path)/\(name).key",
            fingerprint: issued.fingerprint)
        try Data(issued.certificateText()).write(to: URL(fileURLWithPath: files.certificate))
        try Data(issued.keyText()).write(to: URL(fileURLWithPath: files.key))
        chmod(files.key, 0o600)
        return files
    }
}
