import Dispatch
import Glibc
import Synchronization

/// Debian's Korean dictionary (`hunspell-ko`), asked through the program `hunspell`, which knows how to read it.
///
/// The program is started at the first question and kept, since it takes a second to read the dictionary; a guess then takes
/// milliseconds. It is spoken to as an editor does, by `hunspell -a` (hunspell(1), "pipe mode"). Nothing waits for it: it is asked
/// on a queue of its own, and what is not answered in time is unknown. Where it is missing, everything is unknown.
package final class HunspellBook: WordBook {
    private let queue = DispatchQueue(label: "ieum.words")
    private let program: String?
    private let patience: Duration
    /// Used on the queue alone.
    private let desk: Desk

    /// Finds the program on the `PATH`.
    /// - Parameter patience: how long a question may take, the start of the program included.
    package init(environment: [String: String], patience: Duration = .seconds(5)) {
        let folders = (environment["PATH"] ?? "").split(separator: ":")
        program = folders.map { "\($0)/hunspell" }.first { access($0, X_OK) == 0 }
        self.patience = patience
        desk = Desk()
    }

    package func lookUp(_ texts: [String], _ answer: @escaping @Sendable (PlaySession.Verdict) -> Void) {
        guard let program else { return answer(.unknown) }
        guard !texts.isEmpty else { return answer(.noWord) }
        let deadline = ContinuousClock.now + patience
        queue.async { [desk] in answer(desk.ask(program, texts, until: deadline)) }
    }

    /// Ends the program, and a question that is under way; from now on everything is unknown.
    package func end() {
        desk.isEnded.store(true, ordering: .relaxed)
        queue.sync { desk.close() }
    }
}

/// The running program, and what it has said so far.
///
/// `@unchecked`: used on the queue of its ``HunspellBook`` alone.
private final class Desk: @unchecked Sendable {
    private var hunspell: Coprocess?
    private var text: [UInt8] = []
    /// Whether the dictionary is read.
    private var isReady = false
    /// Whether nobody waits for an answer any more. Set from any thread.
    let isEnded = Atomic(false)

    func ask(_ program: String, _ texts: [String], until deadline: ContinuousClock.Instant) -> PlaySession.Verdict {
        guard !isEnded.load(ordering: .relaxed) else { return .unknown }
        if let said = hunspell?.receive(within: 0) {
            text += said
        } else {
            close()
            hunspell = Coprocess([program, "-a", "-d", "ko_KR", "-i", "UTF-8"])
        }
        if !isReady {
            // It begins with a line on itself when the dictionary is read. If that takes longer, the next question finds it done.
            isReady = line(until: deadline)?.hasPrefix("@") ?? false
            guard isReady else { return .unknown }
        }
        for text in texts {
            // The caret keeps the word from being taken for a command.
            guard hunspell?.send("^\(text)\n") == true, let isWord = verdict(until: deadline) else {
                close()
                return .unknown
            }
            if isWord { return .word }
        }
        return .noWord
    }

    /// Reads the answer on a line: a line for each word, and an empty one.
    private func verdict(until deadline: ContinuousClock.Instant) -> Bool? {
        var isWord = true
        while let line = line(until: deadline) {
            guard let sign = line.first else { return isWord }
            // Found; found by a root; found as a compound.
            if !"*+-".contains(sign) { isWord = false }
        }
        return nil
    }

    private func line(until deadline: ContinuousClock.Instant) -> String? {
        while true {
            if let end = text.firstIndex(of: UInt8(ascii: "\n")) {
                defer { text.removeFirst(end + 1) }
                return String(decoding: text[..<end], as: UTF8.self)
            }
            let left = ContinuousClock.now.duration(to: deadline) / .milliseconds(1)
            guard left > 0, text.count < 65_536, !isEnded.load(ordering: .relaxed) else { return nil }
            // Now and then it is looked whether anybody waits still.
            guard let said = hunspell?.receive(within: Int32(min(left.rounded(.up), 50))) else {
                close()
                return nil
            }
            text += said
        }
    }

    func close() {
        hunspell = nil
        (text, isReady) = ([], false)
    }
}
