/// The migrations that belong together: a name for the set, and its files in the order in which they run.
///
/// Files come from the program itself or from a folder, and pass the same checks either way: names, versions, order, encoding.
public struct MigrationSet: Equatable, Sendable {
    /// The set's name, part of the key in the history, so that several sets share one database.
    public let name: String
    /// The files by rising version.
    public let files: [MigrationFile]
    /// Entries of the folder that are no migrations, by name.
    public let ignored: [String]
    /// The folder that the files were read from; nil for embedded ones.
    public let directory: String?

    /// A set of files that the program carries with it.
    public init(name: String, embedded: [(name: String, contents: String)]) throws(MigrationError) {
        try self.init(name: name, entries: embedded.map { ($0.name, Array($0.contents.utf8)) }, directory: nil)
    }

    /// The set of all `*.sql` files of a folder. Symbolic links are followed, since mounted configuration is often made of them.
    public init(name: String, directory: String) throws(MigrationError) {
        let folder = Folder(path: directory)
        let names: [String]
        do throws(Folder.Failure) {
            names = try folder.names()
        } catch {
            throw MigrationError(
                .usage, "cannot read the folder \(directory): \(error.reason)",
                hint: "Name the folder that holds the migrations with --dir.")
        }
        var entries: [(name: String, bytes: [UInt8])] = []
        var ignored: [String] = []
        var problems: [Problem] = []
        for entry in names {
            let isHidden = entry.hasPrefix(".")
            guard !isHidden, entry.lowercased().hasSuffix(".sql") else {
                ignored.append(entry)
                continue
            }
            guard entry.hasSuffix(".sql") else {
                problems.append(
                    Problem("the extension is not .sql in lower case", file: entry, hint: "Rename the file."))
                continue
            }
            do throws(Folder.Failure) {
                entries.append((entry, try folder.contents(of: entry)))
            } catch {
                problems.append(Problem("cannot be read: \(error.reason)", file: entry))
            }
        }
        try self.init(name: name, entries: entries, directory: directory, ignored: ignored, problems: problems)
    }

    /// The file with a version.
    public subscript(version: Version) -> MigrationFile? {
        files.first { $0.version == version }
    }

    private init(
        name: String, entries: [(name: String, bytes: [UInt8])], directory: String?, ignored: [String] = [],
        problems: [Problem] = []
    ) throws(MigrationError) {
        guard Self.isValidName(name) else {
            throw MigrationError(
                .usage, "\"\(name)\" cannot name a set",
                hint: "Use 1 to 63 lower-case letters, digits, '-', '_' and '.'.")
        }
        var problems = problems
        var files: [MigrationFile] = []
        for entry in entries {
            do throws(MigrationError) {
                files.append(try MigrationFile(name: entry.name, bytes: entry.bytes))
            } catch {
                problems.append(contentsOf: error.problems)
            }
        }
        files.sort { ($0.version, $0.name) < ($1.version, $1.name) }
        problems.append(contentsOf: Self.orderProblems(files))
        guard problems.isEmpty else { throw MigrationError(.file, problems) }
        guard !files.isEmpty else {
            let place = directory.map { "the folder \($0)" } ?? "the set \(name)"
            throw MigrationError(
                .usage, "\(place) holds no migrations",
                hint: "A migration is a file named like 0001_first_tables.sql.")
        }
        self.name = name
        self.files = files
        self.ignored = ignored
        self.directory = directory
    }
}

// MARK: - Reading and checking

extension MigrationSet {
    /// Whether a name can stand for a set, on the command line and in the history.
    static func isValidName(_ name: String) -> Bool {
        (1...63).contains(name.utf8.count)
            && name.utf8.allSatisfy {
                switch $0 {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"): true
                case UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."): true
                default: false
                }
            }
    }

    /// Two files of one version, and versions whose order by number is not their order by name.
    ///
    /// Everyone who lists the folder sees the order by name; it must be the one in which the files run.
    private static func orderProblems(_ files: [MigrationFile]) -> [Problem] {
        var problems: [Problem] = []
        for (earlier, later) in zip(files, files.dropFirst()) {
            if earlier.version == later.version {
                problems.append(
                    Problem(
                        "has the version of \(earlier.name), \(later.version)", file: later.name,
                        hint: earlier.name.hasSuffix(".down.sql") || later.name.hasSuffix(".down.sql")
                            ? "There are no down migrations: take the *.down.sql out of the folder."
                            : "Give one of them the next free version."))
            } else if later.writtenVersion.utf8.lexicographicallyPrecedes(earlier.writtenVersion.utf8) {
                problems.append(
                    Problem(
                        "runs after \(earlier.name) but is listed before it", file: later.name,
                        hint: "Write all versions with the same number of digits, zeros in front."))
            }
        }
        return problems
    }
}
