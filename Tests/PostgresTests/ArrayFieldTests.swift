import Foundation
import TestSupport
import Testing

@testable import Postgres

@Suite("Fields that are arrays")
struct ArrayFieldTests {
    let database: TestDatabase

    init() throws {
        database = try TestDatabase.make()
    }

    private func ask(_ expression: String) throws -> QueryResult {
        try database.connect().query("SELECT \(expression)", ParameterList())
    }

    @Test("elements of every type come back, with NULLs and extremes")
    func elements() throws {
        let rows = try ask(
            """
            ARRAY[-9223372036854775808, NULL, 9223372036854775807], ARRAY[-2147483648, NULL, 7]::integer[],
            ARRAY['한들', NULL, '', 'NULL'], ARRAY['{"a": [1, 2]}', NULL]::json[],
            ARRAY['00000000-0000-0000-0000-00000000000a', NULL]::uuid[],
            ARRAY['1970-01-01 00:00:01Z', 'infinity', NULL, '-infinity']::timestamptz[], '{}'::text[]
            """)
        #expect(try rows.int8Array(0, 0) == [.min, nil, .max])
        #expect(try rows.int4Array(0, 1) == [.min, nil, 7])
        #expect(try rows.textArray(0, 2) == ["한들", nil, "", "NULL"])
        #expect(try rows.jsonArray(0, 3) == [Array(#"{"a": [1, 2]}"#.utf8), nil])
        #expect(try rows.uuidArray(0, 4) == [UUID(uuidString: "00000000-0000-0000-0000-00000000000a"), nil])
        #expect(try rows.microsecondsSince1970Array(0, 5) == [1_000_000, .max, nil, .min])
        #expect(try rows.textArray(0, 6).isEmpty)
    }

    @Test(
        "another type, a second dimension, another first index, NULL and a time too late are errors",
        arguments: [
            "ARRAY['a']", "ARRAY[1]::integer[]", "ARRAY[[1, 2]]::bigint[]", "'[0:1]={1,2}'::bigint[]", "NULL::bigint[]",
            "1::bigint", "ARRAY[now()]",
        ])
    func mismatches(expression: String) throws {
        let rows = try ask(expression)
        #expect(throws: DatabaseError.self) { try rows.int8Array(0, 0) }
        #expect(throws: DatabaseError.self) { try rows.int8Array(1, 0) }
        #expect(throws: DatabaseError.self) { try rows.int8Array(0, 1) }
    }

    /// As `array_send` writes `{1,NULL}` of type `bigint[]`.
    private static let good: [UInt8] =
        [
            0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 20, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 0, 0, 0, 0, 1, 255, 255,
            255, 255,
        ]

    private func read(_ bytes: [UInt8]) -> [Int64?]? {
        bytes.withUnsafeBytes { raw in
            QueryResult.elements(raw, of: .int8) { $0.count == 8 ? $0.bigEndian(Int64.self) : nil }
        }
    }

    @Test("bytes that are cut off, left over or lie about a length are no array")
    func malformed() {
        #expect(read(Self.good) == [1, nil])
        for length in Self.good.indices { #expect(read(Array(Self.good.prefix(length))) == nil) }
        #expect(read(Self.good + [0]) == nil)
        #expect(read([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 20]) == [])
        for (index, value) in [
            (3, 2), (0, 128), (11, 23), (15, 3), (12, 127), (12, 255), (19, 0), (23, 7), (20, 127), (20, 128),
        ] {
            var bytes = Self.good
            bytes[index] = UInt8(value)
            #expect(read(bytes) == nil, "byte \(index) as \(value)")
        }
    }

    @Test("no bytes whatever are read beyond their end")
    func random() {
        var random = SeededRandom(for: "array fields")
        for _ in 0..<20_000 {
            var bytes = Self.good
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                bytes[Int.random(in: bytes.indices, using: &random)] = UInt8.random(in: 0...255, using: &random)
            }
            bytes.removeLast(Int.random(in: 0...4, using: &random))
            if let elements = read(bytes) { #expect(elements.count <= 2) }
        }
    }
}
