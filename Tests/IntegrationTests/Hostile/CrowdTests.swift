import Foundation
import TestSupport
import Testing

@Suite("more connections than there can be")
struct CrowdTests {
    @Test("where fewer files may be open than connections are allowed, the daemon says so when it starts")
    func fewDescriptors() throws {
        let database = try TestDatabase.migrated()
        let folder = try TemporaryDirectory.make()
        defer { try? FileManager.default.removeItem(at: folder) }
        // The file says when it has started; it is told to stop then, and ends well.
        let script = """
            ulimit -n 256 || exit 8
            "$0" serve --listen 127.0.0.1:0 --metrics off --data-directory "$1" --database "$2" \
            --max-connections 1000 > "$1/out" 2> "$1/err" & daemon=$!
            until [ -s "$1/out" ]; do kill -0 $daemon || exit 9; sleep 0.05; done
            kill -TERM $daemon; wait $daemon
            """
        let call = try Programs.runInstalled(
            ["bash", "-c", script, Programs.url("ieumd").path, folder.path, database.conninfo])
        #expect(call.status == 0, "\(call)")
        let log = try String(contentsOf: folder.appendingPathComponent("err"), encoding: .utf8)
        let warning = try #require(log.split(separator: "\n").first { $0.contains(" event=few-descriptors ") })
        let values = fields(String(warning))
        #expect(values["level"] == "warning" && values["limit"] == "256")
        #expect(values["max-connections"] == "1000")
        #expect(warning.contains("LimitNOFILE"), "\(warning)")
    }
}
