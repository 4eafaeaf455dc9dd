/// The changes of a collection, for `for try await`.
///
/// Each iteration is an observation of its own: `initial` first, then updates. A consumer that is slow gets merged updates,
/// never a queue of them. The loop ends when its task is cancelled, and throws when the collection cannot be read any longer.
public struct CollectionChanges<Element: Sendable>: AsyncSequence, Sendable {
    private let start: @Sendable () -> Iterator

    init(start: @escaping @Sendable () -> Iterator) {
        self.start = start
    }

    /// Begins an observation; it ends with the iterator.
    public func makeAsyncIterator() -> Iterator { start() }

    /// One observation, asked for its next change.
    public struct Iterator: AsyncIteratorProtocol {
        private let take: @Sendable () -> CollectionChange<Element>?
        private let token: ObservationToken
        private var signals: AsyncStream<Void>.Iterator

        init<Row>(
            _ subscription: Subscription<Row>,
            as element: @escaping @Sendable (CollectionChange<Row>) -> CollectionChange<Element>,
            register: (Subscription<Row>, _ alsoEnding: @escaping @Sendable () -> Void) -> ObservationToken
        ) {
            let (signals, signal) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
            subscription.whenReady { signal.yield() }
            take = {
                defer { subscription.rest() }
                return subscription.take().map(element)
            }
            self.signals = signals.makeAsyncIterator()
            token = register(subscription) { signal.finish() }
        }

        /// Waits for the next change; `nil` once the task is cancelled.
        public mutating func next() async throws -> CollectionChange<Element>? {
            while await signals.next() != nil {
                let change = take()
                if case .error(let error) = change { throw error }
                if let change { return change }
            }
            token.invalidate()
            return nil
        }
    }
}
