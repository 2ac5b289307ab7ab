"""What a pipeline says, as records. Made by the parser, read by the planner; each can validate itself."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockgate.language.diagnostics import Place
from lockgate.modes import KEYED_MODES


@dataclass(frozen=True)
class Sql:
    """A slice of the file, exactly as Spark will get it, and the way back from an offset in it to the file."""

    text: str
    place_of: Callable[[int], Place] = field(default=lambda _offset: Place(), compare=False, repr=False)
    parameters: tuple[str, ...] = ()  # names of the :parameters it binds, in order of first use


@dataclass(frozen=True, kw_only=True)
class PipelineStep:
    place: Place = field(default_factory=Place, compare=False)

    def validate(self) -> list[str]:
        """What is wrong with this statement by itself, one sentence each."""
        return []


@dataclass(frozen=True, kw_only=True)
class SourceStep(PipelineStep):
    name: str
    connector_type: str | None = None  # SOURCE x TYPE CSV ...
    connection: str | None = None  # SOURCE x FROM "connection" ...
    params: Mapping[str, Any] = field(default_factory=dict)
    type_place: Place = field(default_factory=Place, compare=False)  # of the TYPE, or of the connection
    params_place: Place = field(default_factory=Place, compare=False)
    param_places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)
    path_escape: str | None = None  # how a variable's value took its path out of the project


@dataclass(frozen=True, kw_only=True)
class LoadStep(PipelineStep):
    table_name: str
    source_name: str
    source_place: Place = field(default_factory=Place, compare=False)
    mode: str = "REPLACE"
    mode_place: Place = field(default_factory=Place, compare=False)
    upsert_keys: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)

    def validate(self) -> list[str]:
        return key_problems(self.mode, self.upsert_keys, self.order_by)


@dataclass(frozen=True, kw_only=True)
class Lookback:
    amount: int
    unit: str  # MINUTE, HOUR, DAY, WEEK, MONTH


@dataclass(frozen=True, kw_only=True)
class CreateTableStep(PipelineStep):
    table_name: str
    query: Sql
    or_replace: bool = False
    mode: str = "REPLACE"
    mode_place: Place = field(default_factory=Place, compare=False)
    upsert_keys: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    incremental_by: str | None = None
    lookback: Lookback | None = None

    def validate(self) -> list[str]:
        problems = key_problems(self.mode, self.upsert_keys, self.order_by)
        if self.mode == "INCREMENTAL" and not self.incremental_by:
            problems.append("INCREMENTAL mode requires the BY clause to be specified.")
        if self.lookback and self.mode != "INCREMENTAL":
            problems.append("LOOKBACK can only be used with INCREMENTAL mode.")
        if self.or_replace and self.mode != "REPLACE":
            problems.append(f"OR REPLACE and MODE {self.mode} contradict each other; keep one of them.")
        return problems


@dataclass(frozen=True, kw_only=True)
class CheckStep(PipelineStep):
    name: str
    query: Sql


@dataclass(frozen=True, kw_only=True)
class ExportStep(PipelineStep):
    sql_query: str
    destination_uri: str
    connector_type: str
    options: Mapping[str, Any] = field(default_factory=dict)
    mode: str = "APPEND"
    upsert_keys: list[str] = field(default_factory=list)
    order_by: list[str] = field(default_factory=list)
    name: str = ""  # AS name; else the destination
    table_name: str | None = None  # EXPORT table TO ..., None for a query
    query: Sql | None = field(default=None, compare=False)
    # Of a table in the warehouse: the statements whose rows are written, in place of what a table or a query holds.
    brought_by: tuple[LoadStep | CreateTableStep, ...] = field(default=(), compare=False)
    path_escape: str | None = None  # how a variable's value took the destination out of the project
    type_place: Place = field(default_factory=Place, compare=False)
    mode_place: Place = field(default_factory=Place, compare=False)
    options_place: Place = field(default_factory=Place, compare=False)
    option_places: Mapping[str, Place] = field(default_factory=dict, compare=False, repr=False)
    destination_place: Place = field(default_factory=Place, compare=False)

    @property
    def label(self) -> str:
        return self.name or self.destination_uri

    def validate(self) -> list[str]:
        return key_problems(self.mode, self.upsert_keys, self.order_by)


def key_problems(mode: str, keys: list[str], order_by: list[str]) -> list[str]:
    """The rules of MODE, KEY and ORDER BY, the same for LOAD, CREATE TABLE and EXPORT."""
    mode = mode.upper()
    problems = []
    if mode in KEYED_MODES and not keys:
        problems.append(f"{mode} mode requires the KEY clause to be specified.")
    if mode not in KEYED_MODES and keys:
        others = ", ".join(KEYED_MODES[1:])
        problems.append(f"KEY clause can only be used with UPSERT mode (or {others}).")
    if order_by and mode != "DEDUPLICATE":
        problems.append("ORDER BY can only be used with DEDUPLICATE mode.")
    folded = [k.casefold() for k in keys]
    twice = sorted({k for k in keys if folded.count(k.casefold()) > 1})
    if twice:
        problems.append(f"KEY names {', '.join(twice)} more than once.")
    return problems
