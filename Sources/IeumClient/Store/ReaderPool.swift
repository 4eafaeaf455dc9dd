import Synchronization

/// Connections that read beside the one that writes; as many as are reading at a time, and a few kept for later.
final class ReaderPool: Sendable {
    /// `@unchecked Sendable`: in one place at a time, in the pool or with the one who reads.
    private struct Idle: @unchecked Sendable {
        let connection: SQLiteConnection
    }

    private static let maxIdle = 4
    private let file: StoreFile
    private let busyMilliseconds: Int32
    private let idle = Mutex<[Idle]>([])

    init(file: StoreFile, busyMilliseconds: Int32) {
        self.file = file
        self.busyMilliseconds = busyMilliseconds
    }

    func use<Value>(_ body: (SQLiteConnection) throws -> Value) throws -> Value {
        let known = idle.withLock { $0.popLast() }
        let connection = try known?.connection ?? file.openReader(busyMilliseconds: busyMilliseconds)
        let value = try body(connection)
        // One that has failed is not kept.
        let back = Idle(connection: connection)
        idle.withLock { idle in
            if idle.count < Self.maxIdle { idle.append(back) }
        }
        return value
    }
}
