import Foundation

/// Small JSON files, readable for people.
enum JSONFile {
    /// What is wrong with a file's text, to follow "is damaged:".
    struct Problem: Error, Hashable {
        var reason: String
        init(_ reason: String) { self.reason = reason }
    }

    static func encode(_ value: some Encodable) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        // Strings, integers and Booleans only: these always have a JSON form.
        let data = (try? encoder.encode(value)) ?? Data()
        return Array(data) + [UInt8(ascii: "\n")]
    }

    static func decode<Value: Decodable>(_ type: Value.Type, _ bytes: [UInt8]) throws(Problem) -> Value {
        do {
            let isMarked = bytes.starts(with: [0xEF, 0xBB, 0xBF])
            return try JSONDecoder().decode(type, from: Data(isMarked ? bytes.dropFirst(3) : bytes[...]))
        } catch let error as DecodingError {
            throw Problem(reason(of: error))
        } catch {
            throw Problem("it is not JSON")
        }
    }

    private static func reason(of error: DecodingError) -> String {
        func place(_ path: [any CodingKey]) -> String {
            path.isEmpty ? "what it holds" : path.map(\.stringValue).joined(separator: ".")
        }
        switch error {
        case .keyNotFound(let key, let context): return "\(place(context.codingPath + [key])) is missing"
        case .typeMismatch(_, let context), .valueNotFound(_, let context):
            return "\(place(context.codingPath)) is of the wrong kind"
        case .dataCorrupted(let context) where !context.codingPath.isEmpty:
            return "\(place(context.codingPath)): \(context.debugDescription)"
        default: return "it is not JSON"
        }
    }
}
