import Arguments
import Foundation
import Postgres
import SyncServer

/// `ieumd invite`: makes, lists and cancels the codes that let new players in.
struct InviteCommand {
    static let spec = CommandSpec(
        "ieumd invite", "make codes that let new players in, one each; for ieumd serve --registration invite",
        options: [
            OptionSpec("count", "N", default: "1", help: "how many codes"),
            OptionSpec(
                "expires", "AGE", default: "7d", help: "how long they may be used: a number with h, d or w"),
            OptionSpec("list", help: "list the codes, without their secrets"),
            OptionSpec("cancel", "ID", help: "cancel the unused code whose first four characters these are"),
            OptionSpec("json", help: "say it as JSON"),
        ] + DatabaseChoice.options,
        examples: [
            "ieumd invite", "ieumd invite --count 20 --expires 4w", "ieumd invite --list", "ieumd invite --cancel 7K3M",
        ],
        exitCodes: [
            (0, "done"), (1, "there is no such unused code"), (2, "usage"),
            (4, "the database cannot be reached or changed"),
        ])

    private enum Work {
        case make(count: Int, lifetime: Int64)
        case list
        case cancel(String)
    }

    private let choice: DatabaseChoice
    private let work: Work
    private let isJSON: Bool

    /// Checks the arguments.
    init(_ arguments: [String], environment: [String: String]) throws(UsageError) {
        let parsed = try ParsedArguments(arguments, of: Self.spec, environment: environment)
        choice = try DatabaseChoice(parsed, environment: environment)
        isJSON = parsed.flag("json")
        let text = parsed.string("expires") ?? ""
        guard let lifetime = Age.microseconds(text) else {
            throw UsageError(
                "--expires takes a whole number from 1 with h, d or w, up to 100 years, not \"\(text)\"",
                usage: Self.spec.usage)
        }
        let count = try parsed.integer("count", in: 1...10_000) ?? 1
        switch (parsed.flag("list"), parsed.string("cancel")) {
        case (true, nil): work = .list
        case (false, let id?): work = .cancel(id.uppercased())
        case (false, nil): work = .make(count: count, lifetime: lifetime)
        default: throw UsageError("--list and --cancel do not go together", usage: Self.spec.usage)
        }
    }

    /// Does it; gives the exit code.
    func run() -> Int32 {
        choice.withConnection(for: "invite") { connection in
            let invites = Invites(connection)
            switch work {
            case .make(let count, let lifetime): return try make(count, lifetime, invites)
            case .list:
                let list = try invites.list()
                if isJSON {
                    Console.json(list)
                } else {
                    Console.table(
                        ["ID", "MADE (UTC)", "EXPIRES (UTC)", "STATE", "USED (UTC)", "PLAYER"],
                        list.map {
                            [
                                $0.id, $0.created.shortTime, $0.expires.shortTime, $0.state,
                                $0.redeemed?.shortTime ?? "-",
                                $0.player ?? "-",
                            ]
                        })
                }
                return 0
            case .cancel(let id):
                guard try invites.cancel(id) else {
                    Console.error("there is no unused code \(id.prefix(60))", hint: "List them: ieumd invite --list")
                    return 1
                }
                if isJSON { Console.json(["cancelled": id]) } else { Console.output("\(id) is cancelled\n") }
                return 0
            }
        }
    }

    private func make(_ count: Int, _ lifetime: Int64, _ invites: Invites) throws -> Int32 {
        var made: [Invites.Made] = []
        for _ in 0..<count {
            let invite = try invites.make(lifetime: lifetime)
            // Each as it is made: one that was stored and not shown would be lost.
            if isJSON { made.append(invite) } else { Console.output("\(invite.code)\n") }
        }
        if isJSON {
            Console.json(made)
        } else if isatty(STDERR_FILENO) == 1 {
            Console.talk(
                "Each lets one new player in, and is not shown again. There:\n"
                    + "  IEUM_INVITE=CODE ieum register --server HOST:PORT --device NAME\n")
        }
        return 0
    }
}
