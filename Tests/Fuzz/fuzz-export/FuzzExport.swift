import FuzzSupport
import Wire

/// Lines of an exported history, whoever wrote them: what is read and printed is read and printed as the same, and what
/// is imported is one line of the protocol.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzExport(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let line = {
        var input = FuzzInput(start, count)
        return input.line()
    }()
    guard let read = try? ExportLine(line[...]) else { return 0 }
    if case .end(let end) = read {
        // Without the mark before it no checksum can be right: it would be part of what it is made of.
        guard ExportLine.checksumStart(in: line[...]) != nil else { return 0 }
        // A checksum that is none may be any text, quotation marks included; it is compared, and never printed.
        guard end.checksum.utf8.allSatisfy({ (0x30...0x66).contains($0) && $0 != UInt8(ascii: "\\") }) else { return 0 }
    }
    checkAgain(read, read.bytes)
    return 0
}

private func checkAgain(_ line: ExportLine, _ printed: [UInt8]) {
    hold(printed.last == UInt8(ascii: "\n"), "a printed line is a line")
    if case .version(let version) = line, version.state?.contains(UInt8(ascii: "\n")) == true { return }
    hold(!printed.dropLast().contains(UInt8(ascii: "\n")), "a printed line is one line")
    guard let again = try? ExportLine(printed.dropLast()) else {
        return hold(false, "is read again: \(String(decoding: printed, as: UTF8.self))")
    }
    hold(again.bytes == printed, "is printed again as it was: \(String(decoding: printed, as: UTF8.self))")
}
