import Foundation
import Postgres

/// The data of a new server, made by initdb once in a test process and copied for each server that a test starts: a copy
/// takes a tenth of the time.
public enum PreparedData {
    private static let folder: Result<TestFolder, any Error> = Result {
        let folder = try TestFolder("prepared", inMemory: true)
        atexit { try? FileManager.default.removeItem(atPath: PreparedData.folder.get().path) }
        try PrivateCluster(folder: folder.path, settings: .throwaway).prepare()
        return folder
    }

    /// Puts the data into a folder, for a ``PrivateCluster`` of that folder to start with.
    public static func copy(to path: String) throws {
        // With its owner, which Foundation's copy does not keep.
        let copy = try ChildProcess.spawn(
            ["cp", "-a", "\(folder.get().path)/data", "\(path)/data"], descriptors: [0, 1, 2])
        let status = ChildProcess.wait(copy)
        if status != 0 { throw ClusterError("the prepared data could not be copied: cp ended with \(status)") }
    }
}
