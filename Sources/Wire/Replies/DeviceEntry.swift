/// One of a player's devices: a `DEVICE` line.
public struct DeviceEntry: Hashable, Sendable {
    /// The device.
    public var device: DeviceID
    /// What its owner calls it.
    public var name: String
    /// When it was registered or linked.
    public var created: Timestamp
    /// When its latest version arrived, as far as the player's last 1,000 versions tell.
    public var seen: Timestamp?
    /// How far its clock is ahead of the server's, in microseconds: the greatest of saved minus received among the player's
    /// last 1,000 versions. Greater than 0: it ran ahead by so much at least. Less: it runs behind, or every push came late.
    public var clockOffset: Int64?
    /// Since when it may neither sign in nor push.
    public var revoked: Timestamp?
    /// Whether it is the device that asks.
    public var isThis: Bool

    /// Creates an entry.
    public init(
        device: DeviceID, name: String, created: Timestamp, seen: Timestamp? = nil, clockOffset: Int64? = nil,
        revoked: Timestamp? = nil, isThis: Bool = false
    ) {
        self.device = device
        self.name = name
        self.created = created
        self.seen = seen
        self.clockOffset = clockOffset
        self.revoked = revoked
        self.isThis = isThis
    }

    /// Appends the line `DEVICE <device> name=… …`.
    public func print(into bytes: inout [UInt8]) {
        bytes.append(option: "DEVICE ", device)
        bytes.append(option: " name=", text: name)
        bytes.append(option: " created=", created)
        if let seen { bytes.append(option: " seen=", seen) }
        if let clockOffset { bytes.append(option: " clock-offset=", clockOffset) }
        if let revoked { bytes.append(option: " revoked=", revoked) }
        if isThis { bytes.append(text: " this=true") }
        bytes.append(UInt8(ascii: "\n"))
    }
}
