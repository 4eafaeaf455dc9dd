/// One way to sort games.
public struct GameOrder<Game>: Sendable {
    /// Negative, zero or positive, as the first of two belongs before, beside or after the second.
    let compare: @Sendable (Game, Game) -> Int

    /// The smallest value first.
    public static func ascending(_ value: KeyPath<Game, some Comparable & SendableMetatype> & Sendable) -> GameOrder {
        GameOrder { left, right in
            let (left, right) = (left[keyPath: value], right[keyPath: value])
            return left < right ? -1 : right < left ? 1 : 0
        }
    }

    /// The greatest value first.
    public static func descending(_ value: KeyPath<Game, some Comparable & SendableMetatype> & Sendable) -> GameOrder {
        let order = ascending(value)
        return GameOrder { order.compare($1, $0) }
    }

    /// Sorts; what is equal stays in its order.
    static func sort(_ games: [Game], by orders: [GameOrder]) -> [Game] {
        guard !orders.isEmpty else { return games }
        // The index decides last, so that the order of equal ones is kept whatever the standard library does.
        return games.enumerated().sorted { left, right in
            for order in orders {
                let sign = order.compare(left.element, right.element)
                if sign != 0 { return sign < 0 }
            }
            return left.offset < right.offset
        }.map(\.element)
    }
}
