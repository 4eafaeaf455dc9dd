import Foundation
import TestSupport

extension TestDatabase {
    /// A database of a test's own with the schema that `ieumd migrate up` makes.
    static func migrated(on cluster: TestCluster? = nil) throws -> TestDatabase {
        let cluster = try cluster ?? TestCluster.shared
        let template = try cluster.template("ieum_template") { conninfo in
            let result = try Programs.run("ieumd", ["migrate", "up", "--database", conninfo])
            if result.status != 0 { throw StartError(description: "ieumd migrate up: \(result.error)") }
        }
        return try make(template: template, on: cluster)
    }
}
