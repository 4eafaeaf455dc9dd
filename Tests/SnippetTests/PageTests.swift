import Foundation
import Testing

/// The Swift code in the pages for game developers is code that this package compiles.
///
/// What a page shows stands in a source file between `// snippet` and `// end`, of which `// hide` to `// show` is left out;
/// the files of Examples/guess stand in the tutorial as a whole. A page and its code are brought together by the text
/// itself: there are no names to keep in step.
@Suite("pages show compiled code")
struct PageTests {
    static let pages =
        files(in: "Sources/IeumClient/IeumClient.docc", ending: ".md")
        + files(in: "Sources/Handle/Handle.docc", ending: ".md") + ["Documentation/client.md", "README.md"]

    @Test("every Swift block of a page is compiled as it stands", arguments: pages)
    func blocksAreCompiled(page: String) throws {
        let compiled = Set(try Self.snippets().map(\.text))
        for block in try Self.blocks(of: page) {
            let complaint = "\(page):\(block.line) is not what any source file has:\n\(block.text)"
            let isCompiled = compiled.contains(block.text)
            #expect(isCompiled, "\(complaint)")
        }
    }

    @Test("there are pages, and no block of a page has another fence than these", arguments: pages)
    func fencesAreKnown(page: String) throws {
        let blocks = try Self.text(of: page).split(separator: "\n").filter { $0.hasPrefix("```") }
        #expect(blocks.count % 2 == 0)
        #expect(Set(blocks).isSubset(of: ["```", "```swift", "```sh", "```json", "```mermaid"]))
        #expect(Self.pages.count >= 11)
    }

    @Test("every snippet is shown by a page")
    func snippetsAreShown() throws {
        var shown: Set<String> = []
        for page in Self.pages { shown.formUnion(try Self.blocks(of: page).map(\.text)) }
        for snippet in try Self.snippets() {
            let complaint = "\(snippet.file):\(snippet.line) is shown by no page:\n\(snippet.text)"
            let isShown = shown.contains(snippet.text)
            #expect(isShown, "\(complaint)")
        }
    }

    @Test("every call of Ieum's in the table of Realm's calls is in compiled code")
    func tableIsCompiled() throws {
        let page = "Sources/IeumClient/IeumClient.docc/ComingFromRealmSwift.md"
        let code = try Self.snippets().map(\.text).joined(separator: "\n")
        let rows = try Self.lines(of: page).filter { $0.hasPrefix("| ") && $0.contains("`") }
        #expect(rows.count > 20)
        for row in rows {
            let cells = row.split(separator: "|").map { $0.trimmingCharacters(in: .whitespaces) }
            #expect(cells.count == 2, "\(page): a row has two cells: \(row)")
            // A symbol's link is DocC's to check.
            let cell = (cells.last ?? "").replacing(/``[^`]+``/, with: "")
            for (index, call) in cell.split(separator: "`", omittingEmptySubsequences: false).enumerated()
            where index % 2 == 1 {
                let isCompiled = code.contains(call)
                #expect(isCompiled, "\(page): no compiled code has `\(call)`")
            }
        }
    }

    @Test("the tutorial's package is the example's, but for where Ieum is")
    func packageIsTheSame() throws {
        let example = try Self.text(of: "Examples/guess/Package.swift")
        let page = try Self.text(of: "Sources/IeumClient/IeumClient.docc/Tutorial.md")
        let shown = example.replacing(#".package(name: "ieum", path: "../..")"#, with: #".package(path: "../ieum")"#)
        #expect(shown != example)
        let isShown = page.contains(Self.trimmed(shown))
        #expect(isShown)
    }

    // MARK: Reading

    struct Block {
        var file: String
        var line: Int
        var text: String
    }

    static let root = URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
        .deletingLastPathComponent()

    static func files(in folder: String, ending suffix: String) -> [String] {
        let names = try? FileManager.default.contentsOfDirectory(atPath: root.appendingPathComponent(folder).path)
        return (names ?? []).filter { $0.hasSuffix(suffix) }.sorted().map { "\(folder)/\($0)" }
    }

    static func text(of file: String) throws -> String {
        try String(contentsOf: root.appendingPathComponent(file), encoding: .utf8)
    }

    static func lines(of file: String) throws -> [String] {
        try text(of: file).split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
    }

    /// The blocks of a page that are fenced as `swift`; package manifests, which are compiled elsewhere, are left out.
    static func blocks(of page: String) throws -> [Block] {
        var blocks: [Block] = []
        var current: (line: Int, lines: [String])?
        for (index, line) in try lines(of: page).enumerated() {
            if let (first, lines) = current {
                if line.trimmingCharacters(in: .whitespaces) == "```" {
                    current = nil
                    if lines.first?.hasPrefix("// swift-tools-version") == true { continue }
                    blocks.append(Block(file: page, line: first, text: trimmed(dedented(lines))))
                } else {
                    current?.lines.append(line)
                }
            } else if line.trimmingCharacters(in: .whitespaces) == "```swift" {
                current = (index + 1, [])
            }
        }
        return blocks
    }

    static func snippets() throws -> [Block] {
        var snippets: [Block] = []
        for file in files(in: "Examples/guess/Sources/guess", ending: ".swift") {
            snippets.append(Block(file: file, line: 1, text: trimmed(try text(of: file))))
        }
        let sources =
            files(in: "Tests/SnippetTests", ending: "Snippets.swift")
            + files(in: "Tests/IntegrationTests", ending: "Snippets.swift")
        for file in sources {
            var current: (line: Int, parts: [[String]], isHidden: Bool)?
            for (index, line) in try lines(of: file).enumerated() {
                let mark = line.trimmingCharacters(in: .whitespaces)
                switch (mark, current) {
                case ("// snippet", nil): current = (index + 1, [[]], false)
                case ("// snippet", .some), ("// end", nil): throw UnevenMarks(place: "\(file):\(index + 1)")
                case ("// end", .some(let snippet)):
                    let text = snippet.parts.map { dedented($0) }.joined(separator: "\n")
                    snippets.append(Block(file: file, line: snippet.line, text: trimmed(text)))
                    current = nil
                case ("// hide", .some): current?.isHidden = true
                case ("// show", .some):
                    current?.isHidden = false
                    current?.parts.append([])
                case (_, .some(let snippet)) where !snippet.isHidden:
                    current?.parts[snippet.parts.count - 1].append(line)
                default: break
                }
            }
            if let current { throw UnevenMarks(place: "\(file):\(current.line)") }
        }
        return snippets
    }

    static func trimmed(_ text: String) -> String { text.trimmingCharacters(in: .newlines) }

    struct UnevenMarks: Error {
        var place: String
    }

    /// Lines without their common indentation.
    static func dedented(_ lines: [String]) -> String {
        let filled = lines.filter { !$0.allSatisfy(\.isWhitespace) }
        let indentation = filled.map { $0.prefix { $0 == " " }.count }.min() ?? 0
        return lines.map { String($0.dropFirst(indentation)) }.joined(separator: "\n")
    }
}
