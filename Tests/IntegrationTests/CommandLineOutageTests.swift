import Foundation
import TestSupport
import Testing

@Suite("ieum and a daemon that goes away")
struct CommandLineOutageTests {
    @Test("without a server it ends with 4 and the same call works later; a watch comes back by itself")
    func outage() throws {
        let daemon = try DaemonProcess(port: Int(FreePort.find()))
        let phone = try CommandLineDevice(registeredAt: daemon)
        let tablet = try CommandLineDevice(linkedTo: phone, at: daemon)
        let watch = try tablet.begin("watch", "--once", "--timeout", "120")
        try eventually(60, "it watches") { watch.talk.contains("Watching") }
        daemon.kill()
        let failed = try phone.push("{\"n\":1}")
        #expect(failed.status == 4 && failed.data.isEmpty)
        #expect(failed.talk.contains("\"code\":\"unreachable\""))
        #expect(try phone.run("status").status == 4)
        let again = try DaemonProcess(directory: daemon.directory, port: daemon.port)
        let pushed = try phone.push("{\"n\":1}")
        #expect(pushed.status == 0)
        #expect(try pushed.object()["outcome"] as? String == "created")
        #expect(try watch.end(within: 120) == 0, "\(watch.talk)")
        withExtendedLifetime(again) {}
    }

    @Test("after a restore a device pulls everything anew and pushes without the base that means nothing any more")
    func restored() throws {
        let daemon = try DaemonProcess(port: Int(FreePort.find()))
        let phone = try CommandLineDevice(registeredAt: daemon)
        _ = try phone.push("{\"n\":1}")
        #expect(try phone.run("pull").data.split(separator: "\n").count == 1)
        #expect(daemon.stop() == 0)
        let restored = try Programs.run("ieumd", ["restore-epoch", "--data-directory", daemon.directory.path])
        #expect(restored.status == 0, "\(restored.error)")
        let again = try DaemonProcess(directory: daemon.directory, port: daemon.port)
        #expect(try phone.run("status").data.contains("(new: the server was restored)"))
        let pushed = try phone.push("{\"n\":2}")
        #expect(pushed.talk.contains("the server was restored"))
        let answer = try pushed.object()
        #expect(answer["base"] is NSNull)
        #expect(answer["outcome"] as? String == "won")
        #expect(try phone.run("pull").data.split(separator: "\n").count == 1)
        withExtendedLifetime(again) {}
    }
}
