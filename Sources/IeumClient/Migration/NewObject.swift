import Foundation

/// An object as it is to be stored from now on: it begins as the old one, and takes what the migration sets.
///
/// What is not touched stays byte for byte; a property that is only added to the type needs no migration at all, but a
/// default (see ``DeclaresDefaults``).
public struct NewObject: Sendable {
    /// The object's key in the store.
    public let id: String
    var state: PersistedState
    let site: MigrationSite

    /// The properties that are set, in their order.
    public var keys: [String] { state.keys }

    /// What the object is so far, to be read as the old one is.
    public var current: OldObject { OldObject(id: id, state: state, site: site) }

    /// Sets a property. Of a nil, nothing is stored.
    /// - Throws: ``StoreError`` `notEncodable` when the value cannot be written as JSON.
    public mutating func set(_ property: String, to value: some Encodable) throws(StoreError) {
        let bytes: [UInt8]
        do {
            bytes = try StateCoder.encode(value: value)
        } catch {
            throw StoreError(
                .notEncodable, "\(site.type).\(property) of \(site.collection) \(id) cannot be stored: \(error)",
                place: StoreError.Place(
                    collection: site.collection, id: id, type: site.type, property: property,
                    askedType: "\(type(of: value))"))
        }
        guard bytes != Array("null".utf8) else {
            state.remove(property)
            return
        }
        try state.set(property, json: bytes)
    }

    /// Sets a property to what an old object has stored, byte for byte; removes it where the old one has nothing.
    public mutating func set(_ property: String, to value: OldValue) {
        if let raw = value.raw { state.set(property, raw) } else { state.remove(property) }
    }

    /// Sets a property to an old object, or a nested one, byte for byte.
    public mutating func set(_ property: String, to object: OldObject) {
        state.set(property, RawJSON(trusted: object.state.bytes[...]))
    }

    /// Removes a property.
    public mutating func remove(_ property: String) { state.remove(property) }

    /// Gives what is stored for a property another name; nothing happens where nothing is stored.
    public mutating func rename(_ property: String, to other: String) { state.rename(property, to: other) }
}
