import EventLoop
import Postgres

/// Makes the server's database connections, all with the same settings and the same words in the log.
struct LinkMaker {
    let database: String
    let loop: EventLoop
    let log: Log
    let metrics: Metrics
    /// How long PostgreSQL may be silent while an answer is due: as long as a command may wait for it.
    let silenceLimit: Duration
    /// What each session begins with, before what is the link's own.
    let setup: [String]
    /// The longest pause between two tries: pushes and watchers wait for it after PostgreSQL is back.
    private static let longestPause = Duration.seconds(1)

    /// Several links that do the same work.
    func make(
        _ name: String, count: Int, sessionSettings: KeyValuePairs<String, String> = [:]
    ) throws(DatabaseError) -> [DatabaseLink] {
        var links: [DatabaseLink] = []
        for index in 0..<count { links.append(try make("\(name) \(index)", sessionSettings: sessionSettings)) }
        return links
    }

    /// One link; `setup` are statements that its sessions begin with.
    func make(
        _ name: String, sessionSettings: KeyValuePairs<String, String> = [:], setup: [String] = []
    ) throws(DatabaseError) -> DatabaseLink {
        let settings = try ConnectionSettings(
            database, applicationName: "ieumd \(name)", sessionSettings: sessionSettings)
        let link = DatabaseLink(
            on: loop, settings, setup: self.setup + setup, silenceLimit: silenceLimit,
            backoff: Backoff(limit: Self.longestPause))
        // One warning a loss: the tries that follow are many, and say the same.
        var isTold = false
        link.onLost = { [log, metrics] error in
            if !isTold { metrics.databaseLosses += 1 }
            log(isTold ? .debug : .warning, "database-lost", ["connection": name, "error": error])
            isTold = true
        }
        link.whenReady { [log] _ in
            if isTold { log(.info, "database-ready", ["connection": name]) }
            isTold = false
        }
        return link
    }
}

extension DatabaseLink {
    /// Adds a listener to those that hear of each new session.
    func whenReady(_ body: @escaping (DatabaseConnection) -> Void) {
        let others = onReady
        onReady = { connection in
            others?(connection)
            body(connection)
        }
    }
}
