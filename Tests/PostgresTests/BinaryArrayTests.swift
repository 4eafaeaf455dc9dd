import EventLoop
import Foundation
import Postgres
import TestSupport
import Testing

@Suite("Binary arrays")
struct BinaryArrayTests {
    let database: TestDatabase
    let driver: LoopDriver

    init() throws {
        database = try TestDatabase.make()
        driver = try LoopDriver()
    }

    /// The array as PostgreSQL writes it, and its elements as rows.
    private func send(_ array: BinaryArray) throws -> (text: String, rows: QueryResult) {
        let connection = try driver.connect(database.conninfo)
        var parameters = ParameterList()
        parameters.append(array)
        let text = try driver.execute(connection, "SELECT $1::text", parameters).text(0, 0)
        return (
            text,
            try driver.execute(
                connection, "SELECT e FROM unnest($1) WITH ORDINALITY AS u (e, n) ORDER BY n", parameters)
        )
    }

    @Test(
        "an empty array of every type is empty, and has no dimension",
        arguments: [
            BinaryArray.Element.bool, .bytea, .int4, .int8, .json, .text, .timestamptz, .uuid,
        ])
    func empty(element: BinaryArray.Element) throws {
        let (text, rows) = try send(BinaryArray(of: element))
        #expect(text == "{}")
        #expect(rows.rowCount == 0)
    }

    @Test("integers, with NULLs and extremes")
    func integers() throws {
        var wide = BinaryArray(of: .int8)
        wide.append(Int64.min)
        wide.appendNull()
        wide.append(Int64.max)
        #expect(try send(wide).text == "{-9223372036854775808,NULL,9223372036854775807}")
        var narrow = BinaryArray(of: .int4)
        for value: Int32 in [.min, 0, .max] { narrow.append(value) }
        #expect(try send(narrow).text == "{-2147483648,0,2147483647}")
    }

    @Test("texts, bytes and json from every kind of bytes")
    func bytes() throws {
        let words: [String?] = ["", "한들", nil, "NULL", "a\"b\\c{},"]
        for element in [BinaryArray.Element.text, .json, .bytea] {
            var array = BinaryArray(of: element)
            for (index, word) in words.enumerated() {
                guard let word else { array.appendNull(); continue }
                let utf8 = element == .json ? Array("[\"\(index)\"]".utf8) : Array(word.utf8)
                switch index % 4 {
                case 0: array.append(utf8)
                case 1: array.append(utf8.span)
                case 2: array.append(utf8[...])
                default: utf8.withUnsafeBytes { array.append($0) }
                }
            }
            #expect(array.count == words.count)
            let rows = try send(array).rows
            for (index, word) in words.enumerated() {
                #expect(try rows.isNull(index, 0) == (word == nil))
                guard let word else { continue }
                let expected = element == .json ? Array("[\"\(index)\"]".utf8) : Array(word.utf8)
                #expect(try rows.byteArray(index, 0) == expected)
            }
        }
    }

    @Test("UUIDs, times and truth values, with NULLs")
    func others() throws {
        let uuids = (0..<5).map { _ in UUID() }
        var array = BinaryArray(of: .uuid)
        for uuid in uuids { array.append(uuid) }
        array.appendNull()
        withUnsafeBytes(of: uuids[0].uuid) { array.append($0) }
        let rows = try send(array).rows
        #expect(try (0..<5).map { row throws(DatabaseError) in try rows.uuid(row, 0) } == uuids)
        #expect(try rows.isNull(5, 0))
        #expect(try rows.uuid(6, 0) == uuids[0])

        var times = BinaryArray(of: .timestamptz)
        for time: Int64 in [0, -1, .max, .min] { times.append(microsecondsSince1970: time) }
        let timeRows = try send(times).rows
        #expect(
            try (0..<4).map { row throws(DatabaseError) in try timeRows.microsecondsSince1970(row, 0) } == [
                0, -1, .max, .min,
            ])

        var truths = BinaryArray(of: .bool)
        truths.append(true)
        truths.append(false)
        truths.appendNull()
        #expect(try send(truths).text == "{t,f,NULL}")
    }

    @Test("a builder that is used again holds nothing of its last use")
    func reuse() throws {
        var array = BinaryArray(of: .text)
        for round in 0..<3 {
            array.removeAll()
            #expect(array.isEmpty)
            for index in 0...round { array.append("\(round)-\(index)") }
            if round == 0 { array.appendNull() }
            let expected = (0...round).map { "\(round)-\($0)" } + (round == 0 ? ["NULL"] : [])
            #expect(try send(array).text == "{\(expected.joined(separator: ","))}")
        }
        array.removeAll(keepingAtMost: 0)
        #expect(try send(array).text == "{}")
    }

    @Test("random arrays come back element for element")
    func random() throws {
        var random = SeededRandom(for: "random arrays")
        for _ in 0..<20 {
            let values: [[UInt8]?] = (0..<Int.random(in: 0...200, using: &random)).map { _ in
                Bool.random(using: &random) ? random.bytes(Int.random(in: 0...300, using: &random)) : nil
            }
            var array = BinaryArray(of: .bytea)
            for value in values { if let value { array.append(value) } else { array.appendNull() } }
            let rows = try send(array).rows
            #expect(rows.rowCount == values.count)
            for (row, value) in values.enumerated() {
                let received = try rows.isNull(row, 0) ? nil : rows.byteArray(row, 0)
                #expect(received == value)
            }
        }
    }
}
