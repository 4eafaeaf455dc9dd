import Arguments
import Foundation

extension MigrateCall {
    func up() throws(MigrationError) -> Int32 {
        let result = try withMigrator(onApplied: { if !isJSON { command.output($0.shownOnOneLine + "\n") } }) {
            migrator throws(MigrationError) in
            try migrator.up(to: version)
        }
        print(
            result.applied.isEmpty ? ["up to date"] : [],
            .object(["ok": .bool(true), "applied": MigrateCommand.json(of: result.applied)]))
        return 0
    }

    func dryRun() throws(MigrationError) -> Int32 {
        let wantsRehearsal = arguments.flag("verify")
        let (files, rehearsal) = try withMigrator { migrator throws(MigrationError) in
            let files = try migrator.pending(to: version)
            let rehearsal = wantsRehearsal && !files.isEmpty ? try migrator.rehearse(to: version) : nil
            return (files, rehearsal)
        }
        func outcome(_ file: MigrationFile) -> String? {
            guard let rehearsal else { return nil }
            if rehearsal.passed.contains(file.name) { return "verified" }
            return rehearsal.skipped.first { $0.name == file.name }.map { "not verified: \($0.reason)" }
        }
        var lines = files.map { file in
            let parts = [file.name, file.mode.rawValue, String(file.checksum.hex.prefix(12)), outcome(file)]
            return "pending  " + parts.compactMap(\.self).joined(separator: "  ")
        }
        if files.isEmpty { lines.append("up to date") }
        if rehearsal != nil { lines.append("rolled back; nothing was changed") }
        print(
            lines,
            .object([
                "ok": .bool(true),
                "pending": .array(
                    files.map { file in
                        .object([
                            "version": .string(file.version.digits), "name": .string(file.name),
                            "mode": .string(file.mode.rawValue), "checksum": .string(file.checksum.hex),
                            "verified": outcome(file).map { .bool($0 == "verified") } ?? .null,
                            "reason": JSONValue(rehearsal?.skipped.first { $0.name == file.name }?.reason),
                        ])
                    }),
            ]))
        return 0
    }

    func status() throws(MigrationError) -> Int32 {
        let plan = try withMigrator { migrator throws(MigrationError) in try migrator.status() }
        var table = [["VERSION", "NAME", "STATE", "APPLIED AT", "MS"]]
        for row in plan.rows {
            let written = row.name.prefix { $0.isNumber }
            let isDone = row.history.map { $0.state == .applied } ?? false
            table.append([
                written.isEmpty ? row.version.digits : String(written), row.name, row.state.rawValue,
                row.history.map { Timestamp.text(microseconds: $0.appliedAt) } ?? "",
                isDone ? row.history.map { String($0.durationMilliseconds) } ?? "" : "",
            ])
        }
        print(Self.aligned(table), Self.json(of: plan))
        if !isJSON { command.errorOutput(summary(plan).shown) }
        guard arguments.flag("check") else { return 0 }
        return !plan.conflicts.isEmpty ? 3 : plan.isCurrent ? 0 : 6
    }

    private func summary(_ plan: Plan) -> String {
        var text = plan.conflicts.map { $0.description + "\n" }.joined()
        if plan.isAhead { text += "database is ahead\n" }
        if plan.isCurrent {
            text += "up to date\n"
        } else if plan.conflicts.isEmpty {
            text += "\(plan.pendingCount) pending: \(options.command("up"))\n"
        }
        return text
    }

    private static func json(of plan: Plan) -> JSONValue {
        let state =
            plan.isCurrent ? "current" : plan.isAhead ? "ahead" : plan.conflicts.isEmpty ? "pending" : "conflict"
        return .object([
            "ok": .bool(plan.conflicts.isEmpty), "state": .string(state), "pending": .number(Int64(plan.pendingCount)),
            "migrations": .array(
                plan.rows.map { row in
                    .object([
                        "version": .string(row.version.digits), "name": .string(row.name),
                        "state": .string(row.state.rawValue),
                        "appliedAt": JSONValue(row.history.map { Timestamp.text(microseconds: $0.appliedAt) }),
                        "milliseconds": row.history.map { .number($0.durationMilliseconds) } ?? .null,
                        "statementsDone": row.state == .running
                            ? row.history.map { .number(Int64($0.progress.count)) } ?? .null : .null,
                    ])
                }),
            "problems": .array(plan.conflicts.map { .string($0.description) }),
        ])
    }

