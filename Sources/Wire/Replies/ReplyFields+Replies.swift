import Foundation

extension Greeting {
    /// Reads the answer to `HELLO`.
    public init(hello fields: ReplyFields) throws(MalformedLine) {
        try self.init(protocolVersion: fields.number("protocol"), fields)
    }

    init(protocolVersion: Int, _ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            protocolVersion: protocolVersion, server: fields.text("server"), epoch: fields.epoch(),
            maxLineBytes: fields.number("max-line"), maxStateBytes: fields.number("max-state"),
            time: fields.time("time"))
    }
}

extension SignIn {
    /// Reads the answer to `LOGIN`, `REGISTER` or `LINK`.
    public init(_ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            player: fields.identifier("player"), device: fields.identifier("device"),
            token: fields.value("token") { Token($0) }, revision: fields.revision("revision"))
    }
}

extension PairingOffer {
    /// Reads the answer to `PAIR`.
    public init(_ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            code: fields.required("code", fields.value("code") { PairingCode($0) }), expires: fields.time("expires"))
    }
}

extension PushReceipt {
    /// Reads the answer to `PUSH` or `DELETE`.
    public init(_ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            outcome: fields.outcome("outcome"), first: fields.optionalOutcome("first"),
            revision: fields.revision("revision"), stamp: fields.time("stamp"),
            rival: fields.optionalRevision("rival"), head: Head(fields))
    }
}

extension PushReceipt.Head {
    fileprivate init?(_ fields: ReplyFields) throws(MalformedLine) {
        guard let revision = try fields.optionalRevision("head") else { return nil }
        let isTombstone = try fields.optionalFlag("head-deleted") ?? false
        guard isTombstone == (fields.tail == nil) else {
            throw MalformedLine(isTombstone ? "a deleted head has a state" : "the head has no state")
        }
        try self.init(
            revision: revision, saved: fields.time("head-saved"), stamp: fields.time("head-stamp"),
            device: fields.identifier("head-device"), schema: fields.number("head-schema"), state: fields.tail)
    }
}

extension GameHeader {
    init(_ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            revision: fields.revision("revision"), saved: fields.time("saved"), stamp: fields.time("stamp"),
            device: fields.identifier("device"), schema: fields.number("schema"),
            outcome: fields.optionalOutcome("outcome"), base: fields.optionalRevision("base"),
            rival: fields.optionalRevision("rival"))
    }
}

extension VersionDetail {
    init(_ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            revision: fields.revision("revision"), outcome: fields.outcome("outcome"), saved: fields.time("saved"),
            stamp: fields.time("stamp"), received: fields.time("received"), device: fields.identifier("device"),
            base: fields.optionalRevision("base"), rival: fields.optionalRevision("rival"),
            schema: fields.number("schema"), size: fields.number("size"), isHead: fields.flag("head"),
            isTombstone: fields.flag("deleted"))
    }
}

extension PageEnd {
    init(_ fields: ReplyFields) throws(MalformedLine) {
        self.init()
        cursor = try fields.optionalRevision("cursor")
        more = try fields.optionalFlag("more")
        before = try fields.optionalRevision("before")
        after = try fields.value("after") { DeviceID($0) }
        lastRevision = try fields.optionalRevision("revision")
        purgedBefore = try fields.optionalRevision("purged-before")
    }
}

extension DeviceEntry {
    init(device: DeviceID, _ fields: ReplyFields) throws(MalformedLine) {
        try self.init(
            device: device, name: fields.text("name"), created: fields.time("created"),
            seen: fields.optionalTime("seen"),
            clockOffset: fields.value("clock-offset") { $0.signedDecimal },
            revoked: fields.optionalTime("revoked"), isThis: fields.optionalFlag("this") ?? false)
    }
}

extension WireError {
    /// Reads what follows the code: details, `retry-after=`, `hint=` and the message in quotes.
    init(code: String, _ fields: ReplyFields, except key: String? = nil) throws(MalformedLine) {
        let retryAfter = try fields.value("retry-after") { Duration(seconds: $0) }
        let details = fields.options.filter { $0.key != "retry-after" && $0.key != "hint" && $0.key != key }
        self.init(
            Code(rawValue: code), try fields.message(), fields: details, retryAfter: retryAfter, hint: fields["hint"])
    }
}

extension ReplyFields {
    fileprivate func epoch() throws(MalformedLine) -> UUID {
        try required("epoch", value("epoch") { UUID(uuidString: $0) })
    }

    /// The tail as a JSON string; empty if there is none.
    fileprivate func message() throws(MalformedLine) -> String {
        guard let tail else { return "" }
        var end = tail.count
        while end > 0, tail[end - 1].isBlank { end -= 1 }
        guard end >= 2, tail[0] == UInt8(ascii: "\""), tail[end - 1] == UInt8(ascii: "\""),
            let text = JSONString.unescape(tail.span.extracting(1..<(end - 1)))
        else { throw MalformedLine("the message is no text in quotes") }
        return String(decoding: text, as: UTF8.self)
    }
}

extension Duration {
    /// Reads seconds with up to three decimals, at most a year.
    fileprivate init?(seconds text: String) {
        let parts = text.split(separator: ".", maxSplits: 1, omittingEmptySubsequences: false)
        guard let whole = parts.first, (1...8).contains(whole.utf8.count), whole.utf8.allSatisfy(\.isDigit),
            let seconds = Int64(whole)
        else { return nil }
        guard parts.count == 2 else {
            self = .seconds(seconds)
            return
        }
        let fraction = parts[1]
        guard (1...3).contains(fraction.utf8.count), fraction.utf8.allSatisfy(\.isDigit),
            let milliseconds = Int64(fraction + String(repeating: "0", count: 3 - fraction.utf8.count))
        else { return nil }
        self = .seconds(seconds) + .milliseconds(milliseconds)
    }
}
