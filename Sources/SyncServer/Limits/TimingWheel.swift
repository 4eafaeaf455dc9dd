/// What is due soon, by ticks: adding and taking cost the same however much waits, and nothing is taken before its time.
///
/// A pure value, driven by ``ShortWaits``. Nothing is put off for longer than ``longest``.
struct TimingWheel<Element> {
    /// How exact it is: what is asked for at every tick is at most so late.
    static var tick: Duration { .milliseconds(5) }
    /// The longest wait; what is to wait longer waits this long.
    static var longest: Duration { .seconds(1) }
    /// More than the ticks of the longest wait, so that what is due at different times lies in different slots.
    private static var slotCount: Int { 256 }

    private let start: ContinuousClock.Instant
    private var slots: [[(tick: Int, element: Element)]] = Array(repeating: [], count: slotCount)
    /// The tick up to which all was taken.
    private var taken = 0

    private(set) var count = 0

    init(at now: ContinuousClock.Instant) {
        start = now
    }

    var isEmpty: Bool { count == 0 }

    mutating func add(_ element: Element, after delay: Duration, at now: ContinuousClock.Instant) {
        let tick = ticks(until: now + min(max(delay, .zero), Self.longest)) + 1
        slots[tick % Self.slotCount].append((tick, element))
        count += 1
    }

    /// Takes out what is due.
    mutating func takeDue(at now: ContinuousClock.Instant) -> [Element] {
        let last = ticks(until: now)
        guard last > taken else { return [] }
        // After a long time without a look every slot is looked at once, the earliest ticks first.
        let looks = max(taken + 1, last - Self.slotCount + 1)...last
        taken = last
        guard count > 0 else { return [] }
        var due: [Element] = []
        for tick in looks where !slots[tick % Self.slotCount].isEmpty {
            let slot = slots[tick % Self.slotCount]
            // What was put in after a long time without a look may be of the wheel's next round.
            slots[tick % Self.slotCount] = slot.filter { $0.tick > last }
            due += slot.lazy.filter { $0.tick <= last }.map(\.element)
        }
        count -= due.count
        return due
    }

    /// Whole ticks since the start.
    private func ticks(until moment: ContinuousClock.Instant) -> Int {
        max(0, Int((moment - start) / Self.tick))
    }
}
