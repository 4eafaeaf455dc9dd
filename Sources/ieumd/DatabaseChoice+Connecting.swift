import Arguments
import Foundation
import Postgres
import SyncServer
import TerminalText

extension DatabaseChoice {
    /// Runs a body with a connection, and puts what goes wrong into words; gives the exit code.
    func withConnection(for command: String, _ body: (BlockingConnection) throws -> Int32) -> Int32 {
        do throws(PrivateDatabaseError) {
            return try use { conninfo in
                do {
                    return try body(Self.connect(conninfo, command))
                } catch let error as DatabaseError {
                    Console.error("\(error)", hint: Self.hint(error))
                    return 4
                } catch {
                    Console.error("\(error)", hint: nil)
                    return 1
                }
            }
        } catch {
            Console.error(error.message, hint: error.hint)
            return error.exitCode
        }
    }

    /// What to do about an error.
    static func hint(_ error: DatabaseError) -> String? {
        switch error.sqlState {
        case .undefinedFunction, .undefinedTable: "Run first: ieumd migrate up"
        case .insufficientPrivilege: "This needs the login of the tables' owner, not a daemon's."
        default: error.hint
        }
    }

    /// A session for one command.
    static func connect(_ conninfo: String, _ command: String) throws(DatabaseError) -> BlockingConnection {
        try BlockingConnection(
            conninfo, applicationName: "ieumd \(command)",
            sessionSettings: ["lock_timeout": "30s", "client_min_messages": "warning"])
    }
}

extension ParsedArguments {
    /// The id that a positional argument is.
    func id(_ index: Int, _ what: String) throws(UsageError) -> UUID {
        guard let id = UUID(uuidString: positional(index) ?? "") else {
            throw UsageError(
                "\(what) is named by its id, a UUID, not \"\((positional(index) ?? "").prefix(60).terminalSafe)\"")
        }
        return id
    }
}

extension Substring {
    fileprivate var terminalSafe: String { String(self).terminalSafe }
}
