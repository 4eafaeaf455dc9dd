import Dispatch
import Synchronization

/// What the centre asks of a feed, whatever it holds.
protocol RefreshableFeed: AnyObject, Sendable {
    /// Reads what changed and offers it to the observers. Called on the centre's queue alone.
    func refresh()
    /// Takes an observer away, which has ended before; returns whether nobody is left.
    func remove(_ number: UInt64) -> Bool
    /// Offers the snapshot to an observer at the next refreshing even where nothing changed.
    func remind(_ number: UInt64)
}

/// All observers of one store. The store calls `committed` after each commit; everything else follows on a queue of the
/// centre's own, never in the thread that wrote.
package final class ObservationCentre: Sendable {
    /// A type as it is read from a collection.
    struct Key: Hashable, Sendable {
        var collection: String
        var type: ObjectIdentifier
    }

    private struct State: Sendable {
        var feeds: [Key: any RefreshableFeed] = [:]
        /// Feeds whose refreshing is asked for and has not begun.
        var stale: Set<Key> = []
        var isRefreshing = false
        var lastNumber: UInt64 = 0
        var poll: Poll?
    }

    /// Where calls are made that name no queue: serial, in the background, no run loop needed.
    package let calls = DispatchQueue(label: "ieum.observation.calls")
    private let queue = DispatchQueue(label: "ieum.observation.refresh")
    private let state = Mutex(State())
    private let dataVersion: (@Sendable () throws -> Int64)?
    private let pollInterval: DispatchTimeInterval

    /// - Parameters:
    ///   - dataVersion: a number that changes when another connection commits (`PRAGMA data_version` of the connection that
    ///     reads for the observers); asked on the centre's queue, and only while there are observers.
    ///   - pollInterval: how often it is asked.
    package init(
        pollInterval: DispatchTimeInterval = .milliseconds(100), dataVersion: (@Sendable () throws -> Int64)? = nil
    ) {
        self.pollInterval = pollInterval
        self.dataVersion = dataVersion
    }

    /// Tells the observers of these collections that a commit has changed visible rows. From any thread; returns at once.
    package func committed(_ collections: some Sequence<String>) {
        let collections = Set(collections)
        refresh { collections.contains($0.collection) }
    }

    /// Begins an observation. The subscription hears of its initial collection on its own queue, never in here.
    func observe<Element: Sendable>(
        _ subscription: Subscription<Element>, in collection: String,
        read: @escaping @Sendable (Int64?) throws -> RowChanges<Element>
    ) -> Place {
        let key = Key(collection: collection, type: ObjectIdentifier(Element.self))
        let number = state.withLock { state in
            state.lastNumber += 1
            let feed: ObservationFeed<Element>
            if let known = state.feeds[key] as? ObservationFeed<Element> {
                feed = known
            } else {
                feed = ObservationFeed(read: read)
                state.feeds[key] = feed
            }
            feed.add(subscription, as: state.lastNumber)
            if state.poll == nil, dataVersion != nil { state.poll = makePoll() }
            return state.lastNumber
        }
        refresh { $0 == key }
        return Place(key: key, number: number)
    }

    /// Where an observer is registered.
    struct Place: Sendable {
        var key: Key
        var number: UInt64
    }

    func remove(_ place: Place) {
        let gone: (feed: (any RefreshableFeed)?, poll: Poll?) = state.withLock { state in
            guard let feed = state.feeds[place.key], feed.remove(place.number) else { return (nil, nil) }
            state.feeds[place.key] = nil
            guard state.feeds.isEmpty else { return (feed, nil) }
            defer { state.poll = nil }
            return (feed, state.poll)
        }
        gone.poll?.stop()
    }

    /// Has the snapshot offered again to one observer.
    func remind(_ place: Place) {
        state.withLock { $0.feeds[place.key]?.remind(place.number) }
        refresh { $0 == place.key }
    }

    private func refresh(where isStale: (Key) -> Bool) {
        let isToStart = state.withLock { state in
            state.stale.formUnion(state.feeds.keys.filter(isStale))
            guard !state.isRefreshing, !state.stale.isEmpty else { return false }
            state.isRefreshing = true
            return true
        }
        if isToStart { queue.async { self.refreshStale() } }
    }

    private func refreshStale() {
        while let feeds = takeStale() {
            for feed in feeds { feed.refresh() }
        }
    }

    private func takeStale() -> [any RefreshableFeed]? {
        state.withLock { state in
            guard !state.stale.isEmpty else {
                state.isRefreshing = false
                return nil
            }
            defer { state.stale.removeAll() }
            return state.stale.compactMap { state.feeds[$0] }
        }
    }

    private func makePoll() -> Poll? {
        guard let dataVersion else { return nil }
        let poll = Poll(queue: queue, interval: pollInterval)
        // A version that cannot be read lets the feeds read, who tell their observers the error.
        let last = Mutex<Int64?>(nil)
        poll.start { [weak self] in
            let version = try? dataVersion()
            let isNews = last.withLock { last in
                defer { last = version }
                return version == nil || version != last
            }
            if isNews { self?.refresh { _ in true } }
        }
        return poll
    }
}

/// A repeating look at the store, on the centre's queue.
///
/// `@unchecked Sendable`: Dispatch timers are not declared `Sendable`; this one is made, started and cancelled, which Dispatch allows from any thread.
final class Poll: @unchecked Sendable {
    private let timer: any DispatchSourceTimer

    init(queue: DispatchQueue, interval: DispatchTimeInterval) {
        timer = DispatchSource.makeTimerSource(queue: queue)
        timer.schedule(deadline: .now(), repeating: interval, leeway: .milliseconds(10))
    }

    func start(_ look: @escaping @Sendable () -> Void) {
        timer.setEventHandler(handler: look)
        timer.resume()
    }

    func stop() { timer.cancel() }
}
