import Testing

@testable import Wire

/// JSON texts and what the check says of them. Each was tried on PostgreSQL 15 with `::json::jsonb`: it takes the valid
/// ones and refuses the others, but for those in ``onlyOurs``.
enum JSONCorpus {
    struct Invalid: Sendable, CustomTestStringConvertible {
        var text: String
        var reason: JSONCheck.Reason
        var offset: Int

        init(_ text: String, _ reason: JSONCheck.Reason, _ offset: Int) {
            self.text = text
            self.reason = reason
            self.offset = offset
        }

        var testDescription: String { "\(text.prefix(40)) \(reason) \(offset)" }
    }

    static let valid: [String] = [
        "{}", "[]", "null", "true", "false", "0", "-0", "7", "-12.50", "1e5", "1E+5", "1e-5", "0e0", "1.0e00012",
        "\"\"", "\"a\"", "\"한글 é 😀\"", "\"\u{7F}\u{85}\u{2028}\"", #""\"\\\/\b\f\n\r\t""#,
        #""\u0041\u00e9\uFFFF\uabCD""#,
        #""\ud83d\ude00""#, #""\uDBFF\uDFFF""#, #""\\u0000""#, #""\\ud800""#, "[1,2,3]", "[ 1 , 2 ]", "{ \"a\" : 1 }",
        "{\"a\":{\"b\":[{\"c\":[]},[],{}]}}", "{\"a\":1,\"a\":2}", "{\"\":0}", " {} ", "\t[\t]\t",
        "[[[[[[[[[[]]]]]]]]]]",
        "9223372036854775808", "0.1", "123456789012345678901234567890.123456789012345678901234567890",
        "1e131071", "-9.99e131071", "0.1e131072", "0.001e131074", "1e-16383", "0.5e-16382", "0e131072", "0e1073741822",
        "0.000e131075", "1e000000000000000000000000000000000001", "0e-16383",
        String(repeating: "9", count: 131_072), "0." + String(repeating: "9", count: 16_383),
        "0." + String(repeating: "0", count: 1_000) + "1e132072", String(repeating: "9", count: 100_000) + "e31072",
        String(repeating: "[", count: 512) + String(repeating: "]", count: 512),
        String(repeating: "{\"a\":", count: 511) + "[]" + String(repeating: "}", count: 511),
        "[" + String(repeating: "[{\"a\":[]}],", count: 1_000) + "0]",
    ]

