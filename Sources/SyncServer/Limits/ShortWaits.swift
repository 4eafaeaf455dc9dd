import EventLoop

/// Work that waits for less than a second, of many at once, by one timer: so that those who are told to come later cost
/// nothing meanwhile.
final class ShortWaits {
    /// The longest that work can wait.
    static var longest: Duration { TimingWheel<() -> Void>.longest }

    private let loop: EventLoop
    private var wheel: TimingWheel<() -> Void>
    private var timer: EventLoop.Timer?

    init(loop: EventLoop) {
        self.loop = loop
        wheel = TimingWheel(at: loop.now)
    }

    /// How much waits.
    var count: Int { wheel.count }

    /// Does work after a delay, of ``longest`` at most, and a few milliseconds later at the latest.
    func after(_ delay: Duration, _ work: @escaping () -> Void) {
        wheel.add(work, after: delay, at: loop.now)
        guard timer == nil else { return }
        let tick = TimingWheel<() -> Void>.tick
        timer = EventLoop.Timer(on: loop, after: tick, every: tick) { [weak self] in self?.doWhatIsDue() }
    }

    private func doWhatIsDue() {
        for work in wheel.takeDue(at: loop.now) { work() }
        if wheel.isEmpty { timer = nil }
    }
}
