/// What an observer of a collection is told.
///
/// First comes exactly one `initial`; then one `update` for each delivery, which merges all commits since the one before;
/// at most one `error`, which is the last. A commit that changes nothing in the observed collection gives no call. Games that
/// this app cannot read are left out, as ``GameStore/readableObjects(_:where:sortedBy:)`` does, which names them.
public enum CollectionChange<Element: Sendable>: Sendable {
    /// The collection as it is when the observer first hears of it; changes made meanwhile are in it.
    case initial([Element])
    /// The collection has changed: the new one, and how it came from the one of the call before.
    ///
    /// `deletions` and `modifications` are positions in the previous collection, `insertions` and `modificationsNew` in this
    /// one, all ascending. A row that moved is a deletion and an insertion.
    case update([Element], deletions: [Int], insertions: [Int], modifications: [Int], modificationsNew: [Int])
    /// The collection cannot be read any longer; nothing follows.
    case error(any Error)

    /// The collection that the call is about; `nil` for an error.
    public var elements: [Element]? {
        switch self {
        case .initial(let elements), .update(let elements, _, _, _, _): elements
        case .error: nil
        }
    }
}

/// What an observer of one object is told.
///
/// First comes exactly one `initial`, `nil` where there is no such object, or one `unreadable` in its place; at most one
/// `error`, which is the last.
public enum ObjectChange<Element: Sendable>: Sendable {
    /// The object as it is when the observer first hears of it.
    case initial(Element?)
    /// The object has changed, or is there (again).
    case update(Element)
    /// The object is stored, but this app cannot read it, e.g. because a newer app has saved it. It is kept, and an `update`
    /// follows when it can be read again.
    case unreadable(StoreError)
    /// The object was deleted. Saving it again is an `update`.
    case deleted
    /// The object cannot be read any longer; nothing follows.
    case error(any Error)
}

extension CollectionChange {
    /// The same change with other elements in the same places.
    func map<Other>(_ transform: (Element) -> Other?) -> CollectionChange<Other> {
        switch self {
        case .initial(let elements): .initial(elements.compactMap(transform))
        case .update(let elements, let deletions, let insertions, let modifications, let modificationsNew):
            .update(
                elements.compactMap(transform), deletions: deletions, insertions: insertions,
                modifications: modifications, modificationsNew: modificationsNew)
        case .error(let error): .error(error)
        }
    }
}
