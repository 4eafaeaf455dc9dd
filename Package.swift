// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "ieum",
    products: [
        .executable(name: "ieumd", targets: ["ieumd"]),
        .executable(name: "ieum", targets: ["ieum"]),
        .library(name: "IeumClient", targets: ["IeumClient"]),
        .library(name: "Handle", targets: ["Handle"]),
    ],
    targets: [
        // C libraries of the system: a module map and a shim each. See Documentation/dependencies.md.
        .systemLibrary(name: "CLibPQ", pkgConfig: "libpq", providers: [.apt(["libpq-dev"])]),
        .systemLibrary(name: "CLibEvent", pkgConfig: "libevent", providers: [.apt(["libevent-dev"])]),
        .systemLibrary(name: "COpenSSL", pkgConfig: "openssl", providers: [.apt(["libssl-dev"])]),
        .systemLibrary(name: "CSQLite", pkgConfig: "sqlite3", providers: [.apt(["libsqlite3-dev"])]),

        // Modules; imports go one way, from the bottom of this list to its top.
        .target(name: "Arguments"),
        .target(name: "TerminalText"),
        .target(name: "FileDraft"),
        .target(name: "Wire"),
        .target(name: "EventLoop", dependencies: ["CLibEvent", "COpenSSL"]),
        .target(name: "Postgres", dependencies: ["CLibPQ", "EventLoop"]),
        .target(name: "Migrator", dependencies: ["Arguments", "TerminalText", "Postgres", "COpenSSL"]),
        .target(
            name: "SyncServer",
            dependencies: ["Wire", "TerminalText", "EventLoop", "Postgres", "Migrator", "COpenSSL"],
            plugins: ["EmbedSQL"]),
        .target(name: "IeumClient", dependencies: ["Wire", "EventLoop", "CSQLite"]),
        .target(name: "Handle", dependencies: ["IeumClient"]),
        .target(name: "Play", dependencies: ["TerminalText", "EventLoop", "IeumClient", "Handle"]),

        // SQL/migrations as Swift source, made by a program of ours on every build that finds a change there.
        .executableTarget(name: "embed-sql"),
        .plugin(name: "EmbedSQL", capability: .buildTool(), dependencies: ["embed-sql"]),

        // Programs.
        .executableTarget(
            name: "ieumd",
            dependencies: [
                "Arguments", "TerminalText", "FileDraft", "SyncServer", "Migrator", "Postgres", "EventLoop",
            ]),
        .executableTarget(
            name: "ieum",
            dependencies: ["Arguments", "TerminalText", "FileDraft", "IeumClient", "Wire", "Handle", "Play"]),
        .executableTarget(
            name: "ieum-bench",
            dependencies: [
                "Arguments", "Wire", "EventLoop", "Postgres", "IeumClient", "Handle", "CSQLite", "COpenSSL",
            ],
            path: "Benchmarks/ieum-bench"),

        // The game of the tutorial, which is a package of its own, too.
        .executableTarget(name: "guess", dependencies: ["IeumClient"], path: "Examples/guess/Sources/guess"),

        // Tests.
        .target(name: "TestSupport", dependencies: ["EventLoop", "Postgres"], path: "Tests/TestSupport"),
        .testTarget(
            name: "BenchTests", dependencies: ["ieum-bench", "Wire"], path: "Benchmarks/BenchTests"),
        .testTarget(name: "ArgumentsTests", dependencies: ["Arguments"]),
        .testTarget(name: "WireTests", dependencies: ["Wire", "TestSupport"]),
        .testTarget(name: "EventLoopTests", dependencies: ["EventLoop", "TestSupport"]),
        .testTarget(name: "PostgresTests", dependencies: ["Postgres", "TestSupport"]),
        .executableTarget(name: "migrate-probe", dependencies: ["Migrator"], path: "Tests/MigrateProbe"),
        .testTarget(
            name: "MigratorTests",
            dependencies: ["Migrator", "SyncServer", "Postgres", "TestSupport", "migrate-probe"],
            exclude: ["Corpus"]),
        .testTarget(name: "SyncServerTests", dependencies: ["SyncServer", "TestSupport"]),
        .executableTarget(name: "store-probe", dependencies: ["IeumClient"], path: "Tests/StoreProbe"),
        .testTarget(
            name: "IeumClientTests",
            dependencies: ["IeumClient", "CSQLite", "EventLoop", "Wire", "ieum", "store-probe", "TestSupport"]),
        .testTarget(name: "HandleTests", dependencies: ["Handle", "IeumClient", "TestSupport"]),
        .testTarget(name: "PlayTests", dependencies: ["Play", "Handle", "IeumClient", "TestSupport"]),
        .testTarget(name: "SnippetTests", dependencies: ["IeumClient"]),
        .executableTarget(name: "sync-probe", dependencies: ["IeumClient", "Wire"], path: "Tests/SyncProbe"),
        .testTarget(
            name: "IntegrationTests",
            dependencies: [
                "Wire", "EventLoop", "SyncServer", "Migrator", "Postgres", "IeumClient", "Handle", "TestSupport",
                "sync-probe",
            ]),
    ],
    swiftLanguageModes: [.v6]
)

// libFuzzer brings a program's main function along, so there are its targets and what they read with, and nothing else,
// when it is asked for: see script/fuzz.
if Context.environment["IEUM_FUZZ"] != nil {
    // With what of a program or of a test's own parts is read by a target, too.
    let fuzzed: [(name: String, modules: [Target.Dependency], sources: [String])] = [
        ("fuzz-line", ["Wire"], []), ("fuzz-session", ["Wire"], []), ("fuzz-json", ["Wire", "IeumClient"], []),
        ("fuzz-sql", ["Migrator"], []), ("fuzz-proxy", ["EventLoop"], []),
        ("fuzz-sync", ["Wire", "IeumClient"], ["Tests/IeumClientTests/Sync/MemoryStorage.swift"]),
        ("fuzz-home", ["Wire", "IeumClient"], []),
        (
            "fuzz-export", ["Wire", "IeumClient", "TerminalText"],
            ["Sources/ieum/ExportLine+Reading.swift", "Sources/ieum/Output/JSONText.swift"]
        ),
        ("fuzz-terminal", ["TerminalText"], []),
    ]
    let modules = [
        "CLibPQ", "CLibEvent", "COpenSSL", "CSQLite", "Arguments", "TerminalText", "Wire", "EventLoop", "Postgres",
        "Migrator", "IeumClient",
    ]
    package.products = []
    package.targets.removeAll { !modules.contains($0.name) }
    package.targets.append(.target(name: "FuzzSupport", path: "Tests/Fuzz/Support"))
    for target in fuzzed {
        package.targets.append(
            .executableTarget(
                name: target.name, dependencies: target.modules + ["FuzzSupport"], path: ".",
                sources: ["Tests/Fuzz/\(target.name)"] + target.sources))
    }
}
