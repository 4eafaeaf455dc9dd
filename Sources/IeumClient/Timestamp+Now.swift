import Glibc
import Wire

extension Timestamp {
    /// The machine's wall clock.
    package static var now: Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        let (micros, overflow) = Int64(time.tv_sec).multipliedReportingOverflow(by: 1_000_000)
        return overflow ? .latest : Timestamp(clamping: micros).advanced(byMicroseconds: Int64(time.tv_nsec) / 1_000)
    }
}

/// Waits.
func pause(_ duration: Duration) {
    let (seconds, attoseconds) = max(duration, .zero).components
    var rest = timespec(tv_sec: Int(seconds), tv_nsec: Int(attoseconds / 1_000_000_000))
    var left = timespec()
    while nanosleep(&rest, &left) != 0, errno == EINTR { rest = left }
}
