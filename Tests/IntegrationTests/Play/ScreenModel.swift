/// A terminal as far as `ieum play` uses one: what it is sent, and what a player sees of it.
///
/// A byte or sequence that it does not know is kept in ``strange``: the game must send none.
struct ScreenModel: Sendable {
    let width: Int
    let height: Int
    private(set) var isAlternate = false
    private(set) var isCursorShown = true
    private(set) var isPasteBracketed = false
    private(set) var strange: [String] = []
    /// How often the alternate screen was entered.
    private(set) var entries = 0
    private(set) var row = 0
    private(set) var column = 0
    private var cells: [[String]]
    private var main: [[String]]
    private var mainPlace = (row: 0, column: 0)
    private var pending: [UInt8] = []

    init(width: Int = 80, height: Int = 24) {
        (self.width, self.height) = (width, height)
        cells = Array(repeating: Array(repeating: " ", count: width), count: height)
        main = cells
    }

    /// The rows without blanks at their ends.
    var lines: [String] {
        cells.map { row in
            var line = row.joined()[...]
            while line.last == " " { line = line.dropLast() }
            return String(line)
        }
    }

    var text: String { lines.joined(separator: "\n") }

    /// A row of the board on the screen, without blanks: `ㅅㅏㄹㅏㅁ사람`.
    func board(_ row: Int) -> String {
        guard lines.indices.contains(2 + 2 * row) else { return "" }
        return cells[2 + 2 * row].prefix(40).joined().filter { $0 != " " && $0 != "_" }
    }

    mutating func take(_ bytes: some Sequence<UInt8>) {
        for byte in bytes {
            pending.append(byte)
            step()
        }
    }

    private mutating func step() {
        guard let first = pending.first else { return }
        switch first {
        case 0x1B: escape()
        case 0x0D: (column, pending) = (0, [])
        case 0x0A: newLine()
        case 0x08: (column, pending) = (max(0, column - 1), [])
        case 0x07: pending = []
        case ..<0x20: unknown()
        default: character(first)
        }
    }

    private mutating func newLine() {
        pending = []
        if row + 1 < height {
            row += 1
        } else {
            cells.removeFirst()
            cells.append(Array(repeating: " ", count: width))
        }
    }

    private mutating func character(_ first: UInt8) {
        let count = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4
        guard pending.count == count else { return }
        let text = String(decoding: pending, as: UTF8.self)
        pending = []
        guard let scalar = text.unicodeScalars.first, scalar != "\u{FFFD}" else { return strange.append("no UTF-8") }
        let columns = Self.columns(of: scalar)
        guard column + columns <= width else { return strange.append("\(text) beyond the right edge") }
        cells[row][column] = text
        if columns == 2 { cells[row][column + 1] = "" }
        column += columns
    }

    private static func columns(of scalar: Unicode.Scalar) -> Int {
        switch scalar.value {
        case 0x1100...0x115F, 0x3000...0x33FF, 0xAC00...0xD7A3, 0x1F300...0x1F9FF, 0x2B1B, 0x2B1C: 2
        default: 1
        }
    }

    private mutating func escape() {
        guard pending.count > 2 else {
            if pending.count == 2, pending[1] != UInt8(ascii: "[") { unknown() }
            return
        }
        guard let last = pending.last, (0x40...0x7E).contains(last) else { return }
        let parameters = String(decoding: pending[2..<(pending.count - 1)], as: UTF8.self)
        switch (last, parameters) {
        case (UInt8(ascii: "m"), _): break
        case (UInt8(ascii: "J"), "2"), (UInt8(ascii: "J"), "3"):
            cells = Array(repeating: Array(repeating: " ", count: width), count: height)
        case (UInt8(ascii: "J"), ""): for index in row..<height { clear(index, from: index == row ? column : 0) }
        case (UInt8(ascii: "K"), ""): clear(row, from: column)
        case (UInt8(ascii: "H"), _):
            let numbers = parameters.split(separator: ";").map { Int($0) ?? 1 }
            let (row, column) = (numbers.first.map { $0 - 1 } ?? 0, numbers.dropFirst().first.map { $0 - 1 } ?? 0)
            if (0..<height).contains(row), (0..<width).contains(column) {
                (self.row, self.column) = (row, column)
            } else {
                strange.append("the cursor goes to \(parameters)")
            }
        case (UInt8(ascii: "h"), "?1049"):
            if !isAlternate { (main, mainPlace) = (cells, (row, column)) }
            (isAlternate, entries) = (true, entries + 1)
            cells = Array(repeating: Array(repeating: " ", count: width), count: height)
        case (UInt8(ascii: "l"), "?1049"):
            if isAlternate { (cells, (row, column)) = (main, mainPlace) }
            isAlternate = false
        case (UInt8(ascii: "h"), "?25"): isCursorShown = true
        case (UInt8(ascii: "l"), "?25"): isCursorShown = false
        case (UInt8(ascii: "h"), "?2004"): isPasteBracketed = true
        case (UInt8(ascii: "l"), "?2004"): isPasteBracketed = false
        default: return unknown()
        }
        pending = []
    }

    private mutating func clear(_ row: Int, from column: Int) {
        for index in column..<max(column, width) { cells[row][index] = " " }
    }

    private mutating func unknown() {
        strange.append(pending.map { $0 < 0x20 ? "^\($0)" : String(UnicodeScalar($0)) }.joined())
        pending = []
    }
}
