import Foundation
import PackagePlugin

/// Generates `EmbeddedMigrations`, the names and contents of `SQL/migrations/*.sql`, into the target that names this plugin.
///
/// SwiftPM's own `.embedInCode` drops the names. SwiftPM plans a build seldom: naming the files as inputs breaks the next build
/// when one is removed, and naming their folder misses an edit. So the tool runs on every build, which takes milliseconds, and
/// leaves its output alone when nothing changed. It runs each time because one of its inputs is a file that it writes itself.
@main
struct EmbedSQL: BuildToolPlugin {
    func createBuildCommands(context: PluginContext, target: Target) throws -> [Command] {
        let folder = context.package.directoryURL.appending(path: "SQL/migrations", directoryHint: .isDirectory)
        let output = context.pluginWorkDirectoryURL.appending(path: "EmbeddedMigrations.swift")
        let stamp = context.pluginWorkDirectoryURL.appending(path: "last-run")
        if !FileManager.default.fileExists(atPath: stamp.path(percentEncoded: false)) {
            try Data().write(to: stamp)
        }
        return [
            .buildCommand(
                displayName: "Embedding SQL/migrations",
                executable: try context.tool(named: "embed-sql").url,
                arguments: [folder, output, stamp].map { $0.path(percentEncoded: false) },
                inputFiles: [stamp],
                outputFiles: [output])
        ]
    }
}
