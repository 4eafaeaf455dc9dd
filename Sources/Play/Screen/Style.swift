import Handle

/// How a piece of text looks where there are colours. What it means must be readable without them, too.
package enum Style: Hashable, Sendable {
    case plain
    /// Less important.
    case dim
    /// A heading, or what to press.
    case strong
    /// Needs attention.
    case alert
    /// A tile with a letter that was not submitted, or a key that nothing is known of.
    case open
    case absent
    case wrongPlace
    case rightPlace

    /// The look of a mark.
    package init(_ mark: Mark) {
        switch mark {
        case .unmarked: self = .open
        case .absent: self = .absent
        case .wrongPlace: self = .wrongPlace
        case .rightPlace: self = .rightPlace
        }
    }

    /// The parameters of SGR (ECMA-48, 8.3.117) behind a reset; colours of the 16 that every terminal with colours has.
    var parameters: String {
        switch self {
        case .plain: ""
        case .dim: ";2"
        case .strong: ";1"
        case .alert: ";1;31"
        case .open: ";7"
        case .absent: ";97;100"
        case .wrongPlace: ";30;43"
        case .rightPlace: ";30;42"
        }
    }
}
