import Glibc

/// A thread for one short piece of work that libpq offers only in a form that waits.
enum BackgroundThread {
    private final class Work: Sendable {
        let run: @Sendable () -> Void

        init(_ run: @escaping @Sendable () -> Void) {
            self.run = run
        }
    }

    /// Runs the work on a new thread that nobody waits for. If there can be no thread, it is not done.
    static func start(_ work: @escaping @Sendable () -> Void) {
        let context = Unmanaged.passRetained(Work(work))
        var attributes = pthread_attr_t()
        pthread_attr_init(&attributes)
        defer { pthread_attr_destroy(&attributes) }
        pthread_attr_setdetachstate(&attributes, Int32(PTHREAD_CREATE_DETACHED))
        var thread = pthread_t()
        let code = pthread_create(
            &thread, &attributes,
            { context in
                if let context { Unmanaged<Work>.fromOpaque(context).takeRetainedValue().run() }
                return nil
            }, context.toOpaque())
        if code != 0 { context.release() }
    }
}
