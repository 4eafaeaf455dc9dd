import Foundation
import Synchronization

/// The one connection that writes, and its lock.
///
/// `@unchecked Sendable`: only who holds the lock touches the connection.
final class StoreWriter: @unchecked Sendable {
    let connection: SQLiteConnection
    /// The row that the last transaction saved.
    var savedRow: SavedRow?
    private let lock = NSLock()
    private let holder = Atomic<UInt>(0)

    init(_ connection: SQLiteConnection) {
        self.connection = connection
    }

    /// Runs alone if nobody else runs now; nil: somebody does.
    func lockedIfFree<Value>(_ body: () throws -> Value) rethrows -> Value? {
        guard lock.try() else { return nil }
        holder.store(Self.own, ordering: .relaxed)
        defer {
            holder.store(0, ordering: .relaxed)
            lock.unlock()
        }
        return try body()
    }

    private static var own: UInt { UInt(bitPattern: Int(bitPattern: UInt(pthread_self()))) }

    /// Runs alone.
    /// - Throws: ``StoreError`` `misuse` inside itself, where it would wait for ever.
    func locked<Value>(_ body: () throws -> Value) throws -> Value {
        let own = Self.own
        guard holder.load(ordering: .relaxed) != own else {
            throw StoreError(
                .misuse, "the store was written, or asked, from inside a transaction of its own",
                hint: "Use the transaction that the closure is handed.")
        }
        lock.lock()
        holder.store(own, ordering: .relaxed)
        defer {
            holder.store(0, ordering: .relaxed)
            lock.unlock()
        }
        return try body()
    }
}
