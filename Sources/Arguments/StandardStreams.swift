import Glibc

/// What a program is started with besides its arguments: standard input, output and error.
public enum StandardStreams {
    /// Takes the numbers of the streams that the process was started without, so that no file and no connection gets one, and
    /// with it what is written there. Reading from them finds the end, and writing to them fails as before.
    ///
    /// Called once, before anything is opened.
    public static func holdClosed() {
        for descriptor in STDIN_FILENO...STDERR_FILENO where fcntl(descriptor, F_GETFD) == -1 {
            // The lowest number that is free is this one.
            _ = open("/dev/null", O_RDONLY)
        }
    }
}
