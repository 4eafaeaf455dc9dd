import IeumClient
import TerminalText
import Wire

extension GameKey {
    /// The game's two words behind a command, as a shell and this program take them. Options stand before them.
    var commandWords: String {
        "\(id.hasPrefix("-") ? "-- " : "")\(collection.shellQuoted) \(id.shellQuoted)"
    }
}

extension Timestamp {
    /// `2026-11-29 12:00:00`, UTC, to the second.
    var shortText: String { description.shortTime }
}

extension Duration {
    /// `0.8 ms`, `12 ms`, `2.5 s`, `5 minutes`, `3 hours`, `2 days`
    var readableText: String {
        let microseconds =
            components.seconds.multipliedReportingOverflow(by: 1_000_000).partialValue
            &+ components.attoseconds / 1_000_000_000_000
        let milliseconds = Double(microseconds) / 1_000
        switch abs(milliseconds) {
        case ..<10: return "\(Self.rounded(milliseconds)) ms"
        case ..<1_000: return "\(Int(milliseconds.rounded())) ms"
        case ..<120_000: return "\(Self.rounded(milliseconds / 1_000)) s"
        case ..<7_200_000: return "\(Int((milliseconds / 60_000).rounded())) minutes"
        case ..<172_800_000: return "\(Int((milliseconds / 3_600_000).rounded())) hours"
        default: return "\(Int((milliseconds / 86_400_000).rounded())) days"
        }
    }

    /// Milliseconds with three decimals.
    var milliseconds: Double {
        let microseconds =
            components.seconds.multipliedReportingOverflow(by: 1_000_000).partialValue
            &+ components.attoseconds / 1_000_000_000_000
        return Double(microseconds) / 1_000
    }

    private static func rounded(_ value: Double) -> String {
        let tenths = (value * 10).rounded() / 10
        return tenths == tenths.rounded() ? String(Int(tenths)) : String(tenths)
    }
}
