import Foundation
import FuzzSupport

@testable import IeumClient
@testable import Wire

/// What the server takes as a state, the client can take apart, and Foundation too.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzJSON(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let text = FuzzInput(start, count).rest
    do throws(LineCheck.Failure) {
        try LineCheck.check(text.span)
    } catch {
        // No line can hold it; taking it apart must still end well.
        _ = StateTape(text)
        return 0
    }
    do throws(JSONCheck.Failure) {
        try JSONCheck.check(text.span)
    } catch {
        hold(0...text.count ~= error.offset, "\(error) lies in the text")
        _ = StateTape(text)
        return 0
    }
    hold(StateTape(text) != nil, "what passes can be taken apart")
    // Foundation takes no number beyond a Double's range, PostgreSQL does.
    guard text.count < 256, !text.contains(where: { $0 | 0x20 == UInt8(ascii: "e") }) else { return 0 }
    hold(
        (try? JSONSerialization.jsonObject(with: Data(text), options: .fragmentsAllowed)) != nil,
        "what passes is JSON to Foundation: \(String(decoding: text, as: UTF8.self))")
    return 0
}
