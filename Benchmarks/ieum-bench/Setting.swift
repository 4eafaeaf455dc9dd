/// What every measure works with.
struct Setting {
    let bed: TestBed
    let plan: BenchPlan
    let states: GameStates
    let progress: Progress
}
