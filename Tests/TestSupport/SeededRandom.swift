import Glibc

/// A random source that gives the same numbers again for the same seed: SplitMix64.
///
/// The seed is printed, so that a failure can be repeated with `IEUM_SEED`.
public struct SeededRandom: RandomNumberGenerator, Sendable {
    /// What the source began with.
    public let seed: UInt64
    private var state: UInt64

    /// Begins with a given seed, and prints nothing.
    public init(seed: UInt64) {
        self.seed = seed
        state = seed
    }

    /// Begins with the seed in `IEUM_SEED`, or a new one, and prints it with the name of what uses it.
    public init(for purpose: String) {
        let given = getenv("IEUM_SEED").flatMap { UInt64(String(cString: $0)) }
        self.init(seed: given ?? .random(in: .min ... .max))
        print("\(purpose): IEUM_SEED=\(seed)")
    }

    /// The next 64 bits.
    public mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    /// Random bytes.
    public mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &self) }
    }
}
