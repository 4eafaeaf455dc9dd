/// A text of several SQL statements, cut where the server would begin the next one.
///
/// The parts joined give the text back. What cannot be sent to a server, such as psql's meta-commands, is listed in
/// ``faults`` with its place. The rules are those of psql's scanner (`psqlscan.l`, PostgreSQL 15), but a body needs
/// `BEGIN ATOMIC`, so that a function may be called `begin`, and a column may be labelled `AS end`.
struct SQLScript {
    /// A piece of the text up to and with its semicolon; the last one may have none.
    struct Part: Equatable {
        /// The bytes, with the space and comments in front.
        var range: Range<Int>
        /// The bytes from the first token to the last, semicolon included; nil when there is nothing to run.
        var statement: SQLStatement?
    }

    /// Something that must not be sent.
    struct Fault: Equatable {
        var offset: Int
        var message: String
        var hint: String?
    }

    /// The pieces in order, without gaps.
    private(set) var parts: [Part] = []
    /// What is wrong with the text, in order.
    private(set) var faults: [Fault] = []

    /// The pieces that hold something to run.
    var statements: [SQLStatement] { parts.compactMap(\.statement) }

    /// Cuts a text in UTF-8.
    init(_ bytes: [UInt8]) {
        let (parts, faults) = bytes.withUnsafeBufferPointer { buffer in
            var scanner = SQLScanner(buffer)
            scanner.scan()
            return (scanner.parts, scanner.faults)
        }
        self.parts = parts
        self.faults = faults.sorted { $0.offset < $1.offset }
    }
}

/// One statement of a script: where it lies, and its first words, by which it is known.
struct SQLStatement: Equatable {
    /// The bytes from its first token to its last, semicolon included.
    var range: Range<Int>
    /// The first tokens: words in upper case, quoted names and symbols as written. At most ``maxWords``.
    var words: [String] = []
    /// Which way the data would go, for a COPY that speaks with the client.
    var clientCopy: ClientCopy?

    enum ClientCopy: Equatable {
        case fromClient, toClient
    }

    static let maxWords = 16

    /// Whether the first words are these.
    func begins(with prefix: String...) -> Bool {
        words.starts(with: prefix)
    }
}
