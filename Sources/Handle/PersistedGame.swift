import Foundation

/// The form in which 한들's first version stored a game: flat, with its two boards as JSON.
///
/// Games that such an app saved are read through ``Game/init(persistedObject:)`` and written through ``Game/persistedObject()``.
/// Nothing of them is lost on the way, not even ``didPlayerLose``, which ``Game`` has no use for.
public struct PersistedGame: Codable, Hashable, Sendable {
    /// The primary key.
    public var id = UUID().uuidString
    /// When the game was last changed.
    public var timestamp = Date()
    /// Letters in a row.
    public var jamoCount = 5
    /// Number of the game's day.
    public var gameNumber = 1
    /// The word to be guessed.
    public var answer = ""
    /// A ``KeyBoard`` as JSON.
    public var keyBoard = Data()
    /// The rows of the board, `[[Key]]`, as JSON.
    public var answerBoard = Data()
    /// Whether the game is over.
    public var isGameFinished = false
    /// Whether it was won.
    public var didPlayerWin = false
    /// Whether it was lost.
    public var didPlayerLose = false
    /// The row that is being typed.
    public var currentRow = 0
    /// The column that the next letter goes to.
    public var currentColumn = 0

    /// Makes a record of defaults, its boards empty data.
    public init() {}
}

/// A board of a ``PersistedGame`` cannot be read or written.
public struct PersistedGameError: Error, Equatable, Sendable, CustomStringConvertible {
    /// The game's id.
    public var id: String
    /// The property: `keyBoard` or `answerBoard`.
    public var property: String
    /// What the JSON coder says.
    public var reason: String

    /// What is wrong, in one line.
    public var description: String { "PersistedGame \(id): \(property) is not the JSON it should be: \(reason)" }
}

extension Game {
    /// Reads a game that was stored by hand mapping.
    /// - Throws: ``PersistedGameError`` where one of the two boards is damaged. The record itself is not touched by that.
    public init(persistedObject: PersistedGame) throws(PersistedGameError) {
        self.init(answer: persistedObject.answer, gameNumber: persistedObject.gameNumber)
        id = persistedObject.id
        timestamp = persistedObject.timestamp
        jamoCount = persistedObject.jamoCount
        keyBoard = try Self.board(persistedObject.keyBoard, of: persistedObject, "keyBoard")
        answerBoard = try Self.board(persistedObject.answerBoard, of: persistedObject, "answerBoard")
        isGameFinished = persistedObject.isGameFinished
        didPlayerWin = persistedObject.didPlayerWin
        didPlayerLose = persistedObject.didPlayerLose
        currentRow = persistedObject.currentRow
        currentColumn = persistedObject.currentColumn
    }

    /// The game as a record for hand mapping.
    /// - Throws: ``PersistedGameError`` where a board cannot be written as JSON.
    public func persistedObject() throws(PersistedGameError) -> PersistedGame {
        var object = PersistedGame()
        object.id = id
        object.timestamp = timestamp
        object.jamoCount = jamoCount
        object.gameNumber = gameNumber
        object.answer = answer
        object.keyBoard = try Self.data(keyBoard, of: self, "keyBoard")
        object.answerBoard = try Self.data(answerBoard, of: self, "answerBoard")
        object.isGameFinished = isGameFinished
        object.didPlayerWin = didPlayerWin
        object.didPlayerLose = didPlayerLose ?? (isGameFinished && !didPlayerWin)
        object.currentRow = currentRow
        object.currentColumn = currentColumn
        return object
    }

    private static func board<Board: Decodable>(
        _ data: Data, of game: PersistedGame, _ property: String
    ) throws(PersistedGameError) -> Board {
        do {
            return try JSONDecoder().decode(Board.self, from: data)
        } catch {
            throw PersistedGameError(id: game.id, property: property, reason: Self.reason(error))
        }
    }

    private static func data(
        _ board: some Encodable, of game: Game, _ property: String
    ) throws(PersistedGameError) -> Data {
        do {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            return try encoder.encode(board)
        } catch {
            throw PersistedGameError(id: game.id, property: property, reason: Self.reason(error))
        }
    }

    private static func reason(_ error: any Error) -> String {
        switch error {
        case DecodingError.dataCorrupted(let context), DecodingError.keyNotFound(_, let context),
            DecodingError.typeMismatch(_, let context), DecodingError.valueNotFound(_, let context):
            let path = context.codingPath.map { $0.intValue.map(String.init) ?? $0.stringValue }
            return path.isEmpty
                ? context.debugDescription : "\(path.joined(separator: ".")): \(context.debugDescription)"
        default: return "\(error)"
        }
    }
}
