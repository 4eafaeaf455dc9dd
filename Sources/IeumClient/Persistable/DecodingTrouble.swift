/// Says why a state cannot be read: which game, which property, what is stored there, what was asked for.
struct DecodingTrouble<Game: Persistable> {
    let type: Game.Type
    let id: String
    let state: [UInt8]

    func error(_ error: any Error) -> StoreError {
        if let error = error as? StoreError { return error }
        switch error {
        case DecodingError.typeMismatch(let asked, let context), DecodingError.valueNotFound(let asked, let context):
            let place = place(context.codingPath, asked: asked)
            return StoreError(
                .typeMismatch,
                "\(name(place)) is to be \(Self.name(asked)), but \(place.storedType ?? "something else") is stored",
                hint: "The state is kept as it is. A schema migration can change it.", place: place)
        case DecodingError.keyNotFound(let key, let context):
            let place = place(context.codingPath + [key], asked: nil)
            let stored = Game.PersistedObject.self
            return StoreError(
                .missingKey, "\(name(place)) is not stored, and has no default",
                hint:
                    "Declare one: static var defaults: \(stored)? { \(stored)(…) }, an instance with the values to take.",
                place: place)
        case DecodingError.dataCorrupted(let context):
            let place = place(context.codingPath, asked: nil)
            return StoreError(
                .unknownValue, "\(name(place)) cannot be read: \(context.debugDescription)",
                hint: "The state is kept as it is. A newer app may be able to read it.", place: place)
        default:
            return StoreError(
                .unknownValue, "\(name(place([], asked: nil))) cannot be read: \(error)",
                hint: "The state is kept as it is.", place: place([], asked: nil))
        }
    }

    private func name(_ place: StoreError.Place) -> String {
        "\(place.type)\(place.property.isEmpty ? "" : ".\(place.property)") of \(place.collection) \(id)"
    }

    private static func name(_ asked: Any.Type) -> String { "of type \(asked)" }

    private func place(_ path: [any CodingKey], asked: Any.Type?) -> StoreError.Place {
        var value: RawJSON? = RawJSON(trusted: state[...])
        for key in path {
            if let index = key.intValue, let elements = value?.elements {
                value = elements.indices.contains(index) ? elements[index] : nil
            } else {
                value = value?[key.stringValue]
            }
        }
        return StoreError.Place(
            collection: Game.collection, id: id, type: "\(Game.self)", property: path.propertyPath,
            storedType: value?.kind.rawValue, askedType: asked.map { "\($0)" })
    }
}
