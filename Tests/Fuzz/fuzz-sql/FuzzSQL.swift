import FuzzSupport

@testable import Migrator

/// Any text is cut without gaps, and a statement cut out is one statement.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzSQL(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let text = FuzzInput(start, count).rest
    let script = SQLScript(text)
    var end = 0
    for part in script.parts {
        hold(part.range.lowerBound == end, "the parts follow one another")
        end = part.range.upperBound
        guard let statement = part.statement else { continue }
        hold(
            part.range.lowerBound <= statement.range.lowerBound && statement.range.upperBound <= part.range.upperBound
                && !statement.range.isEmpty, "a statement lies in its part")
        hold(statement.words.count <= SQLStatement.maxWords, "the words are bounded")
    }
    hold(script.parts.isEmpty || end == text.count, "the parts give the text back")
    hold(script.faults.allSatisfy { 0...text.count ~= $0.offset }, "a fault lies in the text")
    guard script.faults.isEmpty, text.count <= 512 else { return 0 }
    for statement in script.statements {
        let alone = SQLScript(Array(text[statement.range]))
        hold(alone.statements.count == 1, "a statement alone is one statement")
        hold(alone.statements.first?.words == statement.words, "its words are the same alone")
    }
    return 0
}
