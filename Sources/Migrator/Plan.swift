/// What a set of files and a history make of each other: the state of every version, what to run, and what forbids it.
public struct Plan: Equatable, Sendable {
    /// What is known about one version.
    public enum State: String, Sendable {
        /// Done, with the text that the file has now.
        case applied
        /// Still to be run.
        case pending
        /// Still to be run, but a later one is applied already.
        case outOfOrder = "out-of-order"
        /// Applied with another text than the file has now.
        case changed
        /// Applied, but there is no such file.
        case missing
        /// A file without a transaction that was begun and not finished.
        case running
        /// Applied by a newer program: later than every file here.
        case ahead
    }

    /// One version, from the files or the history or both.
    public struct Row: Equatable, Sendable {
        /// The version.
        public var version: Version
        /// The name: the file's, or else the one in the history.
        public var name: String
        /// The state.
        public var state: State
        /// What the history holds.
        public var history: HistoryRow?
    }

    /// One file to run.
    struct Step: Equatable, Sendable {
        var file: MigrationFile
        /// Where to go on, for a file that was begun; nil for a fresh one.
        var resuming: StatementProgress?
    }

    /// All versions in order.
    public let rows: [Row]
    /// What to run, in order. To be run only when there are no conflicts.
    let steps: [Step]
    /// Why nothing may be run.
    public let conflicts: [Problem]

    /// Compares files and history.
    ///
    /// - Parameters:
    ///   - target: the last version to run; nil for all.
    ///   - allowed: versions that may run although later ones are applied.
    ///   - command: how the program is called, for the commands in the hints.
    init(
        set: MigrationSet, history: [HistoryRow], to target: Version? = nil, allowing allowed: Set<Version> = [],
        command: Migrator.CommandLine = "migrate"
    ) {
        let known = Dictionary(history.map { ($0.version, $0) }) { first, _ in first }
        let files = Dictionary(set.files.map { ($0.version, $0) }) { first, _ in first }
        let lastFile = set.files.last?.version
        let lastApplied = known.keys.max()
        let hints = Hints(command: command)
        var rows: [Row] = []
        var steps: [Step] = []
        var conflicts: [Problem] = []
        for version in Swift.Set(known.keys).union(files.keys).sorted() {
            let isWanted = target.map { version <= $0 } ?? true
            switch (files[version], known[version]) {
            case (let file?, nil):
                let isLate = lastApplied.map { version < $0 } ?? false
                rows.append(Row(version: version, name: file.name, state: isLate ? .outOfOrder : .pending))
                guard isWanted else { break }
                if isLate, !allowed.contains(version) {
                    conflicts.append(hints.outOfOrder(file, after: known[lastApplied ?? version]))
                } else {
                    steps.append(Step(file: file))
                }
            case (let file?, let row?) where row.state == .running:
                rows.append(Row(version: version, name: file.name, state: .running, history: row))
                let script = SQLScript(file.bytes)
                if file.mode == .noTransaction, row.progress.isPrefix(of: script, in: file.bytes) {
                    if isWanted { steps.append(Step(file: file, resuming: row.progress)) }
                } else {
                    conflicts.append(hints.unfinished(row, file: file))
                }
            case (let file?, let row?):
                let isSame = row.checksum == file.checksum
                rows.append(Row(version: version, name: file.name, state: isSame ? .applied : .changed, history: row))
                if !isSame { conflicts.append(hints.changed(row, file: file)) }
            case (nil, let row?):
                let isAhead = lastFile.map { version > $0 } ?? true
                rows.append(Row(version: version, name: row.name, state: isAhead ? .ahead : .missing, history: row))
                conflicts.append(isAhead ? hints.ahead(row) : hints.missing(row))
            case (nil, nil):
                break
            }
        }
        self.rows = rows
        self.steps = steps
        self.conflicts = conflicts
    }

    /// How many files are still to be run, the unfinished one included.
    public var pendingCount: Int {
        rows.count { $0.state == .pending || $0.state == .outOfOrder || $0.state == .running }
    }

    /// Whether the database holds versions later than every file here.
    public var isAhead: Bool { rows.contains { $0.state == .ahead } }

    /// Whether every file is applied as it stands, and nothing else is.
    public var isCurrent: Bool { rows.allSatisfy { $0.state == .applied } }
}

extension Plan.Row {
    init(version: Version, name: String, state: Plan.State) {
        self.init(version: version, name: name, state: state, history: nil)
    }
}

/// The messages about a history and files that disagree, each with the next command to type.
struct Hints {
    let command: Migrator.CommandLine

    func outOfOrder(_ file: MigrationFile, after row: HistoryRow?) -> Problem {
        let later = row.map { " (\($0.name))" } ?? ""
        return Problem(
            "not applied, though a later version is\(later)", file: file.name,
            hint: "Give the file a new, highest version; or, when it does not matter that it runs late: "
                + command("up --allow-out-of-order \(file.version)"))
    }

    func changed(_ row: HistoryRow, file: MigrationFile) -> Problem {
        Problem(
            "changed since it was applied: checksum \(row.checksum.hex.prefix(12))… then, "
                + "\(file.checksum.hex.prefix(12))… now", file: file.name,
            hint: "Put the file back as it was and write the change as a new migration; "
                + "or, when the change means nothing to the database: \(command("repair \(row.version)"))")
    }

    func missing(_ row: HistoryRow) -> Problem {
        Problem(
            "applied, but there is no such file any more", file: row.name,
            hint: "Put the file back; or, to forget that it was applied: "
                + command("resolve \(row.version) --not-applied"))
    }

    func ahead(_ row: HistoryRow) -> Problem {
        Problem(
            "the database is ahead: applied by a newer program, unknown to this one", file: row.name,
            hint: "Run a program at least as new as the one that applied it"
                + (row.applicationVersion.map { ", \($0)" } ?? "") + ".")
    }

    func unfinished(_ row: HistoryRow, file: MigrationFile) -> Problem {
        Problem(
            "begun and not finished: \(row.progress.count) of its statements are done, "
                + "and the file no longer begins with them", file: file.name,
            hint: "Put the statements back that were done, so that it can go on; or finish by hand what is left and "
                + "then: \(command("resolve \(row.version) --applied")); or undo by hand what was done and then: "
                + command("resolve \(row.version) --not-applied"))
    }
}
