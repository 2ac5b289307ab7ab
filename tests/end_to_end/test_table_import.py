"""`lockgate table import` and `release` as a user runs them."""

from __future__ import annotations

import json
from pathlib import Path

import deltalake
import pyarrow as pa
import pytest
from click.testing import CliRunner, Result

from lockgate.cli.app import app
from support.delta_logs import add, metadata, protocol, write_log


def lockgate(*arguments: str) -> Result:
    return CliRunner().invoke(app, ["table", *arguments])


@pytest.fixture(autouse=True)
def _in_a_project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lockgate.toml").write_text("[profile.dev]\n")
    monkeypatch.chdir(tmp_path)


def test_import_show_and_release() -> None:
    deltalake.write_deltalake("lake/orders", pa.table({"day": ["a", "b"], "id": [1, 2]}), partition_by=["day"])
    deltalake.DeltaTable("lake/orders").alter.add_constraint({"positive": "id > 0"})
    done = lockgate("import", "sales.orders", "lake/orders")
    assert done.exit_code == 0, done.output
    assert "imported sales.orders" in done.output
    assert "0 to 1" in done.output
    assert "by day" in done.output
    assert "positive" in done.output
    assert "sales.orders" in lockgate("list").output
    again = lockgate("import", "sales.orders", "lake/orders")
    assert again.exit_code == 1
    assert "sales.orders" in again.output
    released = lockgate("release", "sales.orders", "--json")
    assert json.loads(released.stdout)["version"] == 1
    assert lockgate("release", "sales.orders").exit_code == 1
    deltalake.write_deltalake("lake/orders", pa.table({"day": ["a"], "id": [3]}), mode="append")
    imported = lockgate("import", "sales.orders", "lake/orders", "--json")
    told = json.loads(imported.stdout)
    assert (told["version"], told["first_version"], told["files"], told["constraints"]) == (2, 0, 3, ["positive"])


def test_a_feature_that_is_not_supported_is_named(tmp_path: Path) -> None:
    write_log(tmp_path / "t", [protocol(1, 7, ["rowTracking"]), metadata(), add("a")])
    refused = lockgate("import", "t", "t")
    assert refused.exit_code == 1
    assert "rowTracking" in refused.stderr
    assert "nothing was imported" in refused.stderr
    as_json = lockgate("import", "t", "t", "--json")
    assert as_json.exit_code == 1
    assert "rowTracking" in json.loads(as_json.stdout)["error"]


@pytest.mark.parametrize(("name", "place"), [("t", "missing"), ("_t", "t"), ("a..b", "t"), ("t", "s3://bucket/t")])
def test_mistakes_of_the_command_line(name: str, place: str) -> None:
    refused = lockgate("import", name, place)
    assert refused.exit_code == 2, refused.output
    assert "do:" in refused.stderr
