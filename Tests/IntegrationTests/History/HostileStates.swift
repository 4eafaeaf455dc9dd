import TestSupport

/// JSON that no app should have pushed as a game of 한들.
enum HostileStates {
    /// Those whose reasons are known come first.
    static let chosen: [String] =
        ["[1]", "null", "\"text\"", "3", "{\"a\":\"\\u0000\"}"] + [
            "{\"id\":\"\\ud800\"}", "{}", "{\"gameNumber\":1e400000}", "{\"gameNumber\":9223372036854775808}",
            "{\"gameNumber\":-1e130000}", "{\"currentRow\":0.5}", "{\"jamoCount\":-0}", "{\"answerBoard\":[[[[]]],{}]}",
            "{\"answerBoard\":[[{\"jamo\":\"ㄲ\",\"mark\":\"none\"}]]}", "{\"answerBoard\":\"W10=\"}",
            "{\"timestamp\":\"2026-02-30T10:00:00Z\"}", "{\"timestamp\":\"9999-99-99T99:99:99Z\"}",
            "{\"id\":\"x\",\"id\":7}", "{\"\":{\"\":[]}}",
            String(repeating: "[", count: 3_000) + String(repeating: "]", count: 3_000),
            "{\"answerBoard\":" + String(repeating: "[", count: 3_000) + String(repeating: "]", count: 3_000) + "}",
        ]

    static let reasons: [(number: Int, problem: String)] = [
        (0, "the state is not an object: array"), (1, "deleted"), (2, "the state is not an object: string"),
        (3, "the state is not an object: number"), (4, "the state cannot be read as jsonb"),
    ]

    private static let keys = [
        "id", "timestamp", "gameNumber", "answer", "jamoCount", "currentRow", "currentColumn", "isGameFinished",
        "didPlayerWin", "didPlayerLose", "answerBoard", "keyBoard",
    ]

    /// An object with the game's keys and anything in them.
    static func random(using random: inout SeededRandom) -> String {
        if Int.random(in: 0..<20, using: &random) == 0 { return value(2, using: &random) }
        let pairs = keys.filter { _ in Int.random(in: 0..<5, using: &random) > 0 }.map { key in
            let value = Bool.random(using: &random) ? fit(key, using: &random) : value(3, using: &random)
            return "\"\(key)\":\(value)"
        }
        return "{\(pairs.joined(separator: ","))}"
    }

    private static func fit(_ key: String, using random: inout SeededRandom) -> String {
        switch key {
        case "id", "answer": "\"사람\""
        case "timestamp": "\"2026-11-30T10:00:0\(Int.random(in: 0...9, using: &random)).5Z\""
        case "answerBoard":
            "["
                + (0..<Int.random(in: 0...6, using: &random)).map { _ in row(using: &random) }.joined(separator: ",")
                + "]"
        case "keyBoard": "{\"rows\":[]}"
        case "gameNumber", "jamoCount", "currentRow", "currentColumn": "\(Int.random(in: -1...7, using: &random))"
        default: Bool.random(using: &random) ? "true" : "false"
        }
    }

    private static func row(using random: inout SeededRandom) -> String {
        if Int.random(in: 0..<30, using: &random) == 0 { return value(2, using: &random) }
        let cells = (0..<5).map { _ -> String in
            let mark = ["none", "absent", "wrongPlace", "rightPlace"].randomElement(using: &random) ?? ""
            return "{\"jamo\":\"\(["", "ㅅ", "ㅏ", "ㄹ"].randomElement(using: &random) ?? "")\",\"mark\":\"\(mark)\"}"
        }
        return "[\(cells.joined(separator: ","))]"
    }

    private static func value(_ depth: Int, using random: inout SeededRandom) -> String {
        let scalars = [
            "null", "true", "0", "-1", "7", "1e400", "-2147483649", "9223372036854775808", "0.1", "\"\"", "\"ㅅ\"",
            "\"\\u0000\"", "\"\\udc00\"", "\"2026-11-30T10:00:00Z\"", "\"true\"", "[]", "{}",
        ]
        guard depth > 0, Int.random(in: 0..<3, using: &random) == 0 else {
            return scalars.randomElement(using: &random) ?? "0"
        }
        let parts = (0..<Int.random(in: 0...3, using: &random)).map { _ in value(depth - 1, using: &random) }
        guard Bool.random(using: &random) else { return "[\(parts.joined(separator: ","))]" }
        return "{"
            + parts.enumerated().map { "\"\(["jamo", "mark", "rows"][$0.offset])\":\($0.element)" }
            .joined(separator: ",") + "}"
    }
}
