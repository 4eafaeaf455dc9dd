import FoundationEssentials
import Glibc

/// Where PostgreSQL's server programs are, and of which major version.
public struct ServerPrograms: Equatable, Sendable {
    /// The folder that holds `initdb` and `postgres`.
    public let folder: String
    /// The major version, such as 15.
    public let majorVersion: Int

    /// The oldest major version that Ieum works with.
    public static let oldestSupported = 14

    var initdb: String { "\(folder)/initdb" }
    var postgres: String { "\(folder)/postgres" }

    /// Looks at one folder; nil if it does not hold the programs.
    init?(folder: String) {
        guard access("\(folder)/initdb", X_OK) == 0, access("\(folder)/postgres", X_OK) == 0,
            // "postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", and "16beta1" before a release.
            let line = ChildProcess.output(of: ["\(folder)/postgres", "--version"]),
            let version = line.split(separator: " ").lazy.compactMap({ Int($0.prefix { $0.isNumber }) }).first
        else { return nil }
        self.folder = folder
        majorVersion = version
    }

    /// Finds the programs: of version `wanted` if data of that version is there already, else the newest supported.
    ///
    /// - Parameters:
    ///   - folder: the only place to look, if given; otherwise PATH and where packages put them.
    ///   - wanted: the major version of existing data.
    public static func find(in folder: String? = nil, majorVersion wanted: Int? = nil) throws(ClusterError)
        -> ServerPrograms
    {
        let candidates = folder.map { [$0] } ?? usualFolders()
        let found = candidates.compactMap(ServerPrograms.init(folder:))
        let supported = found.filter { $0.majorVersion >= oldestSupported }
        if let best = supported.filter({ wanted == nil || $0.majorVersion == wanted }).max(by: {
            $0.majorVersion < $1.majorVersion
        }) {
            return best
        }
        let there = found.map { "version \($0.majorVersion) in \($0.folder)" }.joined(separator: ", ")
        let suffix = there.isEmpty ? "none is installed" : "there is \(there)"
        if let wanted {
            throw ClusterError(
                "the data was made by PostgreSQL \(wanted), of which no server is found: \(suffix)",
                hint: "Install postgresql-\(wanted), or move the data with pg_upgrade or dump and restore.")
        }
        throw ClusterError(
            "no PostgreSQL server of version \(oldestSupported) or newer is found: \(suffix)\(folder.map { " (looked in \($0))" } ?? "")",
            hint:
                "Install the package postgresql (apt-get install postgresql), or name the folder of initdb and postgres."
        )
    }

    private static func usualFolders() -> [String] {
        let path = getenv("PATH").map { String(cString: $0) } ?? ""
        var folders = path.split(separator: ":").map(String.init)
        let files = FileManager.default
        for (parent, prefix) in [("/usr/lib/postgresql", ""), ("/usr", "pgsql-"), ("/usr/lib64", "pgsql-")] {
            for name in (try? files.contentsOfDirectory(atPath: parent)) ?? []
            where name.hasPrefix(prefix) && Int(name.dropFirst(prefix.count)) != nil {
                folders.append("\(parent)/\(name)/bin")
            }
        }
        folders += ["/usr/local/pgsql/bin", "/usr/libexec/postgresql"]
        return folders
    }
}
