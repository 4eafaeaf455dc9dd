import Testing

@testable import Migrator

@Suite("A plan")
struct PlanTests {
    private func set(_ numbers: Int..., prefix: String = "SELECT") throws -> MigrationSet {
        try MigrationSet(name: "test", embedded: numbers.map { ("000\($0)_file.sql", "\(prefix) \($0);") })
    }

    private func rows(_ set: MigrationSet) -> [HistoryRow] {
        set.files.map { HistoryRow(version: $0.version, name: $0.name, checksum: $0.checksum) }
    }

    private func version(_ text: String) throws -> Version { try #require(Version(text)) }

    @Test("runs everything on an empty history, in order")
    func fresh() throws {
        let plan = Plan(set: try set(1, 2, 3), history: [])
        #expect(plan.steps.map(\.file.name) == ["0001_file.sql", "0002_file.sql", "0003_file.sql"])
        #expect(plan.pendingCount == 3 && !plan.isCurrent && !plan.isAhead && plan.conflicts.isEmpty)
    }

    @Test("runs nothing when all is applied")
    func current() throws {
        let set = try set(1, 2)
        let plan = Plan(set: set, history: rows(set))
        #expect(plan.isCurrent && plan.steps.isEmpty && plan.conflicts.isEmpty && plan.pendingCount == 0)
    }

    @Test("stops at the version asked for")
    func target() throws {
        let plan = Plan(set: try set(1, 2, 3), history: [], to: try version("0002"))
        #expect(plan.steps.map(\.file.version.digits) == ["1", "2"])
        #expect(plan.pendingCount == 3)
    }

    @Test("refuses a late file, by its name, unless that version is allowed")
    func outOfOrder() throws {
        let (set, history) = (try set(1, 2, 3), rows(try set(1, 3)))
        let plan = Plan(set: set, history: history)
        #expect(plan.rows.map(\.state) == [.applied, .outOfOrder, .applied])
        #expect(plan.conflicts.map(\.file) == ["0002_file.sql"])
        #expect(plan.conflicts.first?.hint?.contains("migrate up --allow-out-of-order 2") == true)
        let allowed = Plan(set: set, history: history, allowing: [try version("2")])
        #expect(allowed.conflicts.isEmpty)
        #expect(allowed.steps.map(\.file.name) == ["0002_file.sql"])
        #expect(Plan(set: set, history: history, allowing: [try version("3")]).conflicts.count == 1)
    }

    @Test("names every changed, missing and newer file at once")
    func conflicts() throws {
        let history = rows(try set(1, 2, 4, 7, prefix: "select"))
        let plan = Plan(set: try set(1, 4, 5), history: history)
        #expect(plan.rows.map(\.state) == [.changed, .missing, .changed, .outOfOrder, .ahead])
        #expect(plan.conflicts.count == 5)
        #expect(plan.conflicts.allSatisfy { $0.hint != nil })
        #expect(plan.isAhead)
    }

    @Test("a renamed file with the same version and text is still applied")
    func renamed() throws {
        let set = try MigrationSet(name: "test", embedded: [("01_better_name.sql", "SELECT 1;")])
        #expect(Plan(set: set, history: rows(try self.set(1))).isCurrent)
    }

    @Test("an unfinished file goes on where it stopped if the statements done are still its first")
    func unfinished() throws {
        func file(_ text: String) throws -> MigrationSet {
            try MigrationSet(name: "test", embedded: [("0001_a.sql", "-- migrate: no-transaction\n" + text)])
        }
        var row = try #require(rows(try file("SELECT 1; SELECT 2;")).first)
        row.state = .running
        row.progress.append("SELECT 1;".utf8)

        let mended = Plan(set: try file("/* mended */ SELECT 1; SELECT 3;"), history: [row])
        #expect(mended.steps.map(\.resuming?.count) == [1])
        #expect(mended.conflicts.isEmpty && mended.pendingCount == 1 && !mended.isCurrent)

        for other in ["SELECT 2; SELECT 1;", "-- nothing", "SELECT 1 ;"] {
            let plan = Plan(set: try file(other), history: [row])
            #expect(plan.steps.isEmpty)
            #expect(plan.conflicts.first?.hint?.contains("migrate resolve 1 --applied") == true)
        }
        let transactional = try MigrationSet(name: "test", embedded: [("0001_a.sql", "SELECT 1;")])
        #expect(Plan(set: transactional, history: [row]).conflicts.count == 1)
    }
}
