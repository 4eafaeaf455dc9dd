import Arguments
import Glibc

/// What the command line asks for.
struct BenchOptions {
    var plan: BenchPlan
    var parts: [Part]
    var jsonPath: String
    var daemon: String
    var folder: String

    /// The parts of a run, in order.
    enum Part: String, CaseIterable {
        case push, tls, pull, notice, idle, stored, client
        /// Not about speed, so only when asked for: all of the three behind it.
        case hostile
        case soak, crowd, floods

        /// What is measured when nothing is said.
        static let usual: [Part] = [.push, .tls, .pull, .notice, .idle, .stored, .client]
    }

    static let spec = CommandSpec(
        "ieum-bench", "measure pushes, pulls, notices and the client library against yardsticks",
        options: [
            OptionSpec("quick", help: "less of everything, in under two minutes"),
            OptionSpec(
                "only", "PARTS",
                help: "only these, with commas: \(Part.allCases.map(\.rawValue).joined(separator: ", "))"),
            OptionSpec(
                "floods", "KINDS",
                help: "of the floods only these, with commas: \(Flood.allCases.map(\.rawValue).joined(separator: ", "))"
            ),
            OptionSpec("json", "PATH", default: ".build/bench.json", help: "where the figures go as flat JSON"),
            OptionSpec("daemon", "PATH", help: "the ieumd to measure; by default the one beside this program"),
            OptionSpec(
                "folder", "PATH", default: "/var/tmp", environment: "TMPDIR",
                help: "where the databases are made and removed, on a real disk; a full run takes some 10 GB"),
            OptionSpec("help", help: "print this"),
        ],
        examples: ["make bench-quick", "make bench ARGS='--only push,notice'"],
        exitCodes: [
            (0, "measured, whatever the figures are"), (1, "could not measure"), (2, "usage"), (130, "interrupted"),
        ])

    init(_ arguments: ParsedArguments) throws(UsageError) {
        plan = arguments.flag("quick") ? .quick : .full
        parts = try Self.chosen(arguments.string("only")) ?? Part.usual
        if let floods: [Flood] = try Self.chosen(arguments.string("floods")) { plan.hostile.floods = floods }
        jsonPath = arguments.string("json") ?? ".build/bench.json"
        folder = arguments.string("folder") ?? "/var/tmp"
        daemon = arguments.string("daemon") ?? Self.neighbour("ieumd")
    }

    /// What a list with commas names; nil where there is none.
    private static func chosen<Choice: CaseIterable & RawRepresentable<String>>(
        _ list: String?
    ) throws(UsageError) -> [Choice]? {
        guard let list else { return nil }
        var choices: [Choice] = []
        for name in list.split(separator: ",") {
            guard let choice = Choice(rawValue: String(name)) else {
                let near = nearest(to: String(name), in: Choice.allCases.map(\.rawValue)).map {
                    "; did you mean \($0)?"
                }
                throw UsageError("there is nothing called \(name) to measure\(near ?? "")", usage: Self.spec.usage)
            }
            choices.append(choice)
        }
        return choices
    }

    /// A program in the folder of this one.
    private static func neighbour(_ name: String) -> String {
        var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
        let count = readlink("/proc/self/exe", &buffer, buffer.count)
        let path = String(decoding: buffer.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
        return "\(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])/\(name)"
    }
}
