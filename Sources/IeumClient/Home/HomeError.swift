import Glibc

/// What is wrong with a device's home folder, and what to do about it.
package struct HomeError: Error, Hashable, Sendable {
    /// The kinds of trouble.
    package enum Kind: Hashable, Sendable {
        /// No folder is named by the environment.
        case nowhere
        /// The home holds no identity: the device never registered or joined.
        case noIdentity
        /// The home holds an identity already, which must not be overwritten by accident.
        case identityExists
        /// Others could read a secret, or put a file of theirs in its place.
        case exposed
        /// A file does not hold what it must. It is left as it is.
        case damaged
        /// The home's copy of the games is another player's.
        case otherPlayer
        /// Another process keeps the home's lock.
        case locked
        /// A call of the system failed, with its error number.
        case system(Int32)
    }

    /// Which trouble it is.
    package var kind: Kind
    /// What is wrong: one line, factual, with the path.
    package var message: String
    /// What to do: a full sentence, with the command to type where there is one.
    package var hint: String?

    init(_ kind: Kind, _ message: String, hint: String? = nil) {
        self.kind = kind
        self.message = message
        self.hint = hint
    }

    /// A failed system call on a path.
    static func system(_ call: String, _ path: String, number: Int32 = errno) -> HomeError {
        HomeError(.system(number), "\(call) \(path): \(String(cString: strerror(number)))")
    }

    /// A file that does not hold what it must.
    static func damaged(_ path: String, _ reason: String, hint: String? = nil) -> HomeError {
        HomeError(
            .damaged, "\(path) is damaged: \(reason)",
            hint: hint
                ?? "It was left as it is; repair it, or move it aside: mv \(path.shellQuoted) \("\(path).damaged".shellQuoted)"
        )
    }
}

extension String {
    /// The text as one word of a shell's command line.
    package var shellQuoted: String {
        let plain =
            !isEmpty
            && utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"):
                    true
                default: "@%+=:,./-_".utf8.contains(byte)
                }
            }
        return plain
            ? self : "'" + split(separator: "'", omittingEmptySubsequences: false).joined(separator: "'\\''") + "'"
    }
}
