/// SplitMix64: a random source that a printed seed brings back.
struct SeededRandom: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    /// A source with a fresh seed, printed under the test's name.
    static func fresh(_ test: String = #function) -> SeededRandom {
        let seed = UInt64.random(in: 0...UInt64.max)
        print("\(test) seed: \(seed)")
        return SeededRandom(seed: seed)
    }

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = state
        mixed = (mixed ^ (mixed >> 30)) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 27)) &* 0x94D0_49BB_1331_11EB
        return mixed ^ (mixed >> 31)
    }

    mutating func bytes(_ count: Int) -> [UInt8] {
        (0..<count).map { _ in UInt8.random(in: 0...255, using: &self) }
    }

    mutating func chance(_ probability: Double) -> Bool {
        Double.random(in: 0..<1, using: &self) < probability
    }

    mutating func maybe<Value>(_ make: (inout SeededRandom) -> Value) -> Value? {
        Bool.random(using: &self) ? make(&self) : nil
    }
}
