import CLibEvent
import EventLoop
import Glibc
import Synchronization
import Testing

@Suite("descriptor and signal watches")
struct WatchTests {
    @Test("a descriptor watch follows its interest")
    func interest() throws {
        let loop = try EventLoop()
        let pipe = try Pipe()
        let reads = Box(0)
        let reader = try DescriptorWatch(on: loop, descriptor: pipe.reader, interest: []) { ready in
            #expect(ready == .read)
            reads.value += 1
        }
        pipe.write("x")
        #expect(!loop.run(until: { reads.value > 0 }, timeout: .milliseconds(20)))
        try reader.setInterest(.read)
        #expect(reader.interest == .read)
        #expect(loop.run(until: { reads.value > 1 }, timeout: .seconds(60)))  // level-triggered
        try reader.setInterest([])
        let count = reads.value
        #expect(!loop.run(until: { reads.value > count }, timeout: .milliseconds(20)))
    }

    @Test("write interest beside read interest comes and goes")
    func writeInterest() throws {
        let loop = try EventLoop()
        var ends: [Int32] = [-1, -1]
        try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { for end in ends { close(end) } }
        let seen = Box<DescriptorWatch.Interest>([])
        let watch = try DescriptorWatch(on: loop, descriptor: ends[0], interest: [.read, .write]) {
            seen.value.insert($0)
        }
        #expect(loop.run(until: { seen.value == .write }, timeout: .seconds(60)))
        try watch.setInterest(.read)
        seen.value = []
        #expect(!loop.run(until: { !seen.value.isEmpty }, timeout: .milliseconds(20)))
        #expect(write(ends[1], "x", 1) == 1)
        #expect(loop.run(until: { seen.value == .read }, timeout: .seconds(60)))
        watch.cancel()
    }

    @Test("cancelling and releasing a watch in its own callback ends it")
    func cancelsInCallback() throws {
        let loop = try EventLoop()
        let pipe = try Pipe()
        pipe.write("x")
        let count = Box(0)
        let watch = Box<DescriptorWatch?>(nil)
        watch.value = try DescriptorWatch(on: loop, descriptor: pipe.reader, interest: .read) { _ in
            count.value += 1
            watch.value?.cancel()
            watch.value = nil
        }
        #expect(loop.run(until: { count.value == 1 }, timeout: .seconds(60)))
        #expect(!loop.run(until: { count.value > 1 }, timeout: .milliseconds(20)))
    }

    // In a process of its own: the log is the process's.
    @Test("a descriptor that cannot be watched is an error with its number, and libevent's word goes to the log")
    func refusesRegularFiles() async {
        await #expect(processExitsWith: .success) {
            let messages = Mutex<[String]>([])
            EventLoop.setLibraryLog { level, text in
                if level == .warning { messages.withLock { $0.append(text) } }
            }
            let loop = try EventLoop()
            let file = open("/proc/self/exe", O_RDONLY)
            let error = #expect(throws: EventLoopError.self) {
                _ = try DescriptorWatch(on: loop, descriptor: file, interest: .read) { _ in }
            }
            try #require(error?.number == EPERM)
            try #require(messages.withLock { $0 }.count == 1)
        }
    }

    // In a process of its own: libevent delivers signals to one loop of a process.
    @Test("a signal reaches its watch on the loop, and a cancelled watch leaves the signal alone")
    func signals() async {
        await #expect(processExitsWith: .success) {
            let loop = try EventLoop()
            let count = Box(0)
            let watch = try SignalWatch(on: loop, signal: SIGUSR1) { count.value += 1 }
            signal(SIGUSR2, SIG_IGN)
            kill(getpid(), SIGUSR1)
            try #require(loop.run(until: { count.value == 1 }, timeout: .seconds(60)))
            kill(getpid(), SIGUSR1)
            try #require(loop.run(until: { count.value == 2 }, timeout: .seconds(60)))
            watch.cancel()
            signal(SIGUSR1, SIG_IGN)
            kill(getpid(), SIGUSR1)
            try #require(!loop.run(until: { count.value > 2 }, timeout: .milliseconds(20)))
        }
    }
}
