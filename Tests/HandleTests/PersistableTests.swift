import Foundation
import Handle
import IeumClient
import Testing

@Test("a game is Persistable as it is, and the hand mapping is still its own")
func persistable() throws {
    let game = Game(answer: "사람")
    let object = try game.persistedObject()
    #expect(object.didPlayerLose == false)
    #expect(isStoredAsItself(game))
    #expect(Game.collection == "handle.game")
    #expect(Game.defaults?.answerBoard == game.answerBoard)
}

private func isStoredAsItself<Value: Persistable>(_ value: Value) -> Bool { Value.PersistedObject.self == Value.self }
