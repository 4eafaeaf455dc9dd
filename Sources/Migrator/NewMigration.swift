/// Makes the file of a new migration.
public enum NewMigration {
    /// Makes an empty migration with the next version in a folder, and gives its name.
    ///
    /// The version is the last one plus one, as wide; in a folder of 14-digit time stamps it is the time. `now` is in
    /// microseconds since 1970.
    public static func create(_ title: String, in directory: String, now: Int64) throws(MigrationError) -> String {
        let words = title.lowercased().split { !($0.isASCII && ($0.isLetter || $0.isNumber)) }
        guard !words.isEmpty else {
            throw MigrationError(.usage, "\"\(title)\" gives no file name", hint: "Say what it does: add_scores")
        }
        let existing = (try? Folder(path: directory).names()) ?? []
        let last: MigrationFile?
        if existing.contains(where: { !$0.hasPrefix(".") && $0.hasSuffix(".sql") }) {
            last = try MigrationSet(name: "new", directory: directory).files.last
        } else {
            last = nil
        }
        let version = next(after: last.map { String($0.writtenVersion) }, now: now)
        let name = "\(version)_\(words.joined(separator: "_")).sql"
        guard (last?.writtenVersion).map({ $0.utf8.lexicographicallyPrecedes(version.utf8) }) ?? true else {
            throw MigrationError(
                .usage, "the versions have no room: \(version) would be listed before \(last?.name ?? "")",
                hint: "Begin a wider series by hand, such as \(last?.writtenVersion ?? "")0_….sql.")
        }
        let text = """
            -- \(name): what it is for.
            -- Locks: which, on which tables, for how long. Older daemons: affected or not, and why.

            """
        do throws(Folder.Failure) {
            try Folder(path: directory).write(name, Array(text.utf8))
        } catch {
            throw MigrationError(.usage, "cannot write \(directory)/\(name): \(error.reason)")
        }
        return name
    }

    private static func next(after last: String?, now: Int64) -> String {
        guard let last else { return "0001" }
        var digits = Array(last.utf8)
        var index = digits.count - 1
        while index >= 0 {
            if digits[index] != UInt8(ascii: "9") {
                digits[index] += 1
                break
            }
            digits[index] = UInt8(ascii: "0")
            index -= 1
        }
        let successor = (index < 0 ? "1" : "") + String(decoding: digits, as: UTF8.self)
        guard last.utf8.count == 14 else { return successor }
        let stamp = String(Timestamp.text(microseconds: now).filter(\.isNumber).prefix(14))
        return max(stamp, successor)
    }
}
