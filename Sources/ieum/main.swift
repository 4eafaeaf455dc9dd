import Arguments
import Foundation
import Glibc

StandardStreams.holdClosed()

// Writing to a reader that left is an error that is handled, and no death in the middle of something.
signal(SIGPIPE, SIG_IGN)

// Whoever started this may have blocked signals (Foundation's Process does), and blocked they stay: Ctrl-C must end it.
var none = sigset_t()
sigemptyset(&none)
sigprocmask(SIG_SETMASK, &none, nil)

let environment = ProcessInfo.processInfo.environment
let program = Program(environment: environment, output: Output(environment: environment))
exit(program.run(Array(CommandLine.arguments.dropFirst())).rawValue)
