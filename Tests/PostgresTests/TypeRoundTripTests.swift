import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Types, there and back")
struct TypeRoundTripTests {
    let database: TestDatabase
    let driver: LoopDriver

    init() throws {
        database = try TestDatabase.make()
        driver = try LoopDriver()
    }

    @Test("integers keep their extremes")
    func integers() throws {
        let connection = try driver.connect(database.conninfo)
        for value: Int64 in [.min, -1, 0, 1, 1 << 53 + 1, .max] {
            var parameters = ParameterList()
            parameters.append(value)
            let rows = try driver.execute(connection, "SELECT $1, $1::text", parameters)
            #expect(try rows.int8(0, 0) == value)
            #expect(try rows.text(0, 1) == "\(value)")
        }
        for value: Int32 in [.min, -1, 0, 1, .max] {
            var parameters = ParameterList()
            parameters.append(value)
            let rows = try driver.execute(connection, "SELECT $1, $1::text, $1::int8", parameters)
            #expect(try rows.int4(0, 0) == value)
            #expect(try rows.int8(0, 0) == Int64(value))
            #expect(try rows.text(0, 1) == "\(value)")
            #expect(try rows.int4(0, 2) == value)
        }
        let small = try driver.execute(connection, "SELECT (-32768)::int2")
        #expect(try small.int4(0, 0) == -32768)
        #expect(try small.int8(0, 0) == -32768)
    }

    @Test("texts keep every character", arguments: ["", "a", "한들 🟩🟨⬛", "한들", "'\"\\", "a\nb\r\t"])
    func texts(text: String) throws {
        let connection = try driver.connect(database.conninfo)
        var parameters = ParameterList()
        parameters.append(text)
        let rows = try driver.execute(connection, "SELECT $1, octet_length($1)", parameters)
        // Byte for byte: Swift's == takes NFC and NFD for one.
        #expect(try Array(rows.text(0, 0).utf8) == Array(text.utf8))
        #expect(try rows.int4(0, 1) == Int32(text.utf8.count))
    }

    @Test("a NUL in a text is an error of the server's, and no text cut short")
    func nulInText() throws {
        let connection = try driver.connect(database.conninfo)
        var parameters = ParameterList()
        parameters.append("a\0b")
        let result = try driver.answer { done in
            connection.execute(Statement("nul", "SELECT $1"), parameters) { done($0) }
        }
        #expect(result.failure?.sqlState == .characterNotInRepertoire)
    }

    @Test("bytes keep NULs and every value")
    func bytes() throws {
        let connection = try driver.connect(database.conninfo)
        for value: [UInt8] in [[], [0], [0, 0, 1, 0], Array(0...255)] {
            var parameters = ParameterList()
            parameters.append(value)
            let rows = try driver.execute(connection, "SELECT $1, length($1)", parameters)
            #expect(try rows.byteArray(0, 0) == value)
            #expect(try rows.withSpan(0, 0) { $0.count } == value.count)
            #expect(try rows.int4(0, 1) == Int32(value.count))
        }
    }

    @Test("UUIDs, truth values and json keep their form")
    func others() throws {
        let connection = try driver.connect(database.conninfo)
        let uuid = UUID()
        let json = #"{"b" : 1,  "a":[1e2, 9007199254740993]}"#
        var parameters = ParameterList()
        parameters.append(uuid)
        parameters.append(true)
        parameters.append(false)
        parameters.append(json: json)
        let rows = try driver.execute(connection, "SELECT $1, $2, $3, $4, $1::text", parameters)
        #expect(try rows.uuid(0, 0) == uuid)
        #expect(try rows.text(0, 4) == uuid.uuidString.lowercased())
        #expect(try rows.bool(0, 1))
        #expect(try !rows.bool(0, 2))
        #expect(try rows.text(0, 3) == json)
    }

