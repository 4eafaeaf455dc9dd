/// An error that is seen on the wire: `ERR code [key=value…] [retry-after=…] [hint="…"] "message"`.
///
/// Source: Documentation/errors.md, which has a row for each code.
public struct WireError: Error, Hashable, Sendable {
    /// A detail: what a program may want to know beyond the code.
    public struct Field: Hashable, Sendable {
        /// `[a-z][a-z0-9-]*`, neither `retry-after` nor `hint`.
        public var key: String
        /// Any text.
        public var value: String

        /// Creates a detail.
        public init(_ key: String, _ value: String) {
            self.key = key
            self.value = value
        }
    }

    /// Which error.
    public var code: Code
    /// Details, e.g. `offset=10`.
    public var fields: [Field]
    /// When a retry may help; `nil` says that it cannot. Printed in seconds with up to three decimals.
    public var retryAfter: Duration?
    /// What to do, a full sentence.
    public var hint: String?
    /// What is wrong: one line, factual.
    public var message: String

    /// Creates an error.
    public init(
        _ code: Code, _ message: String, fields: [Field] = [], retryAfter: Duration? = nil, hint: String? = nil
    ) {
        self.code = code
        self.fields = fields
        self.retryAfter = retryAfter
        self.hint = hint
        self.message = message
    }

    /// Whether the same command may succeed later.
    public var isRetryable: Bool { retryAfter != nil }

    /// The value of a detail.
    public subscript(key: String) -> String? {
        fields.first { $0.key == key }?.value
    }
}

extension WireError: CustomStringConvertible {
    /// The error as it stands on the wire, without `ERR`.
    public var description: String {
        var bytes: [UInt8] = []
        bytes.append(text: code.rawValue)
        printDetails(into: &bytes)
        return String(decoding: bytes, as: UTF8.self)
    }
}

extension WireError {
    /// Appends the line `ERR …`, its line feed included.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: "ERR ")
        bytes.append(text: code.rawValue)
        printDetails(into: &bytes)
        bytes.append(UInt8(ascii: "\n"))
    }

    /// Appends the line `* BYE reason=…` by which the server takes its leave, its line feed included.
    public func printBye(into bytes: inout [UInt8]) {
        bytes.append(option: "* BYE reason=", text: code.rawValue)
        printDetails(into: &bytes)
        bytes.append(UInt8(ascii: "\n"))
    }

    private func printDetails(into bytes: inout [UInt8]) {
        for field in fields {
            bytes.append(UInt8(ascii: " "))
            bytes.append(text: field.key)
            bytes.append(UInt8(ascii: "="))
            bytes.append(optionValue: field.value)
        }
        if let retryAfter {
            bytes.append(text: " retry-after=")
            bytes.append(seconds: retryAfter)
        }
        if let hint {
            bytes.append(text: " hint=")
            bytes.append(quoted: hint)
        }
        bytes.append(UInt8(ascii: " "))
        bytes.append(quoted: message)
    }
}

extension [UInt8] {
    /// Appends a duration in seconds with up to three decimals, rounded up: who waits that long has waited long enough.
    fileprivate mutating func append(seconds duration: Duration) {
        let (seconds, attoseconds) = duration.components
        guard seconds >= 0, attoseconds >= 0 else { return append(UInt8(ascii: "0")) }
        let perMillisecond: Int64 = 1_000_000_000_000_000
        var milliseconds = attoseconds / perMillisecond + (attoseconds % perMillisecond > 0 ? 1 : 0)
        append(decimal: milliseconds == 1_000 ? seconds.addingReportingOverflow(1).partialValue : seconds)
        milliseconds %= 1_000
        guard milliseconds > 0 else { return }
        append(UInt8(ascii: "."))
        append(milliseconds, digits: 3)
        while last == UInt8(ascii: "0") { removeLast() }
    }
}
