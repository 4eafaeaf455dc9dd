import Foundation
import Wire

/// The server's wall clock.
enum Clock {
    /// Now, in whole microseconds UTC.
    static func now() -> Timestamp {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Timestamp(clamping: Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)
    }
}