    static let invalid: [Invalid] = [
        Invalid("", .endsBeforeValue, 0), Invalid(" ", .endsBeforeValue, 1),
        Invalid("{", .endsInObject, 1), Invalid("{\"answer\":", .endsInObject, 10), Invalid("{\"a\"", .endsInObject, 4),
        Invalid("{\"a\":1", .endsInObject, 6), Invalid("{\"a\":1,", .endsInObject, 7), Invalid("[", .endsInArray, 1),
        Invalid("[1", .endsInArray, 2), Invalid("[1,", .endsInArray, 3), Invalid("[{}", .endsInArray, 3),
        Invalid("{\"a\":[1]", .endsInObject, 8), Invalid("\"", .endsInString, 1), Invalid("\"abc", .endsInString, 4),
        Invalid("\"\\", .endsInString, 2), Invalid("\"\\u12", .endsInString, 5), Invalid("\"\\ud83d", .endsInString, 7),
        Invalid("\"\\ud83d\\", .endsInString, 8), Invalid("\"\\ud83d\\ude", .endsInString, 11),
        Invalid("-", .endsInNumber, 1), Invalid("1.", .endsInNumber, 2), Invalid("1e", .endsInNumber, 2),
        Invalid("1e+", .endsInNumber, 3),
        Invalid("}", .valueExpected, 0), Invalid("]", .valueExpected, 0), Invalid(",", .valueExpected, 0),
        Invalid("[,]", .valueExpected, 1), Invalid("[1,]", .valueExpected, 3), Invalid("{\"a\":}", .valueExpected, 5),
        Invalid("tru", .valueExpected, 0), Invalid("True", .valueExpected, 0), Invalid("nul", .valueExpected, 0),
        Invalid("NaN", .valueExpected, 0), Invalid("Infinity", .valueExpected, 0),
        Invalid("-Infinity", .malformedNumber, 1),
        Invalid("+1", .valueExpected, 0), Invalid(".5", .valueExpected, 0), Invalid("'a'", .valueExpected, 0),
        Invalid("한글", .valueExpected, 0), Invalid("\u{FEFF}{}", .valueExpected, 0),
        Invalid("\u{A0}1", .valueExpected, 0),
        Invalid("{a:1}", .keyExpected, 1), Invalid("{1:1}", .keyExpected, 1), Invalid("{,}", .keyExpected, 1),
        Invalid("{\"a\":1,}", .keyExpected, 7), Invalid("{\"a\" 1}", .colonExpected, 5),
        Invalid("{\"a\"}", .colonExpected, 4), Invalid("{\"a\":1 \"b\":2}", .commaOrBraceExpected, 7),
        Invalid("{\"a\":1]", .commaOrBraceExpected, 6), Invalid("[1 2]", .commaOrBracketExpected, 3),
        Invalid("[1}", .commaOrBracketExpected, 2), Invalid("[truefalse]", .commaOrBracketExpected, 5),
        Invalid("{} {}", .moreAfterValue, 3), Invalid("1 2", .moreAfterValue, 2), Invalid("{}x", .moreAfterValue, 2),
        Invalid("nullnull", .moreAfterValue, 4), Invalid("{}//c", .moreAfterValue, 2),
        Invalid("\"a\u{1}\"", .controlCharacterInString, 2), Invalid("\"a\tb\"", .controlCharacterInString, 2),
        Invalid("\"\n\"", .controlCharacterInString, 1), Invalid("\"0123456\u{1F}\"", .controlCharacterInString, 8),
        Invalid(#""\x41""#, .invalidEscape, 1), Invalid(#""a\'""#, .invalidEscape, 2),
        Invalid(#""\u12g4""#, .invalidEscape, 1),
        Invalid(#""\U0041""#, .invalidEscape, 1), Invalid(#""\u-123""#, .invalidEscape, 1),
        Invalid(#""\u0000""#, .escapedNUL, 1), Invalid(#"{"a\u0000b":1}"#, .escapedNUL, 3),
        Invalid(#"["ok","\u0000"]"#, .escapedNUL, 7),
        Invalid(#""\ud800""#, .loneSurrogate, 1), Invalid(#""ab\udc00""#, .loneSurrogate, 3),
        Invalid(#""\ud83dx""#, .loneSurrogate, 1), Invalid(#""\ud83d\n""#, .loneSurrogate, 1),
        Invalid(#""\ud83d\u0041""#, .loneSurrogate, 1), Invalid(#""\ud83d\ud83d""#, .loneSurrogate, 1),
        Invalid(#""\ude00\ud83d""#, .loneSurrogate, 1), Invalid(#""\uDFFF""#, .loneSurrogate, 1),
        Invalid("01", .malformedNumber, 0), Invalid("-01", .malformedNumber, 0), Invalid("00", .malformedNumber, 0),
        Invalid("1.e5", .malformedNumber, 2), Invalid("1.x", .malformedNumber, 2), Invalid("--1", .malformedNumber, 1),
        Invalid("1ex", .malformedNumber, 2), Invalid("1e--1", .malformedNumber, 3), Invalid("0x10", .moreAfterValue, 1),
        Invalid("1_000", .moreAfterValue, 1),
        Invalid("1e131072", .numberOutOfRange, 0), Invalid("10e131071", .numberOutOfRange, 0),
        Invalid("[1,-1e131072]", .numberOutOfRange, 3), Invalid("1e-16384", .numberOutOfRange, 0),
        Invalid("1.1e-16383", .numberOutOfRange, 0), Invalid("0.0e-16383", .numberOutOfRange, 0),
        Invalid("0e-999999", .numberOutOfRange, 0), Invalid("0e1073741823", .numberOutOfRange, 0),
        Invalid("1e99999999999999999999999999", .numberOutOfRange, 0),
        Invalid("1e-99999999999999999999999999", .numberOutOfRange, 0),
        Invalid(String(repeating: "9", count: 131_073), .numberOutOfRange, 0),
        Invalid("0." + String(repeating: "9", count: 16_384), .numberOutOfRange, 0),
        Invalid("1" + String(repeating: "0", count: 100) + "e-16483", .numberOutOfRange, 0),
        Invalid("0.01e131074", .numberOutOfRange, 0),
    ]

    /// What PostgreSQL takes and we do not: deep nesting, which its stack bounds at a depth of its own.
    static let onlyOurs: [Invalid] = [
        Invalid(String(repeating: "[", count: 513) + String(repeating: "]", count: 513), .tooDeep, 512),
        Invalid(String(repeating: "[", count: 100_000) + String(repeating: "]", count: 100_000), .tooDeep, 512),
        Invalid(String(repeating: "[", count: 100_000), .tooDeep, 512),
        Invalid(String(repeating: "{\"a\":", count: 100_000), .tooDeep, 512 * 5),
    ]
}
