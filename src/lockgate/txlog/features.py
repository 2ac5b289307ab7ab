"""Which features of Delta tables are understood. One that is not known is refused by name, never ignored."""

from __future__ import annotations

from lockgate.errors import ValidationError
from lockgate.txlog.actions import Metadata, Protocol
from lockgate.txlog.column_mapping import mapping_mode

READER_FEATURES = frozenset({"deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"})
WRITER_FEATURES = READER_FEATURES | {
    "appendOnly",
    "checkConstraints",
    "domainMetadata",
    "inCommitTimestamp",
    "invariants",
}
# What a table of an older protocol may use without naming it, and how one sees that it does.
_LEGACY_READER = {2: ("columnMapping",)}
_LEGACY_WRITER = {
    4: ("changeDataFeed", "generatedColumns"),
    5: ("columnMapping",),
    6: ("identityColumns",),
}


def refuse_unknown(protocol: Protocol, metadata: Metadata) -> None:
    """Raise where the table uses what this version does not understand."""
    unknown = unknown_features(protocol, metadata)
    if unknown:
        raise ValidationError(
            f"the table uses {', '.join(unknown)}, which this version does not know",
            in_place="nothing was committed",
            hint=f"known features: {', '.join(sorted(READER_FEATURES | WRITER_FEATURES))}",
        )


def unknown_features(protocol: Protocol, metadata: Metadata) -> list[str]:
    """The names of what the table uses and this version does not know.

    >>> unknown_features(Protocol(1, 7, None, ("rowTracking", "appendOnly")), Metadata("", "{}"))
    ['rowTracking']
    """
    names: list[str] = []
    if protocol.min_reader_version > 3:
        names.append(f"reader version {protocol.min_reader_version}")
    if protocol.min_writer_version > 7:
        names.append(f"writer version {protocol.min_writer_version}")
    listed = {*(protocol.reader_features or ())} - READER_FEATURES
    listed |= {*(protocol.writer_features or ())} - WRITER_FEATURES
    names += [name for name in listed if _is_used(name, metadata)]
    legacy: list[str] = []
    if protocol.min_reader_version == 2:
        legacy += _LEGACY_READER[2]
    if protocol.min_writer_version < 7:
        for version, features in _LEGACY_WRITER.items():
            legacy += features if version <= protocol.min_writer_version else ()
    names += [name for name in legacy if _is_used(name, metadata)]
    return sorted(set(names))


def problem_of(protocol: Protocol) -> str | None:
    """Why no reader would take this protocol; None where it is well formed."""
    if protocol.min_reader_version < 1 or protocol.min_writer_version < 1:
        return "versions begin at 1"
    if (protocol.min_writer_version >= 7) != (protocol.writer_features is not None):
        return "writerFeatures stand with minWriterVersion 7, and only there"
    if (protocol.min_reader_version >= 3) != (protocol.reader_features is not None):
        return "readerFeatures stand with minReaderVersion 3, and only there"
    if protocol.min_reader_version >= 3 and protocol.min_writer_version < 7:
        return "minReaderVersion 3 needs minWriterVersion 7"
    missing = set(protocol.reader_features or ()) - set(protocol.writer_features or ())
    if missing:
        return f"{', '.join(sorted(missing))} is in readerFeatures and not in writerFeatures"
    return None


def supports_domains(protocol: Protocol) -> bool:
    return "domainMetadata" in (protocol.writer_features or ())


def is_append_only(protocol: Protocol, metadata: Metadata) -> bool:
    named = protocol.writer_features is None or "appendOnly" in protocol.writer_features
    old_enough = protocol.min_writer_version >= 2
    return named and old_enough and metadata.configuration.get("delta.appendOnly", "").lower() == "true"


def _is_used(feature: str, metadata: Metadata) -> bool:
    """Whether a feature that this version does not keep is more than listed."""
    from lockgate.txlog.table_features import is_used

    if feature == "columnMapping":  # can be read, and is not written
        return mapping_mode(metadata.configuration) != "none"
    return is_used(feature, metadata)
