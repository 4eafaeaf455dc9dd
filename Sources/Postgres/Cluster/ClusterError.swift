import Glibc

/// Why a private PostgreSQL could not be prepared, started or stopped, in words for an operator.
public struct ClusterError: Error, Equatable, Sendable, CustomStringConvertible {
    /// One line, factual.
    public var message: String
    /// What to do about it: a full sentence.
    public var hint: String?
    /// Whether the folder that was chosen is at fault: it cannot be used, or another uses it. A setting mends that.
    public var isFolderUnfit: Bool

    /// Makes an error.
    public init(_ message: String, hint: String? = nil, isFolderUnfit: Bool = false) {
        self.message = message
        self.hint = hint
        self.isFolderUnfit = isFolderUnfit
    }

    /// The folder cannot be used, by the `errno` of what was tried in it.
    static func unfit(_ doing: String, errno code: Int32) -> ClusterError {
        let hint =
            switch code {
            case EACCES, EPERM: "Choose another folder, or give this user the right to write in it."
            case EROFS: "It lies on a file system that takes no changes. Choose another folder."
            case ENOSPC, EDQUOT: "The disk is full. Make room, or choose a folder on another disk."
            case ENOTDIR, EEXIST: "A file is in the way. Move it, or choose another folder."
            case ENOENT: "No folder can be made there. Choose another."
            default: "Choose another folder."
            }
        return ClusterError("\(doing): \(String(cString: strerror(code)))", hint: hint, isFolderUnfit: true)
    }

    /// A failed system call, by its `errno`.
    init(_ doing: String, errno code: Int32) {
        self.init("\(doing): \(String(cString: strerror(code)))")
    }

    /// Message and hint in one line.
    public var description: String {
        hint.map { "\(message). \($0)" } ?? message
    }
}