    @Test("times keep their microsecond, from 4713 BC to the end of what PostgreSQL and Int64 share")
    func times() throws {
        let connection = try driver.connect(database.conninfo)
        let known: [(Int64, String)] = [
            (0, "1970-01-01 00:00:00+00"), (1, "1970-01-01 00:00:00.000001+00"),
            (-1, "1969-12-31 23:59:59.999999+00"), (946_684_800_000_000, "2000-01-01 00:00:00+00"),
            (1_795_953_600_123_456, "2026-11-29 12:00:00.123456+00"),
            (-210_866_803_200_000_000, "4714-11-24 00:00:00+00 BC"),
            (.max - 1, "294247-01-10 04:00:54.775806+00"), (.min, "-infinity"), (.max, "infinity"),
        ]
        for (value, text) in known {
            var parameters = ParameterList()
            parameters.append(microsecondsSince1970: value)
            let rows = try driver.execute(connection, "SELECT $1, $1::text", parameters)
            #expect(try rows.microsecondsSince1970(0, 0) == value)
            #expect(try rows.text(0, 1) == text)
        }
        for value: Int64 in [.min + 1, -210_866_803_200_000_001] {
            var parameters = ParameterList()
            parameters.append(microsecondsSince1970: value)
            let result = try driver.answer { done in
                connection.execute(Statement("time", "SELECT $1, $1::text"), parameters) { done($0) }
            }
            #expect(result.failure?.sqlState == .datetimeFieldOverflow)
        }
        let late = try driver.execute(connection, "SELECT '294276-12-31 23:59:59.999999+00'::timestamptz")
        #expect(throws: DatabaseError.self) { try late.microsecondsSince1970(0, 0) }
    }

    @Test("a NULL of every type arrives as NULL, and no getter takes it for a value")
    func nulls() throws {
        let connection = try driver.connect(database.conninfo)
        let types: [PostgresType] = [
            .bool, .bytea, .int8, .int4, .text, .json, .timestamptz, .uuid, .int8Array, .textArray, .uuidArray,
        ]
        var parameters = ParameterList()
        for type in types { parameters.appendNull(type) }
        let list = types.indices.map { "$\($0 + 1)" }.joined(separator: ", ")
        let rows = try driver.execute(connection, "SELECT \(list)", parameters)
        for (column, type) in types.enumerated() {
            #expect(try rows.isNull(0, column))
            #expect(try rows.type(ofColumn: column) == type)
        }
        #expect(throws: DatabaseError.self) { try rows.bool(0, 0) }
        #expect(throws: DatabaseError.self) { try rows.bytes(0, 1) }
        #expect(throws: DatabaseError.self) { try rows.int8(0, 2) }
        #expect(throws: DatabaseError.self) { try rows.text(0, 4) }
        #expect(throws: DatabaseError.self) { try rows.microsecondsSince1970(0, 6) }
        #expect(throws: DatabaseError.self) { try rows.uuid(0, 7) }
    }

    @Test("a getter of another type, row or column throws and never traps")
    func mismatches() throws {
        let connection = try driver.connect(database.conninfo)
        let rows = try driver.execute(connection, "SELECT 1::int8, 'x'::text, 2147483648::int8, 1.5::float8")
        #expect(throws: DatabaseError.self) { try rows.text(0, 0) }
        #expect(throws: DatabaseError.self) { try rows.int8(0, 1) }
        #expect(throws: DatabaseError.self) { try rows.int4(0, 2) }
        #expect(throws: DatabaseError.self) { try rows.int8(0, 3) }
        #expect(throws: DatabaseError.self) { try rows.uuid(0, 0) }
        #expect(throws: DatabaseError.self) { try rows.bool(0, 0) }
        #expect(throws: DatabaseError.self) { try rows.microsecondsSince1970(0, 0) }
        for (row, column) in [(1, 0), (-1, 0), (0, 4), (0, -1), (.max, .max)] {
            #expect(throws: DatabaseError.self) { try rows.isNull(row, column) }
            #expect(throws: DatabaseError.self) { try rows.int8(row, column) }
        }
        #expect(throws: DatabaseError.self) { try rows.type(ofColumn: 4) }
        #expect(throws: DatabaseError.self) { try rows.column(named: "nope") }
        #expect(try rows.column(named: "text") == 1)
    }

    @Test("12 parameters keep their order")
    func manyParameters() throws {
        let connection = try driver.connect(database.conninfo)
        var parameters = ParameterList()
        for number: Int32 in 1...12 { parameters.append(number) }
        let list = (1...12).map { "$\($0)" }.joined(separator: ", ")
        let rows = try driver.execute(connection, "SELECT \(list)", parameters)
        #expect(try (0..<12).map { column throws(DatabaseError) in try rows.int4(0, column) } == Array(1...12))
        parameters.removeAll()
        #expect(parameters.count == 0 && parameters.byteCount == 0)
    }

    @Test("more parameters than the wire counts are refused before they are sent")
    func tooManyParameters() throws {
        let connection = try driver.connect(database.conninfo)
        var parameters = ParameterList()
        for _ in 0...65_535 { parameters.append(true) }
        let result = try driver.answer { done in
            connection.execute(Statement("many", "SELECT 1"), parameters) { done($0) }
        }
        #expect(result.failure?.kind == .protocol)
        #expect(try driver.execute(connection, "SELECT 1::int4").int4(0, 0) == 1)
    }
}
