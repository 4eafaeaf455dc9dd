import Glibc

/// Puts the terminal back when the program dies at once: of a fault of its own (a trap, a bad address, an abort), or of a signal
/// that nobody here has a use for, and that would end it all the same.
///
/// The handler calls only what POSIX allows in one (tcsetattr, write, raise), and touches only the memory that ``arm`` has made
/// beforehand. The signal then has its own effect, so that the death is reported as what it is.
enum EmergencyExit {
    private struct Plan {
        var input: Int32
        var output: Int32
        var settings: termios
        var farewell: UnsafeMutableBufferPointer<UInt8>
    }

    /// Written on the thread that owns the terminal, and before the signals are watched; read by the handler, which may come on
    /// any thread, but then ends the process.
    nonisolated(unsafe) private static var plan: UnsafeMutablePointer<Plan>?

    /// What the signals did before.
    nonisolated(unsafe) private static var earlier: [(signal: Int32, action: sigaction)] = []

    private static let faults = [SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGABRT, SIGFPE, SIGQUIT, SIGSYS]

    /// The others that end a program which does not watch them; see signal(7). Left out are SIGTERM, SIGHUP and SIGINT, which the
    /// loop watches, SIGPIPE, which is ignored, and the real-time signals 32 and 33, which the C library keeps.
    private static let endings =
        [SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGPROF, SIGXCPU, SIGXFSZ, SIGPOLL, SIGPWR, SIGSTKFLT] + Array(34...64)

    static func arm(input: Int32, output: Int32, settings: termios, farewell: String) {
        disarm()
        let bytes = Array(farewell.utf8)
        let buffer = UnsafeMutableBufferPointer<UInt8>.allocate(capacity: bytes.count)
        _ = buffer.initialize(from: bytes)
        let new = UnsafeMutablePointer<Plan>.allocate(capacity: 1)
        new.initialize(to: Plan(input: input, output: output, settings: settings, farewell: buffer))
        plan = new
        for signal in faults + endings {
            var action = sigaction()
            action.__sigaction_handler.sa_handler = { number in EmergencyExit.putBack(number) }
            action.sa_flags = Int32(bitPattern: UInt32(SA_RESETHAND)) | SA_NODEFER
            var old = sigaction()
            guard sigaction(signal, &action, &old) == 0 else { continue }
            // What somebody wanted ignored stays so, but for the faults, from which nobody comes back.
            if endings.contains(signal), old.__sigaction_handler.sa_handler != nil {
                sigaction(signal, &old, nil)
            } else {
                earlier.append((signal, old))
            }
        }
    }

    static func disarm() {
        guard let old = plan else { return }
        for (signal, action) in earlier {
            var action = action
            sigaction(signal, &action, nil)
        }
        earlier = []
        plan = nil
        old.pointee.farewell.deallocate()
        old.deallocate()
    }

    private static func putBack(_ number: Int32) {
        if let plan {
            _ = write(plan.pointee.output, plan.pointee.farewell.baseAddress, plan.pointee.farewell.count)
            tcsetattr(plan.pointee.input, TCSANOW, &plan.pointee.settings)
        }
        // SA_RESETHAND has given the signal its own effect back.
        raise(number)
    }
}
