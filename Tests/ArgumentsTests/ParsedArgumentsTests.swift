import Arguments
import Testing

private let spec = CommandSpec(
    "ieum push", "store one game on the server", positionals: ["<collection>", "<id>", "[note]"],
    options: [
        OptionSpec("file", "PATH", help: "where the state is"),
        OptionSpec("base", "REVISION", environment: "IEUM_BASE", help: "the revision last seen"),
        OptionSpec("wait", "SECONDS", default: "2.5", help: "how long to wait"),
        OptionSpec("json", help: "print JSON"),
    ])

@Test("options come in any order and both spellings, and defaults and the environment fill what is missing")
func takesOptions() throws {
    let parsed = try ParsedArguments(
        ["--json", "a", "--file=x=y", "b"], of: spec, environment: ["IEUM_BASE": "41"])
    #expect(parsed.positionals == ["a", "b"])
    #expect(parsed.string("file") == "x=y")
    #expect(try parsed.integer("base", in: 0...100) == 41)
    #expect(try parsed.seconds("wait", in: 0...10) == .milliseconds(2500))
    #expect(parsed.flag("json"))
    #expect(parsed.positional(2) == nil)
}

@Test("what follows -- is positional, a lone dash too")
func takesPositionals() throws {
    let parsed = try ParsedArguments(["-", "--", "--file"], of: spec)
    #expect(parsed.positionals == ["-", "--file"])
}

@Test(
    "a wrong call says what is wrong",
    arguments: [
        (["a"], "<id> is missing"),
        (["a", "b", "c", "d"], "\"d\" is one argument too many"),
        (["a", "b", "--fiel", "x"], "there is no option --fiel; did you mean --file?"),
        (["a", "b", "-f"], "there is no option -f"),
        (["a", "b", "--file"], "--file needs a value"),
        (["a", "b", "--json=1"], "--json takes no value"),
        (["a", "b", "--file", "x", "--file", "y"], "--file is given twice"),
    ])
func refuses(arguments: [String], message: String) {
    #expect { try ParsedArguments(arguments, of: spec) } throws: { error in
        (error as? UsageError)?.message == message
    }
}

@Test("a number outside its range names option, value and range", arguments: ["-1", "101", "x", "9999999999999999999"])
func refusesNumbers(text: String) throws {
    let parsed = try ParsedArguments(["a", "b", "--base=\(text)"], of: spec)
    #expect { try parsed.integer("base", in: 0...100) } throws: { error in
        (error as? UsageError)?.message == "--base takes a whole number from 0 to 100, not \"\(text)\""
    }
}

@Test("help names every option and its default")
func printsHelp() {
    let help = spec.help
    for option in spec.options { #expect(help.contains("--\(option.name)")) }
    #expect(help.contains("default 2.5"))
    #expect(help.contains("$IEUM_BASE"))
    #expect(
        spec.usage
            == "ieum push <collection> <id> [note] [--file PATH] [--base REVISION] [--wait SECONDS] [--json]")
}
