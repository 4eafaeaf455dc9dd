// Saves one game again and again, and says each number once it is saved, for tests that need a process: they kill it.

import Foundation
import IeumClient

struct Count: Persistable {
    static let collection = "count"
    var id: String
    var timestamp = Date()
    var number: Int
    var padding = String(repeating: "ㅎ", count: 1_200)
}

let arguments = CommandLine.arguments
guard arguments.count == 4, let limit = Int(arguments[3]) else { exit(2) }
let store = try GameStore(at: URL(fileURLWithPath: arguments[1]))
var number = try store.object(Count.self, id: arguments[2])?.number ?? 0
while number < limit {
    number += 1
    try store.save(Count(id: arguments[2], number: number))
    FileHandle.standardOutput.write(Data("\(number)\n".utf8))
}
