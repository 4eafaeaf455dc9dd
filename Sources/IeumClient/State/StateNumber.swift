import Wire

/// Numbers as a JSON text spells them. Integers are exact at any size; nothing goes through `Double` that is none.
enum StateNumber {
    /// An integer, however it is spelled (`12`, `12.0`, `1.2e1`); nil when it is none, or does not fit.
    static func integer<Number: FixedWidthInteger>(_ text: ArraySlice<UInt8>) -> Number? {
        let isNegative = text.first == UInt8(ascii: "-")
        let digits = isNegative ? text.dropFirst() : text
        guard digits.allSatisfy(\.isDigit) else { return integer(spelled: digits, isNegative: isNegative) }
        return digits.isEmpty ? nil : sum(digits, isNegative: isNegative)
    }

    /// A binary number: the nearest to what is spelled; nil when there is none that is finite.
    static func double<Number: BinaryFloatingPoint & LosslessStringConvertible>(_ text: ArraySlice<UInt8>) -> Number? {
        guard let text = String(validating: text, as: UTF8.self), let number = Number(text), number.isFinite else {
            return nil
        }
        return number
    }

    private static func sum<Number: FixedWidthInteger>(_ digits: some Sequence<UInt8>, isNegative: Bool) -> Number? {
        var value: Number = 0
        for digit in digits {
            let (shifted, isTooLarge) = value.multipliedReportingOverflow(by: 10)
            // Below 10: fits in every integer.
            let step = Number(truncatingIfNeeded: digit &- UInt8(ascii: "0"))
            let (next, isOver) =
                isNegative ? shifted.subtractingReportingOverflow(step) : shifted.addingReportingOverflow(step)
            guard !isTooLarge, !isOver else { return nil }
            value = next
        }
        return value
    }

    private static func integer<Number: FixedWidthInteger>(spelled text: ArraySlice<UInt8>, isNegative: Bool) -> Number?
    {
        var digits: [UInt8] = []
        var (exponent, written) = (0, 0)
        var (isInFraction, isInExponent, isWrittenNegative) = (false, false, false)
        for byte in text {
            switch byte {
            case UInt8(ascii: "."): isInFraction = true
            case UInt8(ascii: "e"), UInt8(ascii: "E"): isInExponent = true
            case UInt8(ascii: "-"): isWrittenNegative = true
            case UInt8(ascii: "+"): break
            default:
                guard byte.isDigit else { return nil }
                if isInExponent {
                    written = min(written * 10 + Int(byte - UInt8(ascii: "0")), 1 << 30)
                } else {
                    digits.append(byte)
                    if isInFraction { exponent -= 1 }
                }
            }
        }
        exponent += isWrittenNegative ? -written : written
        while digits.last == UInt8(ascii: "0") {
            digits.removeLast()
            exponent += 1
        }
        let significant = digits.drop { $0 == UInt8(ascii: "0") }
        if significant.isEmpty { return 0 }
        guard exponent >= 0, exponent < 64 else { return nil }
        return sum(significant + Array(repeating: UInt8(ascii: "0"), count: exponent), isNegative: isNegative)
    }
}
