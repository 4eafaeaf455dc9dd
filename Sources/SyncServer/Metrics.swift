import EventLoop
import Wire

/// What the daemon counts, printed in Prometheus' text format.
///
/// A class, since those who count share it; confined to the loop's thread.
final class Metrics {
    var accepted = 0
    var refusedConnections = 0
    var commands = 0
    var errors = 0
    var pushes: [Outcome: Int] = [:]
    var refusedPushes = 0
    var limitedPushes = 0
    var limitedDeviceChanges = 0
    var limitedSignIns = 0
    var failedPrefaces = 0
    var batches = 0
    var batchRows = 0
    var batchSeconds = 0.0
    var batchRetries = 0
    var pulls = 0
    var pulledRows = 0
    var notices = 0
    var signIns = 0
    var failedSignIns = 0
    var sessionsEnded = 0
    var databaseLosses = 0
    var imports = 0
    var handshakes = 0
    var tlsFailures: [String: Int] = [:]
    var failedReloads = 0

    /// The text of `/metrics`; gauges are given by who knows them.
    func text(gauges: [(name: String, help: String, value: Double)]) -> String {
        var lines: [String] = []
        func add(_ name: String, _ type: String, _ help: String, _ samples: [(labels: String, value: Double)]) {
            lines.append("# HELP ieum_\(name) \(help)")
            lines.append("# TYPE ieum_\(name) \(type)")
            for sample in samples { lines.append("ieum_\(name)\(sample.labels) \(number(sample.value))") }
        }
        func count(_ name: String, _ help: String, _ value: Int) { add(name, "counter", help, [("", Double(value))]) }
        count("connections_accepted_total", "Client connections taken.", accepted)
        count("connections_refused_total", "Client connections refused at the limit.", refusedConnections)
        count("commands_total", "Lines read from clients.", commands)
        count("errors_total", "ERR replies.", errors)
        add(
            "pushes_total", "counter", "Durable answers to pushes by outcome.",
            Outcome.allCases.map { ("{outcome=\"\($0)\"}", Double(pushes[$0] ?? 0)) })
        count("pushes_refused_total", "Pushes refused with an error.", refusedPushes)
        count("pushes_limited_total", "Pushes refused for a rate or a quota.", limitedPushes)
        count(
            "device_changes_limited_total",
            "Renamings, revocations, new tokens and pairing codes refused for their rate.",
            limitedDeviceChanges)
        count("sign_ins_limited_total", "Sign-ins and registrations refused for their address's rate.", limitedSignIns)
        count("proxy_headers_failed_total", "Connections of balancers without a PROXY header.", failedPrefaces)
        count("batches_total", "Batches committed.", batches)
        count("batch_rows_total", "Pushes in committed batches.", batchRows)
        add("batch_seconds_total", "counter", "Time that committed batches took.", [("", batchSeconds)])
        count("batch_retries_total", "Batches sent again after a passing failure.", batchRetries)
        count("reads_total", "Pulls, gets and histories answered.", pulls)
        count("read_rows_total", "Rows that they brought.", pulledRows)
        count("notices_total", "CHANGED notices to watchers.", notices)
        count("sign_ins_total", "Successful LOGIN, REGISTER and LINK.", signIns)
        count("sign_ins_failed_total", "Wrong tokens, codes and invites.", failedSignIns)
        count(
            "sessions_ended_total",
            "Sessions ended because the device was revoked, its token replaced or its player forgotten.",
            sessionsEnded)
        count("imports_total", "Histories brought into empty players.", imports)
        count("database_losses_total", "Lost database connections.", databaseLosses)
        count("tls_handshakes_total", "TLS handshakes that succeeded.", handshakes)
        add(
            "tls_failures_total", "counter", "Connections that TLS ended, by reason.",
            TLSError.Kind.labels.map { ("{reason=\"\($0)\"}", Double(tlsFailures[$0] ?? 0)) })
        count(
            "tls_reloads_failed_total", "Reloads of certificate and key that failed; the old ones stayed.",
            failedReloads)
        for gauge in gauges { add(gauge.name, "gauge", gauge.help, [("", gauge.value)]) }
        return lines.joined(separator: "\n") + "\n"
    }

    private func number(_ value: Double) -> String {
        value == value.rounded() && abs(value) < 1e15 ? String(Int64(value)) : String(value)
    }
}
