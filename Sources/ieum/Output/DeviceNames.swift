import IeumClient
import Wire

/// What the player's devices are called. The names come from other people's devices: they are shown as safe text.
struct DeviceNames {
    private(set) var entries: [DeviceID: DeviceEntry] = [:]
    private let identity: Identity

    /// Asks the server; one that is too old to tell leaves this device's own name.
    init(of device: SignedInDevice, isOptional: Bool = false) throws {
        identity = device.identity
        do throws(ClientError) {
            for entry in try device.connection.devices() { entries[entry.device] = entry }
        } catch {
            guard isOptional, case .server(let refusal) = error, refusal.code == .unknownCommand else { throw error }
        }
    }

    /// A device's name where it is known, else the beginning of its id.
    subscript(device: DeviceID) -> String {
        name(of: device) ?? String(device.description.prefix(8))
    }

    /// The keys that name a device in JSON.
    func json(_ device: DeviceID) -> [(key: String, value: JSONText)] {
        [("device", .string(device.description)), ("deviceName", .text(name(of: device)))]
    }

    private func name(of device: DeviceID) -> String? {
        entries[device]?.name ?? (device == identity.device ? identity.deviceName : nil)
    }
}
