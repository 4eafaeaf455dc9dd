import Foundation
import Testing

@testable import IeumClient

@Suite("An old object")
struct OldObjectTests {
    private func object(_ json: String) throws -> OldObject {
        OldObject(
            id: "7", state: try PersistedState(json: Array(json.utf8)),
            site: MigrationSite(collection: "person", type: "Person"))
    }

    @Test("gives every type back exactly")
    func types() throws {
        let old = try object(
            """
            {"name":"이\\n","age":-3,"big":9007199254740993,"max":-9223372036854775808,"half":0.5,"nan":"NaN",
             "inf":"-Infinity","yes":true,"bytes":"AAH/","when":"2025-09-30T19:02:11.480000Z",
             "key":"6C1E7F10-0000-4000-8000-000000000001","none":null,
             "home":{"street":"세종로","rooms":[{"n":1},{"n":2},{"n":1}]},
             "lists":[[1],[],[2,3]],"numbers":[3,1,3],"halves":[0.5],"maybe":["a",null],"flags":[true,false],
             "days":["2025-01-01T00:00:00Z"],"blobs":["AQ=="],"empty":[]}
            """)
        #expect(try old.string("name") == "이\n")
        #expect(try old.int("age") == -3)
        #expect(try old.int("big") == 9_007_199_254_740_993)
        #expect(try old.int("max") == .min)
        #expect(try old.double("half") == 0.5)
        #expect(try old.double("age") == -3)
        #expect(try old.double("nan").isNaN)
        #expect(try old.double("inf") == -.infinity)
        #expect(try old.bool("yes"))
        #expect(try old.data("bytes") == Data([0, 1, 255]))
        #expect(abs(try old.date("when").timeIntervalSince1970 - 1_759_258_931.48) < 1e-6)
        #expect(try old.uuid("key").uuidString == "6C1E7F10-0000-4000-8000-000000000001")
        #expect(try old.object("home").string("street") == "세종로")
        #expect(try old.object("home").objects("rooms").map { try $0.int("n") } == [1, 2, 1])
        #expect(try old["home"].object["rooms"].objects.count == 3)
        #expect(try old.list("lists", of: [Int].self) == [[1], [], [2, 3]])
        #expect(try old["numbers"].ints == [3, 1, 3])
        #expect(try old["halves"].doubles == [0.5])
        #expect(try old.list("maybe", of: String?.self) == ["a", nil])
        #expect(try old.list("flags", of: Bool.self) == [true, false])
        #expect(try old.list("days", of: Date.self).count == 1)
        #expect(try old.list("blobs", of: Data.self) == [Data([1])])
        #expect(try old["empty"].strings == [])
        #expect(try old["empty"].objects.isEmpty)
        #expect(try old.value("home", as: [String: OldAny].self).count == 2)
    }

    /// Decodes from anything.
    private struct OldAny: Decodable {
        init(from decoder: any Decoder) {}
    }

    @Test("gives nil for an optional that is null or missing, and an error for one of another type")
    func optionals() throws {
        let old = try object(#"{"none":null,"name":"a"}"#)
        #expect(try old.optional("none", as: String.self) == nil)
        #expect(try old.optional("missing", as: Date.self) == nil)
        #expect(try old.optional("name", as: String.self) == "a")
        #expect(try old.value("missing", as: Int?.self) == nil)
        #expect(try old.value("none", as: Int?.self) == nil)
        #expect(old["none"].isNil && old["missing"].isNil && !old["name"].isNil)
        #expect(old.contains("none") && !old.contains("missing") && old.keys == ["none", "name"])
        #expect(throws: StoreError.self) { try old.optional("name", as: Int.self) }
    }

    @Test("keeps 100,000 elements in order, duplicates too")
    func many() throws {
        let numbers = (0..<100_000).map { String($0 % 1_000) }
        let old = try object("{\"list\":[\(numbers.map { "\"\($0)\"" }.joined(separator: ","))]}")
        #expect(try old.list("list", of: String.self) == numbers)
        let objects = try object("{\"list\":[\(numbers.map { "{\"n\":\($0)}" }.joined(separator: ","))]}")
        #expect(try objects.objects("list").count == 100_000)
        #expect(try objects.objects("list").last?.int("n") == 999)
    }

    @Test("says which type, property, stored type and asked type did not fit")
    func errors() throws {
        let old = try object(
            #"{"name":5,"list":["a",1,"b"],"home":{"rooms":[{"n":"x"}]},"half":1.5,"when":"yesterday","bytes":"?","none":null,"huge":99999999999999999999}"#
        )
        let cases: [(expected: (String, String?, String), read: () throws -> Void)] = [
            (("name", "number", "String"), { _ = try old.string("name") }),
            (("list[1]", "number", "String"), { _ = try old.list("list", of: String.self) }),
            (("list", "array", "String"), { _ = try old.string("list") }),
            (("name", "number", "list of String"), { _ = try old["name"].strings }),
            (("name", "number", "object"), { _ = try old.object("name") }),
            (("home", "object", "list of objects"), { _ = try old.objects("home") }),
            (("list[0]", "string", "object"), { _ = try old.objects("list") }),
            (("home.rooms[0].n", "string", "Int"), { _ = try old.object("home").objects("rooms")[0].int("n") }),
            (("half", "number", "Int"), { _ = try old.int("half") }),
            (("huge", "number", "Int"), { _ = try old.int("huge") }),
            (("half", "number", "Bool"), { _ = try old.bool("half") }),
            (("when", "string", "Date"), { _ = try old.date("when") }),
            (("when", "string", "UUID"), { _ = try old.uuid("when") }),
            (("bytes", "string", "Data"), { _ = try old.data("bytes") }),
            (("none", "null", "String"), { _ = try old.string("none") }),
            (("missing", nil, "String"), { _ = try old.string("missing") }),
        ]
        for (expected, read) in cases {
            let error = #expect(throws: StoreError.self) { try read() }
            let place = error?.place
            #expect(place?.collection == "person" && place?.type == "Person" && place?.id == "7")
            #expect(place?.property == expected.0)
            #expect(place?.storedType == expected.1, "\(expected)")
            #expect(place?.askedType == expected.2, "\(expected)")
            #expect(error?.message.contains("Person.\(expected.0)") == true)
        }
    }

    @Test("is copied into the new one byte for byte, nested objects too, and a nil is not stored")
    func copies() throws {
        let old = try object(#"{"a":1.50,"b":{"x":12345678901234567890.5},"c":null}"#)
        var new = NewObject(id: "7", state: PersistedState(), site: old.site)
        new.set("a2", to: old["a"])
        new.set("b2", to: try old.object("b"))
        try new.set("list", to: ["x", "x"])
        try new.set("nothing", to: Int?.none)
        try new.set("nan", to: Double.nan)
        #expect(
            String(decoding: new.state.json, as: UTF8.self)
                == #"{"a2":1.50,"b2":{"x":12345678901234567890.5},"list":["x","x"],"nan":"NaN"}"#)
        new.set("a2", to: old["missing"])
        #expect(new.keys == ["b2", "list", "nan"])
    }
}
