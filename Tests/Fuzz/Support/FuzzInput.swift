/// What libFuzzer hands over, read from its beginning to its end.
public struct FuzzInput {
    private var bytes: ArraySlice<UInt8>

    /// Copies the input, so that reading beyond it is caught.
    public init(_ start: UnsafePointer<UInt8>?, _ count: Int) {
        bytes = Array(UnsafeBufferPointer(start: start, count: count))[...]
    }

    /// Whether all was read.
    public var isEmpty: Bool { bytes.isEmpty }

    /// All that was not read yet.
    public var rest: [UInt8] { Array(bytes) }

    /// The next byte; 0 at the end.
    public mutating func byte() -> UInt8 { bytes.popFirst() ?? 0 }

    /// The bytes up to the next line feed, which is passed over.
    public mutating func line() -> [UInt8] {
        let line = bytes.prefix { $0 != UInt8(ascii: "\n") }
        bytes = bytes.dropFirst(line.count + 1)
        return Array(line)
    }

    /// One of a list.
    public mutating func pick<Element>(_ list: [Element]) -> Element? {
        list.isEmpty ? nil : list[Int(byte()) % list.count]
    }
}

/// Ends the program when a rule is broken: libFuzzer keeps the input.
public func hold(_ isHeld: Bool, _ rule: @autoclosure () -> String) {
    guard !isHeld else { return }
    fatalError("does not hold: " + rule())
}
