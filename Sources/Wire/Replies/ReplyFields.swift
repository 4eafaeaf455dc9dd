import Foundation

/// A line of the server's that says something other than the protocol lets it say.
public struct MalformedLine: Error, Hashable, Sendable, CustomStringConvertible {
    /// What is wrong, one line.
    public var description: String

    /// Says what is wrong.
    public init(_ description: String) {
        self.description = description
    }
}

/// The options of a reply, and the JSON text behind them. Keys that the reader does not ask for are of no consequence: a
/// newer server may send more.
public struct ReplyFields: Hashable, Sendable {
    /// The options in the order of the line, their quotes and escapes undone.
    public let options: [WireError.Field]
    /// What follows the options, byte for byte; `nil` if nothing does.
    public let tail: [UInt8]?

    init(_ line: Span<UInt8>, _ scanner: inout LineScanner) throws(MalformedLine) {
        var options: [WireError.Field] = []
        do throws(WireError) {
            while let option = try scanner.nextOption(in: line) {
                let key = line.text(option.key)
                guard option.hasEscapes else {
                    options.append(WireError.Field(key, line.text(option.value)))
                    continue
                }
                guard let value = JSONString.unescape(line.extracting(option.value)) else {
                    throw .invalidArgument(field: key, "the value of \(key)= is no JSON string")
                }
                options.append(WireError.Field(key, String(decoding: value, as: UTF8.self)))
            }
        } catch {
            throw MalformedLine(error.message)
        }
        self.options = options
        tail = scanner.hasMore(in: line) ? line.copy(scanner.rest(of: line)) : nil
    }

    /// The value of an option; of one that stands twice the first.
    public subscript(key: String) -> String? {
        options.first { $0.key == key }?.value
    }

    /// A revision that must be there.
    public func revision(_ key: String) throws(MalformedLine) -> Revision {
        try required(key, optionalRevision(key))
    }

    /// A revision that may be there.
    public func optionalRevision(_ key: String) throws(MalformedLine) -> Revision? {
        try value(key) { $0.decimal }
    }

    /// A UUID that must be there.
    public func uuid(_ key: String) throws(MalformedLine) -> UUID {
        try required(key, value(key) { UUID(utf8: Array($0.utf8).span) })
    }

    func optionalTime(_ key: String) throws(MalformedLine) -> Timestamp? {
        try value(key) { Timestamp($0) }
    }

    /// A time that must be there.
    public func time(_ key: String) throws(MalformedLine) -> Timestamp {
        try required(key, value(key) { Timestamp($0) })
    }

    func number<Number: FixedWidthInteger>(_ key: String) throws(MalformedLine) -> Number {
        try required(key, value(key) { $0.decimal.flatMap { Number(exactly: $0) } })
    }

    func identifier<ID: UUIDIdentifier>(_ key: String) throws(MalformedLine) -> ID {
        try required(key, value(key) { ID($0) })
    }

    func optionalOutcome(_ key: String) throws(MalformedLine) -> Outcome? {
        try value(key) { Outcome(rawValue: $0) }
    }

    func outcome(_ key: String) throws(MalformedLine) -> Outcome {
        try required(key, optionalOutcome(key))
    }

    func optionalFlag(_ key: String) throws(MalformedLine) -> Bool? {
        try value(key) { $0 == "true" ? true : $0 == "false" ? false : nil }
    }

    func flag(_ key: String) throws(MalformedLine) -> Bool {
        try required(key, optionalFlag(key))
    }

    func text(_ key: String) throws(MalformedLine) -> String {
        try required(key, self[key])
    }

    func value<Value>(_ key: String, _ parse: (String) -> Value?) throws(MalformedLine) -> Value? {
        guard let text = self[key] else { return nil }
        guard let value = parse(text) else { throw MalformedLine("the value of \(key)= cannot be read") }
        return value
    }

    func required<Value>(_ key: String, _ value: Value?) throws(MalformedLine) -> Value {
        guard let value else { throw MalformedLine("\(key)= is missing") }
        return value
    }
}

extension String {
    /// A decimal number with a minus sign where it is negative, without leading zeros.
    var signedDecimal: Int64? {
        guard hasPrefix("-") else { return decimal }
        return String(dropFirst()).decimal.flatMap { $0 > 0 ? -$0 : nil }
    }

    /// A decimal number without sign and without leading zeros, at most `Int64.max`.
    fileprivate var decimal: Int64? {
        var text = self
        return text.withUTF8 { $0.span.decimal() }
    }
}
