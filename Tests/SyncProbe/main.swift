// A device of its own for tests that kill it: saves one game, says so, and waits for its end.

import Foundation
import IeumClient
import Wire

let arguments = CommandLine.arguments
guard arguments.count == 5, let key = try? GameKey(collection: arguments[2], id: arguments[3]) else {
    print("usage: sync-probe FILE COLLECTION ID STATE")
    exit(2)
}
let store = try GameStore(at: URL(fileURLWithPath: arguments[1]), schemaVersion: 1)
try store.write { try $0.save(key, state: Array(arguments[4].utf8)) }
FileHandle.standardOutput.write(Data("saved\n".utf8))
while true { pause() }
