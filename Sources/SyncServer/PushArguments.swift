import Postgres
import Wire

/// The arguments of the SQL function `push_batch` for one batch: a routing key and one array a column. Used again and again.
struct PushArguments {
    /// `push_batch(shard_key, players, devices, collections, games, saved, bases, schemas, states, verified)`.
    static let statement = Statement(
        "push_batch", "SELECT * FROM push_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, verified_in => $10)",
        parameterTypes: [
            .uuid, .uuidArray, .uuidArray, .textArray, .textArray, .timestamptzArray, .int8Array, .int4Array,
            .jsonArray, .boolArray,
        ])

    /// Memory that is kept between batches; more than that is given back.
    private static let keptBytes = 1 << 20

    private(set) var list = ParameterList()
    private var players = BinaryArray(of: .uuid)
    private var devices = BinaryArray(of: .uuid)
    private var collections = BinaryArray(of: .text)
    private var games = BinaryArray(of: .text)
    private var saved = BinaryArray(of: .timestamptz)
    private var bases = BinaryArray(of: .int8)
    private var schemas = BinaryArray(of: .int4)
    private var states = BinaryArray(of: .json)
    private var verified = BinaryArray(of: .bool)

    /// Lays a batch out that is to be sent now; it must not be empty.
    mutating func fill(with batch: [PendingPush], at now: ContinuousClock.Instant) {
        empty()
        for pending in batch {
            let push = pending.push
            players.append(pending.player.uuid)
            devices.append(pending.device.uuid)
            collections.append(push.game.collection)
            games.append(push.game.id)
            saved.append(microsecondsSince1970: pending.saved.microseconds)
            if let base = push.base { bases.append(base) } else { bases.appendNull() }
            schemas.append(push.schema)
            if let state = push.state { states.append(state) } else { states.appendNull() }
            verified.append(pending.isDeviceVerified(at: now))
        }
        list.append(batch[0].player.uuid)
        for array in [players, devices, collections, games, saved, bases, schemas, states, verified] {
            list.append(array)
        }
    }

    private mutating func empty() {
        list.removeAll(keepingAtMost: Self.keptBytes)
        players.removeAll()
        devices.removeAll()
        collections.removeAll()
        games.removeAll()
        saved.removeAll()
        bases.removeAll()
        schemas.removeAll()
        verified.removeAll()
        states.removeAll(keepingAtMost: Self.keptBytes)
    }
}
