import Arguments
import Glibc

/// One run: a test bed, the parts that were asked for, the table, the JSON.
enum Bench {
    /// Runs the program.
    /// - Returns: its exit code.
    static func main(_ arguments: [String]) -> Int32 {
        // A process of our own for the measures of `hostile`.
        if arguments.first == "flood" { return Attacker.main(Array(arguments.dropFirst())) }
        do {
            let parsed = try ParsedArguments(
                arguments, of: BenchOptions.spec, environment: environmentValue("TMPDIR").map { ["TMPDIR": $0] } ?? [:])
            if parsed.flag("help") {
                print(BenchOptions.spec.help, terminator: "")
                return 0
            }
            try run(BenchOptions(parsed))
            return 0
        } catch let error as UsageError {
            writeError("ieum-bench: \(error.message)\n\(error.usage.map { "Usage: \($0)\n" } ?? "")")
            return 2
        } catch is Interrupted {
            writeError("ieum-bench: interrupted\n")
            return 130
        } catch {
            writeError("ieum-bench: \(error)\n")
            return 1
        }
    }

    private static func run(_ options: BenchOptions) throws {
        var plan = options.plan
        // A connection takes a descriptor on either side, here and in the daemon.
        let files = Machine.raiseFileLimit(to: 65_536)
        if plan.watchers > files - 1_000 {
            plan.watchers = max(files - 1_000, 1)
            writeError("ieum-bench: only \(files) open files are allowed: \(plan.watchers) watching connections\n")
        }
        if plan.hostile.crowd > files - 100 {
            plan.hostile.crowd = max(files - 100, 100)
            writeError("ieum-bench: only \(files) open files are allowed: a crowd of \(plan.hostile.crowd)\n")
        }
        let progress = Progress()
        var figures = Figures()
        figures.set("processors", Double(Machine.processors))
        figures.set("load_before", try Machine.load())
        progress.say("starting PostgreSQL in \(options.folder)")
        let states = GameStates()
        let conductor = try Conductor()
        let bed = try TestBed(conductor, daemon: options.daemon, parent: options.folder)
        let forcedWrite = try Machine.forcedWriteMicroseconds(in: bed.folder)
        figures.set("forced_write_us", forcedWrite)
        if forcedWrite < 10 {
            writeError(
                "ieum-bench: \(options.folder) is not on a disk that keeps what is forced; --folder names another\n")
        }
        do {
            for part in options.parts {
                try measure(part, Setting(bed: bed, plan: plan, states: states, progress: progress), into: &figures)
            }
        } catch {
            // What was measured before the failure took its time: show it.
            print(Table(figures: figures).text, terminator: "")
            throw error
        }
        progress.say("done")
        try makeParent(of: options.jsonPath)
        try writeFile(options.jsonPath, figures.json)
        print(Table(figures: figures).text, terminator: "")
        print(
            "All figures: \(options.jsonPath). How each is made and what it does not say: Documentation/benchmarks.md")
    }

    private static func measure(_ part: BenchOptions.Part, _ setting: Setting, into figures: inout Figures) throws {
        switch part {
        case .push: try PushMeasure(setting).run(into: &figures)
        case .tls: try TLSMeasure(setting).run(into: &figures)
        case .pull: try PullMeasure(setting).run(into: &figures)
        case .notice: try NoticeMeasure(setting).run(into: &figures)
        case .idle: try IdleMeasure(setting).run(into: &figures)
        case .stored: try StoredMeasure(setting).run(into: &figures)
        case .client: try ClientMeasure(setting).run(into: &figures)
        case .hostile: try HostileMeasure(setting).run(into: &figures)
        case .soak: try SoakMeasure(setting).run(into: &figures)
        case .crowd: try CrowdMeasure(setting).run(into: &figures)
        case .floods: try FloodMeasure(setting).run(into: &figures)
        }
    }

    private static func environmentValue(_ name: String) -> String? {
        getenv(name).map { String(cString: $0) }
    }

    private static func makeParent(of path: String) throws {
        guard let slash = path.lastIndex(of: "/"), slash > path.startIndex else { return }
        let folder = String(path[..<slash])
        guard mkdir(folder, 0o755) == 0 || errno == EEXIST else { throw BenchError.system("cannot make \(folder)") }
    }
}
