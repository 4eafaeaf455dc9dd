/// One thing that is wrong, with its place in a file where there is one, and what to do next.
public struct Problem: Equatable, Sendable {
    /// The file, when the problem lies in one.
    public var file: String?
    /// Where in the file.
    public var location: SourceLocation?
    /// What is wrong, in one line.
    public var message: String
    /// The five characters of PostgreSQL's SQLSTATE, when the server reported the problem.
    public var sqlState: String?
    /// PostgreSQL's DETAIL.
    public var detail: String?
    /// What to do about it: PostgreSQL's HINT, or ours.
    public var hint: String?
    /// PostgreSQL's CONTEXT: which function was running, and where in it.
    public var context: String?

    /// A problem; all but the message may be left out.
    public init(
        _ message: String, file: String? = nil, location: SourceLocation? = nil, sqlState: String? = nil,
        detail: String? = nil, hint: String? = nil, context: String? = nil
    ) {
        self.file = file
        self.location = location
        self.message = message
        self.sqlState = sqlState
        self.detail = detail
        self.hint = hint
        self.context = context
    }
}

extension Problem: CustomStringConvertible {
    /// `file:line:column: ERROR 42703: …`, the source line with a mark under the column, then DETAIL, HINT and CONTEXT.
    public var description: String {
        var place = ""
        if let file { place += "\(file):" }
        if let location { place += "\(location.line):\(location.column):" }
        let label = sqlState.map { "ERROR \($0): " } ?? "error: "
        var lines = [place.isEmpty ? label + message : "\(place) \(label)\(message)"]
        if let location, !location.text.isEmpty {
            lines.append(contentsOf: location.excerpt)
        }
        if let detail { lines.append("DETAIL: \(detail)") }
        if let hint { lines.append("HINT: \(hint)") }
        if let context { lines.append("CONTEXT: \(context)") }
        return lines.joined(separator: "\n")
    }
}
