/// What `VERSIONS` asks for: a page of all games' versions, or one version.
public struct VersionsQuery: Hashable, Sendable {
    /// Which versions, and in which order.
    public enum Place: Hashable, Sendable {
        /// Those later than a revision, the oldest first.
        case since(Revision)
        /// Those before a revision, the newest first.
        case before(Revision)
        /// This one alone.
        case revision(Revision)
    }

    /// Which versions, and in which order.
    public var place: Place
    /// The most versions of a page; the server has a largest of its own.
    public var limit: Int?
    /// Only versions that met a rival: `won` and `lost`.
    public var onlyConflicts: Bool
    /// With their states.
    public var withStates: Bool

    /// Asks for versions.
    public init(_ place: Place, limit: Int? = nil, onlyConflicts: Bool = false, withStates: Bool = false) {
        self.place = place
        self.limit = limit
        self.onlyConflicts = onlyConflicts
        self.withStates = withStates
    }

    init(_ options: CommandOptions) throws(WireError) {
        let places: [(name: String, place: Place)] =
            [
                options.since.map { ("since", .since($0)) }, options.before.map { ("before", .before($0)) },
                options.revision.map { ("revision", .revision($0)) },
            ].compactMap { $0 }
        guard places.count < 2 else {
            throw .invalidArgument(
                field: places[1].name, "\(places[0].name)= and \(places[1].name)= exclude each other",
                hint: "Usage: \(Verb.versions.usage)")
        }
        self.init(
            places.first?.place ?? .since(0), limit: options.limit, onlyConflicts: options.conflicts ?? false,
            withStates: options.states ?? false)
    }

    func print(into bytes: inout [UInt8]) {
        switch place {
        case .since(let revision): bytes.append(option: " since=", revision)
        case .before(let revision): bytes.append(option: " before=", revision)
        case .revision(let revision): bytes.append(option: " revision=", revision)
        }
        if let limit { bytes.append(option: " limit=", limit) }
        if onlyConflicts { bytes.append(text: " conflicts=true") }
        if withStates { bytes.append(text: " states=true") }
    }
}
