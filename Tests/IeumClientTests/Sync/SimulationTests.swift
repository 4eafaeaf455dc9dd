import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import IeumClient

@Suite("the simulator, against the model")
struct SimulationTests {
    /// Seeds that once found a mistake, be it the simulator's own: a connection that fell silent after the peace.
    static let found: [UInt64] = [38_551_921_208_095_707]

    @Test("devices converge, and nothing is lost, overwritten or kept quiet, whatever goes wrong", arguments: found)
    func holdsForFoundSeeds(seed: UInt64) {
        #expect(Simulation(seed: seed).run() == [], "IEUM_SEED=\(seed)")
    }

    @Test("devices converge, and nothing is lost, overwritten or kept quiet: 1,000 histories")
    func holdsForManySeeds() {
        let first = SeededRandom(for: "simulation").seed
        let isOne = ProcessInfo.processInfo.environment["IEUM_SEED"] != nil
        let count = isOne ? 1 : Int(ProcessInfo.processInfo.environment["IEUM_SIMULATIONS"] ?? "") ?? 1_000
        let failures = Mutex<[String]>([])
        let work = Mutex((saves: 0, restores: 0, events: 0))
        DispatchQueue.concurrentPerform(iterations: count) { index in
            let simulation = Simulation(seed: first &+ UInt64(index))
            let problems = simulation.run()
            work.withLock {
                $0 = ($0.saves + simulation.saves, $0.restores + simulation.restores, $0.events + simulation.events)
            }
            guard !problems.isEmpty else { return }
            failures.withLock {
                $0.append("IEUM_SEED=\(simulation.seed): \(problems.prefix(3).joined(separator: "; "))")
            }
        }
        let (saves, restores, events) = work.withLock { $0 }
        print("simulation: \(count) histories, \(saves) saves, \(restores) restores, \(events) events")
        let failed = failures.withLock { $0 }
        #expect(failed.isEmpty, "\(failed.count) of \(count) failed:\n\(failed.prefix(20).joined(separator: "\n"))")
    }
}
