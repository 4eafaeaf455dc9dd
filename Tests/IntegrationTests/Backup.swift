import TestSupport
import Testing

/// A backup as an operator makes it.
enum Backup {
    /// Dumps a database into a file.
    static func take(of database: TestDatabase, to file: String) throws {
        let dumped = try Programs.runInstalled(["pg_dump", "-Fc", "-f", file, "-d", database.conninfo])
        #expect(dumped.status == 0, "\(dumped.error)")
    }

    /// Brings a dump back in place of what is there. The epoch is another command's.
    static func bringBack(_ file: String, to database: TestDatabase) throws {
        let restored = try Programs.runInstalled([
            "pg_restore", "--clean", "--if-exists", "-d", database.conninfo, file,
        ])
        #expect(restored.status == 0, "\(restored.error)")
    }
}
