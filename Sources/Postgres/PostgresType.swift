/// A data type of PostgreSQL by its object id, as far as this module reads and writes it in binary.
///
/// The ids of built-in types are fixed (`pg_type.dat`).
public struct PostgresType: RawRepresentable, Hashable, Sendable {
    /// The type's object id.
    public let rawValue: UInt32

    /// Wraps an object id.
    public init(rawValue: UInt32) {
        self.rawValue = rawValue
    }

    /// `boolean`, one byte.
    public static let bool = PostgresType(rawValue: 16)
    /// `bytea`, any bytes.
    public static let bytea = PostgresType(rawValue: 17)
    /// `bigint`, eight bytes.
    public static let int8 = PostgresType(rawValue: 20)
    /// `smallint`, two bytes.
    public static let int2 = PostgresType(rawValue: 21)
    /// `integer`, four bytes.
    public static let int4 = PostgresType(rawValue: 23)
    /// `text`, UTF-8 without NUL.
    public static let text = PostgresType(rawValue: 25)
    /// `json`, kept byte for byte.
    public static let json = PostgresType(rawValue: 114)
    /// `timestamptz`, microseconds.
    public static let timestamptz = PostgresType(rawValue: 1184)
    /// `uuid`, sixteen bytes.
    public static let uuid = PostgresType(rawValue: 2950)

    /// `boolean[]`.
    public static let boolArray = PostgresType(rawValue: 1000)
    /// `bytea[]`.
    public static let byteaArray = PostgresType(rawValue: 1001)
    /// `integer[]`.
    public static let int4Array = PostgresType(rawValue: 1007)
    /// `text[]`.
    public static let textArray = PostgresType(rawValue: 1009)
    /// `bigint[]`.
    public static let int8Array = PostgresType(rawValue: 1016)
    /// `timestamptz[]`.
    public static let timestamptzArray = PostgresType(rawValue: 1185)
    /// `json[]`.
    public static let jsonArray = PostgresType(rawValue: 199)
    /// `uuid[]`.
    public static let uuidArray = PostgresType(rawValue: 2951)
}

extension PostgresType {
    /// Types whose binary form is their text: text, name, varchar, char(n), json, unknown and "char".
    var isTextual: Bool {
        switch rawValue {
        case 18, 19, 25, 114, 705, 1042, 1043: true
        default: false
        }
    }
}

/// Microseconds since 1970 in our API, since 2000 on PostgreSQL's wire; the extremes of Int64 mean `infinity` in both.
enum PostgresTime {
    static let microsecondsFrom1970To2000: Int64 = 946_684_800_000_000

    /// To the wire. What the subtraction cannot hold becomes a value that the server refuses as out of range
    /// (22008), never an infinity that nobody meant.
    static func wire(fromUnix microseconds: Int64) -> Int64 {
        if microseconds == .max || microseconds == .min { return microseconds }
        let (value, overflow) = microseconds.subtractingReportingOverflow(microsecondsFrom1970To2000)
        return overflow ? .min + 1 : value
    }

    /// From the wire; nil beyond the year 294247, which microseconds since 1970 cannot hold.
    static func unix(fromWire value: Int64) -> Int64? {
        if value == .max || value == .min { return value }
        let (microseconds, overflow) = value.addingReportingOverflow(microsecondsFrom1970To2000)
        return overflow ? nil : microseconds
    }
}
