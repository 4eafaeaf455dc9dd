import Postgres

/// The sessions that files run on: one for each, or one that is brought back to its beginning.
///
/// No file sees a setting, role, temporary table, prepared statement or lock of another. A session of its own for each file would
/// do; but a session's start costs the server more than most files do. So one that ran a plain file (``SQLScript/isPlain(_:)``),
/// committed, on a database whose own code is plain too, is reset by `DISCARD ALL`, which leaves nothing of such a file.
/// All others end with their file.
final class WorkSessions {
    private let sessions: Sessions
    let lock: RunLock
    private let report: (Event) -> Void
    private var kept: BlockingConnection?
    private var keptUses = 0
    private var notices = NoticeTarget()
    /// Whether the database's own code is plain; nil when that is to be found out.
    private var isCodePlain: Bool?
    private var judgements = 0

    /// A session's caches grow with every table that it sees.
    private static let maxUses = 500
    /// Reading all of the database's code may cost more than sessions do, so it is not done without end.
    private static let maxJudgements = 50

    /// The file that a session's notices belong to.
    private final class NoticeTarget {
        var file = ""
    }

    init(sessions: Sessions, lock: RunLock, report: @escaping (Event) -> Void) {
        self.sessions = sessions
        self.lock = lock
        self.report = report
    }

    /// A session for the file, as if just begun, admitted by the lock.
    func take(for file: MigrationFile) throws(MigrationError) -> BlockingConnection {
        let ready = kept
        kept = nil
        if let ready, file.mode == .transaction {
            notices.file = file.name
            try lock.admit(ready)
            return ready
        }
        keptUses = 0
        let target = NoticeTarget()
        target.file = file.name
        notices = target
        let work = try sessions.openWork(for: file) { [report] notice in
            report(.notice(file: target.file, severity: notice.severity, message: notice.message))
        }
        try lock.admit(work)
        return work
    }

    /// Takes a session back whose file was applied, and keeps it for the next where nothing can be left of this one: after a plain
    /// file in one transaction.
    func giveBack(_ work: BlockingConnection, isPlain: Bool) {
        keptUses += 1
        guard isPlain else {
            // It may have made code that others run without naming it.
            isCodePlain = nil
            return
        }
        // Behind a pooler, DISCARD ALL would take the settings that openWork made.
        guard keptUses < Self.maxUses, !lock.isBehindPooler, work.transactionStatus == .idle, knowsCodeIsPlain(work)
        else { return }
        do throws(DatabaseError) {
            // Back to the start-up options, too. RESET ALL, which is in it, leaves the role alone.
            try work.execute("DISCARD ALL")
            try work.execute("RESET ROLE")
            kept = work
        } catch {
            // A fresh one for the next file will do, or tell what is wrong.
        }
    }

    /// Ends the session that is kept.
    func end() {
        kept = nil
    }

    private func knowsCodeIsPlain(_ work: BlockingConnection) -> Bool {
        if let isCodePlain { return isCodePlain }
        guard judgements < Self.maxJudgements else { return false }
        judgements += 1
        let isPlain = (try? work.query(Self.judgement).bool(0, 0)) ?? false
        isCodePlain = isPlain
        return isPlain
    }

    /// Whether what a plain statement may run without naming it can leave anything in the session: routines behind triggers,
    /// operators and casts; views, rules, defaults, checks and policies, which are kept as trees that hold functions' numbers.
    private static let judgement = """
        WITH lasting AS (
            SELECT ':(funcid|opfuncid) (' || pg_catalog.string_agg(oid::text, '|') || ') ' AS functions
            FROM pg_catalog.pg_proc
            WHERE pronamespace = 'pg_catalog'::pg_catalog.regnamespace
                AND proname IN ('\(SQLScript.lastingFunctions.joined(separator: "', '"))')
        )
        SELECT NOT EXISTS (
            SELECT FROM pg_catalog.pg_proc p JOIN pg_catalog.pg_language l ON l.oid = p.prolang
            WHERE p.oid >= 16384
                AND (l.lanname NOT IN ('sql', 'plpgsql')
                    OR p.prosrc ~* '\\m(\(SQLScript.lastingFunctions.joined(separator: "|"))|execute|load|alter)\\M'
                    OR p.prosrc ~* '\\m(set|reset)\\M[^=;]*[.]'
                    OR p.prosrc ~* 'u&"'
                    OR pg_catalog.array_to_string(p.proconfig, ' ') ~ '[.][^ =]*='
                    OR p.prosqlbody::text ~ lasting.functions)
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_language l WHERE l.oid >= 16384 AND l.lanname <> 'plpgsql'
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_rewrite r
            WHERE r.oid >= 16384 AND pg_catalog.concat(r.ev_action::text, r.ev_qual::text) ~ lasting.functions
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_attrdef d WHERE d.adbin::text ~ lasting.functions
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_constraint c WHERE c.oid >= 16384 AND c.conbin::text ~ lasting.functions
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_type t WHERE t.oid >= 16384 AND t.typdefaultbin::text ~ lasting.functions
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_trigger t WHERE t.tgqual::text ~ lasting.functions
        ) AND NOT EXISTS (
            SELECT FROM pg_catalog.pg_policy p
            WHERE pg_catalog.concat(p.polqual::text, p.polwithcheck::text) ~ lasting.functions
        )
        FROM lasting
        """
}
