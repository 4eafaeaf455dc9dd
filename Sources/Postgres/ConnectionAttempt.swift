import CLibPQ
import Glibc

/// The making of one connection, step by step, without waiting: who drives it waits for the socket as it says.
///
/// Looking a host name up still blocks, as everywhere in libpq; give `hostaddr=` where that matters.
/// Source: PostgreSQL, chapter "libpq", section "Asynchronous connection": `PQconnectPoll`.
struct ConnectionAttempt: ~Copyable {
    enum Step {
        /// Call ``advance()`` when the socket can be read.
        case waitToRead
        /// Call ``advance()`` when the socket can be written.
        case waitToWrite
        /// The connection stands; take it.
        case connected
        case failed(DatabaseError)
    }

    private let connection: OpaquePointer?

    init(_ settings: ConnectionSettings) {
        // A failure, out of memory excepted, is in the connection's status.
        connection = settings.withCArrays { PQconnectStartParams($0, $1, 0) }
        // While connecting, an error comes as a message only; in its verbose form it holds the SQLSTATE.
        if let connection { PQsetErrorVerbosity(connection, PQERRORS_VERBOSE) }
    }

    deinit {
        PQfinish(connection)
    }

    /// The socket of this moment: it may be another after each step, since a name can have several addresses.
    var socket: Int32 { PQsocket(connection) }

    /// The first step, before any readiness.
    var firstStep: Step {
        PQstatus(connection) == CONNECTION_BAD ? .failed(failure) : .waitToWrite
    }

    /// Goes on after the socket became ready.
    func advance() -> Step {
        switch PQconnectPoll(connection) {
        case PGRES_POLLING_READING: .waitToRead
        case PGRES_POLLING_WRITING: .waitToWrite
        case PGRES_POLLING_OK: .connected
        default: .failed(failure)
        }
    }

    /// Hands the connected connection over; PQfinish is the taker's from here.
    consuming func take() -> OpaquePointer? {
        let taken = connection
        discard self
        if let taken { PQsetErrorVerbosity(taken, PQERRORS_DEFAULT) }
        return taken
    }

    /// What libpq says, with the server's code if it was the server that refused.
    private var failure: DatabaseError {
        let whole = String(cString: PQerrorMessage(connection))
        var message = whole.split(separator: "\n").first { !$0.isEmpty }.map(String.init) ?? "no connection"
        var sqlState: SQLState?
        // "… failed: FATAL:  28P01: password authentication failed …"; the severity may be translated.
        if let match = message.firstMatch(of: #/:  ([0-9A-Z]{5}): /#) {
            sqlState = SQLState(rawValue: String(match.1))
            message.replaceSubrange(match.range, with: ": ")
        }
        let hint = whole.contains("fe_sendauth: no password supplied") ? "Give a password by PGPASSFILE." : nil
        return DatabaseError(.connection, message, sqlState: sqlState, hint: hint)
    }
}

extension ConnectionAttempt {
    /// Connects and waits for it, no longer than the settings' `connect_timeout`.
    static func blocking(_ settings: ConnectionSettings) throws(DatabaseError) -> OpaquePointer {
        let attempt = ConnectionAttempt(settings)
        let deadline = settings.connectTimeout.map { ContinuousClock.now + $0 }
        var step = attempt.firstStep
        while true {
            switch step {
            case .waitToRead: try wait(for: attempt.socket, Int16(POLLIN), until: deadline)
            case .waitToWrite: try wait(for: attempt.socket, Int16(POLLOUT), until: deadline)
            case .failed(let error): throw error
            case .connected:
                guard let connection = attempt.take() else { throw DatabaseError(.connection, "out of memory") }
                return connection
            }
            step = attempt.advance()
        }
    }

    private static func wait(
        for socket: Int32, _ events: Int16, until deadline: ContinuousClock.Instant?
    ) throws(DatabaseError) {
        var descriptor = pollfd(fd: socket, events: events, revents: 0)
        while true {
            var milliseconds: Int32 = -1
            if let deadline {
                let left = (deadline - .now) / .milliseconds(1)
                if left <= 0 { throw timeout }
                milliseconds = Int32(min(left.rounded(.up), 1e9))
            }
            let ready = poll(&descriptor, 1, milliseconds)
            if ready > 0 { return }
            if ready < 0 && errno != EINTR {
                throw DatabaseError(.connection, "waiting for the database's socket failed: errno \(errno)")
            }
        }
    }

    /// The server, or the way to it, was silent for the whole `connect_timeout`.
    static var timeout: DatabaseError {
        DatabaseError(.timeout, "the database did not answer in time", hint: "connect_timeout= sets how long to wait.")
    }
}
