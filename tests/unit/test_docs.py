"""The documentation names what exists, and what it shows works."""

from __future__ import annotations

import dataclasses
import inspect
import re
import shlex
from pathlib import Path

import click
import pytest

import lockgate
from lockgate.cli.app import app
from lockgate.destinations import registry
from lockgate.destinations.csv import CsvDestination
from lockgate.destinations.delta import DeltaDestination
from lockgate.destinations.json import JsonDestination
from lockgate.destinations.parquet_file import ParquetFileDestination
from lockgate.destinations.parquet_folder import ParquetFolderDestination
from lockgate.destinations.parquet_keyed import ParquetKeyedDestination
from lockgate.destinations.postgres import PostgresDestination
from lockgate.destinations.s3_place import S3_OPTIONS
from lockgate.language import Variables, parse
from lockgate.plan.source_types import SOURCE_TYPES


class S3Options:
    options = S3_OPTIONS


ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def every_command() -> dict[str, click.Command]:
    """Commands, and those of groups as `group command`."""
    found = dict(app.commands)
    for name, command in app.commands.items():
        if isinstance(command, click.Group):
            found |= {f"{name} {own}": each for own, each in command.commands.items()}
    return found


@pytest.mark.parametrize("command", sorted(every_command()))
def test_every_command_and_option_is_documented(command: str) -> None:
    text = page("docs/running.md")
    row = next(line for line in text.splitlines() if re.match(rf"\| `lockgate {command}[ `]", line))
    for parameter in every_command()[command].params:
        if isinstance(parameter, click.Option) and parameter.name != "help":
            assert f"`{parameter.opts[0]}`" in row, parameter.opts
            assert f"`{parameter.opts[0]}" in text.split("| option |")[1]
    assert f"lockgate {command.partition(' ')[0]}" in page("README.md")


@pytest.mark.parametrize("kind", registry.types())
def test_every_destination_has_a_page_with_its_modes_and_options(kind: str) -> None:
    text = page(f"docs/destinations/{kind.lower()}.md")
    assert "Supported write modes" in text
    forms = {
        "CSV": [CsvDestination],
        "DELTA": [DeltaDestination],
        "JSON": [JsonDestination],
        "POSTGRES": [PostgresDestination],
        "PARQUET": [ParquetFileDestination, ParquetFolderDestination, ParquetKeyedDestination],
        "S3": [S3Options],
    }
    for form in forms[kind]:
        for option in form.options:
            assert f"`{option}`" in text, option


def test_every_source_parameter_is_documented() -> None:
    text = page("docs/sources.md")
    for kind, parameters in SOURCE_TYPES.items():
        assert kind in text
        for name in parameters:
            assert f"`{name}`" in text, (kind, name)


def test_every_error_is_documented() -> None:
    text = page("docs/errors.md")
    for name in lockgate.__all__:
        value = getattr(lockgate, name)
        if isinstance(value, type) and issubclass(value, lockgate.LockgateError):
            assert name in text, name


def sql_blocks() -> list[tuple[str, str]]:
    return [
        (f"{path.relative_to(ROOT)}:{path.read_text()[: match.start()].count(chr(10)) + 1}", match[1])
        for path in PAGES
        for match in re.finditer(r"^```sql\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    ]


@pytest.mark.parametrize(("where", "text"), sql_blocks(), ids=[where for where, _ in sql_blocks()])
def test_every_pipeline_in_the_documentation_parses(where: str, text: str) -> None:
    names = re.findall(r"\$\{([A-Za-z_]\w*)\}", text) + re.findall(r"(?<![:\w]):([a-z_]\w*)", text)
    known = dict.fromkeys(names, "1")
    program = parse(text, file=where, variables=Variables(command_line=known), read=lambda _path: "")
    assert [d.render() for d in program.diagnostics] == []


@pytest.mark.parametrize("name", ["docs/merging.md", "docs/datasets.md", "docs/tables.md", "docs/delta-log.md"])
def test_the_python_of_a_page_runs_and_prints_what_it_says(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The blocks of a page build on each other, so they share one folder and one set of names."""
    text = page(name)
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = list(re.finditer(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    assert blocks
    for block in blocks:
        first_line = text[: block.start(1)].count("\n")
        exec(compile("\n" * first_line + block[1], name, "exec"), names)
        assert capsys.readouterr().out.splitlines() == re.findall(r"^ *print\(.*\)  # (.*)$", block[1], re.MULTILINE)


def commands() -> list[tuple[str, str]]:
    """Each line of a shell block that calls a command with its arguments, without the comment behind it."""
    return [
        (f"{path.relative_to(ROOT)}: {line}", line.removeprefix("$ ").partition(" # ")[0])
        for path in PAGES
        for block in re.findall(r"^```(?:sh)?\n(.*?)^```", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
        if re.match(r"(\$ )?lockgate [a-z]", line)
    ]


@pytest.mark.parametrize(("where", "line"), commands(), ids=[where for where, _ in commands()])
def test_every_command_in_the_documentation_is_understood(where: str, line: str) -> None:
    del where
    _, command, *arguments = shlex.split(line)
    app.commands[command].make_context(command, arguments)


def test_every_field_of_a_merge_result_and_every_parameter_is_documented() -> None:
    text = page("docs/datasets.md")
    fields = [f.name for kind in (lockgate.MergeResult, lockgate.WriteResult) for f in dataclasses.fields(kind)]
    parameters = [*inspect.signature(lockgate.merge).parameters, *inspect.signature(lockgate.write_dataset).parameters]
    for name in {*fields, *parameters} - {"storage"}:  # of the tests
        assert f"`{name}`" in text, name


def test_the_strategies_are_documented() -> None:
    for strategy in lockgate.MergeStrategy:
        assert f"| `{strategy}` |" in page("docs/merging.md")
        assert f"`{strategy}`" in page("README.md")


def test_every_page_and_decision_is_in_the_navigation() -> None:
    navigation = page("mkdocs.yml")
    for path in (ROOT / "docs").rglob("*.md"):
        assert f": {path.relative_to(ROOT / 'docs')}\n" in navigation, path


def test_the_two_commands_of_the_readme_are_targets() -> None:
    makefile = page("Makefile")
    for command in ("make demo", "make test"):
        assert command in page("README.md")
        assert re.search(rf"^{command.split()[1]}:", makefile, re.MULTILINE)


def test_pins_name_packages_and_no_addresses() -> None:
    lines = page("requirements.lock").splitlines()
    assert len(lines) > 30
    for line in lines:
        assert re.fullmatch(r"[a-z0-9._-]+(\[[a-z,]+\])?==[^\s;]+( ; .+)?", line), line


def test_no_file_is_too_long_to_be_about_one_thing() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 500, path
