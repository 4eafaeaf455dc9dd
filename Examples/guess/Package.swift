// swift-tools-version: 6.2

import PackageDescription

let package = Package(
    name: "guess",
    dependencies: [.package(name: "ieum", path: "../..")],
    targets: [
        .executableTarget(name: "guess", dependencies: [.product(name: "IeumClient", package: "ieum")])
    ]
)
