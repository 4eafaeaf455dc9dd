import FuzzSupport
import Wire

/// Lines of clients and of servers: each is read or refused, and what was read and printed is read again as the same.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzLine(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let line = FuzzInput(start, count).rest
    checkCommand(line)
    checkServerLine(line)
    return 0
}

private let parser = CommandParser(limits: Limits(maxLineBytes: 4_096, maxStateBytes: 2_048))

private func checkCommand(_ line: [UInt8]) {
    do throws(WireError) {
        guard let command = try parser.parse(line.span) else { return }
        var printed: [UInt8] = []
        command.print(into: &printed)
        hold(printed.last == UInt8(ascii: "\n"), "a printed command is a line")
        hold(printed.dropLast().allSatisfy { $0 != UInt8(ascii: "\n") }, "a printed command is one line")
        hold(again(printed) == command, "\(command) is read again")
    } catch {
        var printed: [UInt8] = []
        error.print(into: &printed)
        hold(printed.count(where: { $0 == UInt8(ascii: "\n") }) == 1, "an error is one line")
        guard case .error(let read)? = serverLine(printed) else {
            return hold(false, "an error is read by a client: \(String(decoding: printed, as: UTF8.self))")
        }
        hold(read.code == error.code && read.message == error.message, "\(error) is read as it is")
    }
}

private func again(_ printed: [UInt8]) -> Command? {
    // Printing may make a line longer than what it was read from, e.g. by writing a time out.
    let generous = CommandParser(limits: Limits(maxLineBytes: 65_536, maxStateBytes: 2_048))
    let line = Array(printed.dropLast())
    return try? generous.parse(line.span)
}

private func serverLine(_ printed: [UInt8]) -> ServerLine? {
    let line = Array(printed.dropLast())
    return try? ServerLine.parse(line.span)
}

private func checkServerLine(_ line: [UInt8]) {
    guard let read = try? ServerLine.parse(line.span) else { return }
    guard case .game(let version) = read else { return }
    var printed: [UInt8] = []
    version.print(into: &printed)
    hold(serverLine(printed) == read, "\(read) is read again")
}
