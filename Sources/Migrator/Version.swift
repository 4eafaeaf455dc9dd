/// The number that a migration's file name begins with: any count of digits, compared as a number.
///
/// `0007` and `7` are the same version. There is no upper bound, so that time stamps of any width fit.
public struct Version: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The digits without leading zeros; `"0"` for zero.
    public let digits: String

    /// Reads a string of ASCII digits; nil for anything else, the empty string included.
    public init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard !bytes.isEmpty, bytes.allSatisfy({ (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }) else {
            return nil
        }
        let significant = bytes.drop { $0 == UInt8(ascii: "0") }
        digits = significant.isEmpty ? "0" : String(decoding: significant, as: UTF8.self)
    }

    /// The digits without leading zeros.
    public var description: String { digits }

    /// Compares as numbers.
    public static func < (left: Version, right: Version) -> Bool {
        let (leftCount, rightCount) = (left.digits.utf8.count, right.digits.utf8.count)
        return leftCount == rightCount ? left.digits < right.digits : leftCount < rightCount
    }
}
