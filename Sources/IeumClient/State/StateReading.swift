import Foundation
import Wire

/// One decoding: the text, and what each of its values is as a Swift value.
final class StateReading {
    /// See ``StateWriting/maxDepth``.
    static let maxDepth = StateWriting.maxDepth
    /// What stands for a value that is not there.
    static let missing = -1

    let tape: StateTape
    let userInfo: [CodingUserInfoKey: Any]

    init(_ tape: StateTape, userInfo: [CodingUserInfoKey: Any]) {
        self.tape = tape
        self.userInfo = userInfo
    }

    /// A value of a state's text.
    static func value<Value: Decodable>(
        _ type: Value.Type, of text: [UInt8], userInfo: [CodingUserInfoKey: Any] = [:]
    ) throws -> Value {
        guard let tape = StateTape(text) else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(codingPath: [], debugDescription: "the text is no JSON"))
        }
        return try StateReading(tape, userInfo: userInfo).value(type, 0, at: DecodingPlace(nil, .root))
    }

    func kind(_ index: Int) -> RawJSON.Kind {
        tape.entries.indices.contains(index) ? tape.entries[index].kind : .null
    }

    // MARK: Values

    func value<Value: Decodable>(
        _ type: Value.Type, _ index: Int, at place: @autoclosure () -> DecodingPlace
    ) throws -> Value {
        if Value.self == String.self, let value = try string(index, at: place()) as? Value { return value }
        if Value.self == Int.self, let value = try integer(Int.self, index, at: place()) as? Value { return value }
        if Value.self == Bool.self, let value = try bool(index, at: place()) as? Value { return value }
        if Value.self == Double.self, let value = try double(Double.self, index, at: place()) as? Value {
            return value
        }
        let place = place()
        if Value.self == Date.self, let value = try date(index, at: place) as? Value { return value }
        if Value.self == Data.self, let value = try data(index, at: place) as? Value { return value }
        if Value.self == URL.self, let value = try url(index, at: place) as? Value { return value }
        if Value.self == Decimal.self, let value = try decimal(index, at: place) as? Value { return value }
        guard place.depth <= Self.maxDepth else {
            throw corrupted(place, "the value is nested more than \(Self.maxDepth) levels deep")
        }
        return try Value(from: StateDecoder(reading: self, index: index, place: place))
    }

    func bool(_ index: Int, at place: @autoclosure () -> DecodingPlace) throws -> Bool {
        guard kind(index) == .bool else { throw mismatch(Bool.self, index, place()) }
        return tape.bytes[tape.entries[index].start] == UInt8(ascii: "t")
    }

    func string(_ index: Int, asked: Any.Type = String.self, at place: @autoclosure () -> DecodingPlace) throws
        -> String
    {
        guard kind(index) == .string else { throw mismatch(asked, index, place()) }
        guard let text = tape.text(tape.entries[index]) else { throw corrupted(place(), "the text is not UTF-8") }
        return text
    }

    func integer<Number: FixedWidthInteger>(
        _ type: Number.Type, _ index: Int, at place: @autoclosure () -> DecodingPlace
    ) throws -> Number {
        guard kind(index) == .number else { throw mismatch(type, index, place()) }
        guard let number: Number = StateNumber.integer(digits(index)) else {
            throw corrupted(place(), "the number \(spelled(index)) is no \(type)")
        }
        return number
    }

    func double<Number: BinaryFloatingPoint & LosslessStringConvertible>(
        _ type: Number.Type, _ index: Int, at place: @autoclosure () -> DecodingPlace
    ) throws -> Number {
        switch kind(index) {
        case .number:
            guard let number: Number = StateNumber.double(digits(index)) else {
                throw corrupted(place(), "the number \(spelled(index)) is no \(type)")
            }
            return number
        case .string:
            switch try string(index, at: place()) {
            case "NaN": return .nan
            case "Infinity": return .infinity
            case "-Infinity": return -.infinity
            default: throw mismatch(type, index, place())
            }
        case .object, .array, .bool, .null: throw mismatch(type, index, place())
        }
    }

    private func date(_ index: Int, at place: DecodingPlace) throws -> Date {
        guard let micros = DateText.microseconds(try string(index, at: place)) else {
            throw corrupted(place, "the text is no date such as 2025-09-30T19:02:11.480000Z")
        }
        return DateText.date(micros)
    }

    private func data(_ index: Int, at place: DecodingPlace) throws -> Data {
        guard let data = Data(base64Encoded: try string(index, asked: Data.self, at: place)) else {
            throw corrupted(place, "the text is not base64")
        }
        return data
    }

    private func url(_ index: Int, at place: DecodingPlace) throws -> URL {
        guard let url = URL(string: try string(index, asked: URL.self, at: place)) else {
            throw corrupted(place, "the text is no URL")
        }
        return url
    }

    private func decimal(_ index: Int, at place: DecodingPlace) throws -> Decimal {
        guard kind(index) == .number else { throw mismatch(Decimal.self, index, place) }
        guard let number = Decimal(string: spelled(index), locale: nil), !number.isNaN else {
            throw corrupted(place, "the number \(spelled(index)) is no Decimal")
        }
        return number
    }

    // MARK: Errors

    /// What is stored is of another type, or nothing.
    func mismatch(_ asked: Any.Type, _ index: Int, _ place: DecodingPlace) -> DecodingError {
        let kind = kind(index)
        let context = DecodingError.Context(
            codingPath: place.path, debugDescription: "\(asked) is asked for, and \(kind.rawValue) is stored")
        return kind == .null ? .valueNotFound(asked, context) : .typeMismatch(asked, context)
    }

    func corrupted(_ place: DecodingPlace, _ reason: String) -> DecodingError {
        .dataCorrupted(DecodingError.Context(codingPath: place.path, debugDescription: reason))
    }

    private func digits(_ index: Int) -> ArraySlice<UInt8> {
        tape.bytes[tape.entries[index].start..<tape.entries[index].end]
    }

    private func spelled(_ index: Int) -> String { String(decoding: digits(index), as: UTF8.self) }
}

/// Where a value stands that is decoded.
final class DecodingPlace {
    let parent: DecodingPlace?
    let step: EncodingSlot.Step
    /// How many values this one is in.
    let depth: Int

    init(_ parent: DecodingPlace?, _ step: EncodingSlot.Step) {
        self.parent = parent
        self.step = step
        depth = (parent?.depth ?? -1) + 1
    }

    var path: [any CodingKey] {
        var path: [any CodingKey] = []
        var place: DecodingPlace? = self
        while let here = place {
            switch here.step {
            case .root: break
            case .key(let key): path.append(key)
            case .index(let index): path.append(StatePathKey(intValue: index))
            }
            place = here.parent
        }
        return path.reversed()
    }
}
