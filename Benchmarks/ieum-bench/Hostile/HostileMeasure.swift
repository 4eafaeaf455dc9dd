/// What those who mean no good can do to a daemon: many short sessions, a crowd, floods.
struct HostileMeasure {
    private let setting: Setting

    init(_ setting: Setting) {
        self.setting = setting
    }

    func run(into figures: inout Figures) throws {
        try SoakMeasure(setting).run(into: &figures)
        try CrowdMeasure(setting).run(into: &figures)
        try FloodMeasure(setting).run(into: &figures)
    }
}
