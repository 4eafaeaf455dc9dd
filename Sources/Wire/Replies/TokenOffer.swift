/// The answer to `ROTATE`: the token that takes the place of the device's with its first `LOGIN`.
public struct TokenOffer: Hashable, Sendable {
    /// The new token.
    public var token: Token

    /// Creates the answer.
    public init(token: Token) {
        self.token = token
    }

    /// Reads the answer.
    public init(_ fields: ReplyFields) throws(MalformedLine) {
        try self.init(token: fields.required("token", fields.value("token") { Token($0) }))
    }

    /// Appends the line `OK token=…`.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(text: "OK token=")
        token.print(into: &bytes)
        bytes.append(UInt8(ascii: "\n"))
    }
}
