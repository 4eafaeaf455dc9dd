import EventLoop

extension PrivateCluster {
    /// Tells, once, when the server ends without having been asked to; nil if it does not run.
    ///
    /// Keep what is returned as long as the answer matters, and cancel it before ``stop(within:)`` and ``start(within:)``,
    /// which close the descriptor that it watches. On the loop's thread.
    public func watchEnd(
        on loop: EventLoop, _ onEnded: @escaping () -> Void
    ) throws(EventLoopError) -> DescriptorWatch? {
        guard let endDescriptor else { return nil }
        let holder = Holder()
        let watch = try DescriptorWatch(on: loop, descriptor: endDescriptor, interest: .read) { _ in
            holder.watch?.cancel()
            onEnded()
        }
        holder.watch = watch
        return watch
    }

    private final class Holder {
        weak var watch: DescriptorWatch?
    }
}
