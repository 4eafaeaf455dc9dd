import Glibc

/// A user of the operating system under whom PostgreSQL runs, since it refuses to run as root.
struct SystemUser: Equatable, Sendable {
    var name: String
    var userID: uid_t
    var groupID: gid_t

    /// Who runs this process.
    static var current: SystemUser {
        SystemUser(userID: geteuid()) ?? SystemUser(name: "\(geteuid())", userID: geteuid(), groupID: getegid())
    }

    static var isRoot: Bool { geteuid() == 0 }

    private init(name: String, userID: uid_t, groupID: gid_t) {
        self.name = name
        self.userID = userID
        self.groupID = groupID
    }

    init?(named name: String) {
        self.init { entry, buffer, size, found in getpwnam_r(name, entry, buffer, size, found) }
    }

    init?(userID: uid_t) {
        self.init { entry, buffer, size, found in getpwuid_r(userID, entry, buffer, size, found) }
    }

    private init?(
        _ lookUp: (
            UnsafeMutablePointer<passwd>, UnsafeMutablePointer<CChar>, Int,
            UnsafeMutablePointer<UnsafeMutablePointer<passwd>?>
        ) -> Int32
    ) {
        var entry = passwd()
        var found: UnsafeMutablePointer<passwd>?
        var buffer = [CChar](repeating: 0, count: 16_384)
        let name: String? = buffer.withUnsafeMutableBufferPointer { storage in
            guard let base = storage.baseAddress, lookUp(&entry, base, storage.count, &found) == 0, found != nil else {
                return nil
            }
            return entry.pw_name.map { String(cString: $0) }
        }
        guard let name else { return nil }
        self.init(name: name, userID: entry.pw_uid, groupID: entry.pw_gid)
    }

    /// Whom a cluster belongs to: whoever owns its data already; otherwise we, and for root `postgres` or `nobody`.
    static func owner(ofData data: String) throws(ClusterError) -> SystemUser {
        var status = stat()
        if lstat(data, &status) == 0 {
            if isRoot && status.st_uid != 0 {
                return SystemUser(userID: status.st_uid)
                    ?? SystemUser(name: "\(status.st_uid)", userID: status.st_uid, groupID: status.st_gid)
            }
            if !isRoot && status.st_uid != geteuid() {
                let owner = SystemUser(userID: status.st_uid)?.name ?? "\(status.st_uid)"
                throw ClusterError(
                    "\(data) belongs to user \(owner), this is user \(current.name)",
                    hint: "Start it as \(owner), or choose another folder.",
                    isFolderUnfit: true)
            }
        }
        guard isRoot else { return current }
        guard let user = SystemUser(named: "postgres") ?? SystemUser(named: "nobody") else {
            throw ClusterError(
                "PostgreSQL refuses to run as root, and there is neither a user postgres nor nobody",
                hint: "Make one: useradd --system postgres.")
        }
        return user
    }

    /// What to put before a command so that it runs as this user; empty if we are this user.
    var commandPrefix: [String] {
        if userID == geteuid() { return [] }
        return ["setpriv", "--reuid=\(userID)", "--regid=\(groupID)", "--clear-groups", "--"]
    }

    /// The first folder on the way to `path` that this user may not enter, by owner, group and mode.
    func firstClosedFolder(onTheWayTo path: String) -> String? {
        var folder = ""
        for part in path.split(separator: "/") {
            folder += "/\(part)"
            var status = stat()
            guard stat(folder, &status) == 0 else { return nil }
            let bit: mode_t =
                status.st_uid == userID ? S_IXUSR : status.st_gid == groupID ? S_IXGRP : S_IXOTH
            if status.st_mode & bit == 0 { return folder }
        }
        return nil
    }
}
