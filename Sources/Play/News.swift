import EventLoop
import Handle
import IeumClient
import Synchronization

/// What comes from other threads.
enum News: Sendable {
    /// The game on the screen has changed in the store.
    case changed
    /// A game was finished, here or elsewhere.
    case statistics(Statistics)
    /// The connection to the server is another one.
    case status(SyncStatus)
    /// The engine tells something; the next event comes when this one is done with.
    case event(SyncEvent)
    /// The dictionary's answer.
    case verdict(PlaySession.Verdict, [Jamo])
}

/// Where other threads leave news; it wakes the loop.
final class NewsBox: Sendable {
    private let items = Mutex<[News]>([])
    private let remote: EventLoop.Remote

    init(waking remote: EventLoop.Remote) {
        self.remote = remote
    }

    func put(_ item: News) {
        items.withLock { $0.append(item) }
        remote.post {}
    }

    var isEmpty: Bool { items.withLock { $0.isEmpty } }

    func takeAll() -> [News] {
        items.withLock { items in
            defer { items = [] }
            return items
        }
    }
}
