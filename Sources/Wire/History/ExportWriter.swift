/// Puts a history, version by version, into the lines of an export: values in, bytes out.
///
/// What it keeps is a sum: which devices it has named, how many versions there were, and the checksum of what it wrote.
package struct ExportWriter {
    /// How many versions it was given.
    package private(set) var versions: Int64 = 0
    private var devices: Set<DeviceID> = []
    private var checksum = SHA256()

    /// Begins; the header, of which there is no checksum, is written by others.
    package init() {}

    /// The line of the next version, with its device's before it where it is the first of that device.
    /// - Parameter device: tells of a device that was not named yet.
    package mutating func lines<Failure>(
        of version: VersionEntry, device: (DeviceID) throws(Failure) -> ImportedDevice
    ) throws(Failure) -> [UInt8] {
        var bytes: [UInt8] = []
        let author = version.detail.device
        if !devices.contains(author) {
            ExportLine.device(try device(author)).print(into: &bytes)
            devices.insert(author)
        }
        ExportLine.version(version).print(into: &bytes)
        versions += 1
        checksum.update(bytes)
        return bytes
    }

    /// What the last line says.
    package func end(lastRevision: Revision, purgedBefore: Revision) -> ExportLine.End {
        let totals = ImportTotals(
            versions: versions, devices: Int64(devices.count), lastRevision: lastRevision, purgedBefore: purgedBefore)
        var bytes: [UInt8] = []
        ExportLine.printTotals(totals, into: &bytes)
        var sum = checksum
        sum.update(bytes)
        return ExportLine.End(totals: totals, checksum: sum.hexDigest)
    }
}