    func history() throws(MigrationError) -> Int32 {
        let rows = try withMigrator { migrator throws(MigrationError) in try migrator.history() }
        var table = [["APPLIED AT", "NAME", "MODE", "MS", "BY", "PROGRAM", "CHECKSUM"]]
        for row in rows {
            table.append([
                Timestamp.text(microseconds: row.appliedAt), row.name,
                row.state == .running ? "running" : row.mode.rawValue,
                String(row.durationMilliseconds), row.appliedBy, row.applicationVersion ?? "",
                String(row.checksum.hex.prefix(12)),
            ])
        }
        print(
            Self.aligned(table),
            .object([
                "ok": .bool(true),
                "history": .array(
                    rows.map { row in
                        .object([
                            "version": .string(row.version.digits), "name": .string(row.name),
                            "state": .string(row.state.rawValue), "mode": .string(row.mode.rawValue),
                            "appliedAt": .string(Timestamp.text(microseconds: row.appliedAt)),
                            "milliseconds": .number(row.durationMilliseconds), "appliedBy": .string(row.appliedBy),
                            "applicationVersion": JSONValue(row.applicationVersion),
                            "checksum": .string(row.checksum.hex),
                        ])
                    }),
            ]))
        return 0
    }

    func validate() throws(MigrationError) -> Int32 {
        let set = try set()
        let problems = set.files.flatMap { $0.problems(in: SQLScript($0.bytes)) }
        guard problems.isEmpty else { throw MigrationError(.file, problems) }
        print(
            ["\(set.files.count) \(set.files.count == 1 ? "migration" : "migrations"), no problems"],
            .object([
                "ok": .bool(true), "set": .string(set.name), "files": .number(Int64(set.files.count)),
                "ignored": .array(set.ignored.map(JSONValue.string)),
            ]))
        return 0
    }

    func new() throws(MigrationError) -> Int32 {
        let directory = arguments.string("dir") ?? "SQL/migrations"
        let now = Int64(Date().timeIntervalSince1970) * 1_000_000
        let name = try NewMigration.create(arguments.positional(0) ?? "", in: directory, now: now)
        let path = "\(directory)/\(name)"
        print([path], .object(["ok": .bool(true), "file": .string(path)]))
        return 0
    }

    func baseline() throws(MigrationError) -> Int32 {
        let version = try requiredVersion()
        let names = try withMigrator { migrator throws(MigrationError) in try migrator.baseline(version) }
        print(
            names.map { "taken as applied: \($0)" },
            .object(["ok": .bool(true), "baseline": .array(names.map(JSONValue.string))]))
        return 0
    }

    func repair() throws(MigrationError) -> Int32 {
        let version = try requiredVersion()
        let repair = try withMigrator { migrator throws(MigrationError) in try migrator.repair(version) }
        print(
            repair.before == repair.after
                ? ["\(repair.name): the checksum is right already"]
                : ["\(repair.name): checksum was \(repair.before)", "\(repair.name): checksum is  \(repair.after)"],
            .object([
                "ok": .bool(true), "name": .string(repair.name), "before": .string(repair.before.hex),
                "after": .string(repair.after.hex),
            ]))
        return 0
    }

    func resolve() throws(MigrationError) -> Int32 {
        let version = try requiredVersion()
        let isApplied = arguments.flag("applied")
        let name = try withMigrator { migrator throws(MigrationError) in
            try migrator.resolve(version, isApplied: isApplied)
        }
        print(
            ["\(name) is remembered as \(isApplied ? "applied" : "not applied")"],
            .object(["ok": .bool(true), "name": .string(name), "applied": .bool(isApplied)]))
        return 0
    }

    func dump() throws(MigrationError) -> Int32 {
        let text = try SchemaDump.run(database: database)
        if isJSON {
            print([], .object(["ok": .bool(true), "dump": .string(text)]))
        } else {
            command.output(text)
        }
        return 0
    }

    /// Columns as wide as their widest field; the last one is not filled up.
    private static func aligned(_ table: [[String]]) -> [String] {
        let table = table.map { $0.map(\.shownOnOneLine) }
        let count = table.first?.count ?? 0
        let widths = (0..<count).map { column in table.map { $0[column].count }.max() ?? 0 }
        return table.map { row in
            let line = zip(row, widths).map { $0 + String(repeating: " ", count: $1 - $0.count) }.joined(
                separator: "  ")
            return String(line.reversed().drop { $0 == " " }.reversed())
        }
    }
}
