"""Features of Delta tables: kept, unused, or refused by name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lockgate.errors import DamagedLog, UnsupportedFeature
from lockgate.storage.log_folder import LocalLogFolder
from lockgate.txlog.existing_table import read_existing
from support.delta_logs import SCHEMA, add, metadata, protocol, write_log


def column(**keys: Any) -> list[Any]:
    return [{**SCHEMA[0], "metadata": {name.replace("__", "."): value for name, value in keys.items()}}, SCHEMA[1]]


USED = [
    ("changeDataFeed", (1, 4), metadata(delta__enableChangeDataFeed="true")),
    ("generatedColumns", (1, 4), metadata(column(delta__generationExpression="1"))),
    ("identityColumns", (1, 6), metadata(column(delta__identity__start=1))),
    ("changeDataFeed", (1, 7), metadata(delta__enableChangeDataFeed="TRUE")),
    ("allowColumnDefaults", (1, 7), metadata(column(CURRENT_DEFAULT="1"))),
    ("typeWidening", (3, 7), metadata(column(delta__typeChanges=[]))),
    ("typeWidening-preview", (3, 7), metadata(column(delta__typeChanges=[]))),
    ("icebergCompatV1", (1, 7), metadata(delta__enableIcebergCompatV1="true")),
    ("icebergCompatV2", (1, 7), metadata(delta__enableIcebergCompatV2="true")),
    ("variantType", (3, 7), metadata([{**SCHEMA[0], "type": "variant"}])),
    ("variantType", (3, 7), metadata([{**SCHEMA[0], "type": {"type": "array", "elementType": "variant"}}])),
    ("rowTracking", (1, 7), metadata()),
    ("clustering", (1, 7), metadata()),
    ("catalogManaged", (3, 7), metadata()),
    ("variantShredding", (3, 7), metadata()),
    ("icebergCompatV3", (1, 7), metadata()),
    ("somethingNew", (1, 7), metadata()),
]


@pytest.mark.parametrize(("feature", "versions", "said"), USED, ids=[f"{f}{v}" for f, v, _ in USED])
def test_a_feature_in_use_is_refused_by_its_name(
    feature: str, versions: tuple[int, int], said: Any, tmp_path: Path
) -> None:
    write_log(tmp_path, [protocol(*versions, [feature], [feature]), said, add("a")])
    with pytest.raises(UnsupportedFeature) as raised:
        read_existing(LocalLogFolder(tmp_path))
    assert raised.value.feature == feature
    assert feature in raised.value.message
    assert raised.value.in_place == "nothing was changed"


UNUSED = ["changeDataFeed", "generatedColumns", "identityColumns", "allowColumnDefaults", "icebergCompatV2"]
KEPT = ["appendOnly", "invariants", "checkConstraints", "domainMetadata", "inCommitTimestamp"]
BOTH = ["timestampNtz", "v2Checkpoint", "vacuumProtocolCheck", "deletionVectors", "columnMapping", "typeWidening"]


def test_features_that_are_known_or_listed_and_unused_are_taken(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [protocol(3, 7, [*UNUSED, *KEPT, *BOTH], BOTH), metadata(delta__appendOnly="true"), add("a")],
    )
    assert read_existing(LocalLogFolder(tmp_path)).last == 0


@pytest.mark.parametrize("versions", [(1, 1), (1, 2), (1, 3), (1, 4), (2, 5), (2, 6), (1, 7)])
def test_old_protocols_that_use_nothing_are_taken(versions: tuple[int, int], tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(*versions), metadata(), add("a")])
    assert read_existing(LocalLogFolder(tmp_path)).last == 0


def test_a_feature_that_only_a_later_version_uses_is_refused(tmp_path: Path) -> None:
    write_log(
        tmp_path,
        [protocol(1, 4), metadata(), add("a")],
        [metadata(delta__enableChangeDataFeed="true")],
        [metadata()],
    )
    with pytest.raises(UnsupportedFeature, match="changeDataFeed"):
        read_existing(LocalLogFolder(tmp_path))


@pytest.mark.parametrize("versions", [(4, 7), (3, 8), (0, 2), (1, 0)])
def test_unknown_protocol_versions_are_refused(versions: tuple[int, int], tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(*versions), metadata()])
    with pytest.raises(UnsupportedFeature, match="protocol version"):
        read_existing(LocalLogFolder(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 7}}, "lists of features"),
        ({"protocol": {"minReaderVersion": 1, "minWriterVersion": 7}}, "no list"),
        ({"protocol": {"minReaderVersion": 3, "minWriterVersion": 5, "readerFeatures": []}}, "needs writer version 7"),
    ],
)
def test_protocols_that_contradict_themselves_are_refused(line: Any, said: str, tmp_path: Path) -> None:
    write_log(tmp_path, [line, metadata()])
    with pytest.raises(DamagedLog, match=said):
        read_existing(LocalLogFolder(tmp_path))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (metadata(partition_by=["nowhere"]), "no column of its schema"),
        (metadata([SCHEMA[0], {**SCHEMA[0], "name": "ID"}]), "case alone"),
        ({"metaData": {**metadata()["metaData"], "schemaString": "{"}}, "no Delta schema"),
        ({"metaData": {**metadata()["metaData"], "schemaString": "[" * 100_000}}, "no Delta schema"),
        ({"metaData": {**metadata()["metaData"], "format": {"provider": "csv"}}}, "csv"),
        (metadata(delta__columnMapping__mode="sideways"), "columnMapping.mode"),
    ],
)
def test_metadata_that_makes_no_sense_is_refused(line: Any, said: str, tmp_path: Path) -> None:
    write_log(tmp_path, [protocol(2, 5), line])
    with pytest.raises((DamagedLog, UnsupportedFeature), match=said):
        read_existing(LocalLogFolder(tmp_path))
