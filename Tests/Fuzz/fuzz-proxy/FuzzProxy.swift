import EventLoop
import FuzzSupport

/// Any beginning of a stream is a header, too little of one, or none; and what it is does not change with what follows.
@_cdecl("LLVMFuzzerTestOneInput")
public func fuzzProxy(_ start: UnsafePointer<UInt8>?, _ count: Int) -> CInt {
    let bytes = FuzzInput(start, count).rest
    let reading = ProxyHeader.read(bytes)
    switch reading {
    case .incomplete(let needed):
        hold(needed > bytes.count && needed <= ProxyHeader.maxLength, "more is needed than is there")
    case .header(let header):
        hold(header.length <= bytes.count, "a header lies in the bytes")
        hold(ProxyHeader.read(bytes.prefix(header.length)) == reading, "it ends where it says")
        hold(ProxyHeader.read(bytes + [0x0A]) == reading, "what follows changes nothing")
        for length in 0..<header.length {
            guard case .incomplete = ProxyHeader.read(bytes.prefix(length)) else {
                return {
                    hold(false, "a part of a header is incomplete"); return 0
                }()
            }
        }
    case .invalid:
        hold(ProxyHeader.read(bytes + [0x0A]) == reading, "no later byte mends it")
    }
    return 0
}
