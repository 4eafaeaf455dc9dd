import Foundation
import Testing
import Wire

@testable import SyncServer

@Test("players are spread evenly over the lanes, and each has one", arguments: [1, 2, 3, 8, 64])
func spreadsPlayers(count: Int) {
    let map = LaneMap(count: count)
    var players = [Int](repeating: 0, count: count)
    for _ in 0..<count * 200 {
        let player = PlayerID(UUID())
        let lane = map.lane(of: player)
        #expect(players.indices.contains(lane))
        #expect(map.lane(of: player) == lane)
        players[lane] += 1
    }
    // 200 are expected on each; a lane with fewer than 100 or more than 300 comes once in many billions of runs.
    #expect(players.allSatisfy { (100...300).contains($0) })
}
