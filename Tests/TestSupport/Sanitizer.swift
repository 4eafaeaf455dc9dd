import Foundation

/// What `script/sanitize` builds into the tests and the programs that they start.
public enum Sanitizer {
    /// Whether there is one: then memory is taken for its own books too, and everything takes its time. What a test says of
    /// memory is said without it.
    public static let isActive = ["ASAN_OPTIONS", "TSAN_OPTIONS"].contains {
        ProcessInfo.processInfo.environment[$0] != nil
    }

    /// What it is told by, for a program that is started with an environment of its own: where its reports go, what is known.
    public static let environment = ProcessInfo.processInfo.environment.filter { variable in
        ["ASAN_OPTIONS", "LSAN_OPTIONS", "UBSAN_OPTIONS", "TSAN_OPTIONS"].contains(variable.key)
            || variable.key == "LD_PRELOAD" && isActive
    }
}
