"""From a pipeline's file to its plan. No Spark here: `lockgate check` and `lockgate plan` need none."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lockgate.config import Project
from lockgate.errors import ConfigError
from lockgate.language import Program, Variables, parse
from lockgate.language.diagnostics import Diagnostic
from lockgate.plan import check, make_plan
from lockgate.plan.steps import Plan


def load_program(pipeline: str | Path, project: Project, variables: Mapping[str, Any] | None = None) -> Program:
    """Read and parse a pipeline. What is wrong with its text is in the program's diagnostics."""
    path = Path(pipeline)
    try:
        text = read_text(str(path))
    except FileNotFoundError:
        raise ConfigError(f"there is no pipeline {path}", in_place="nothing was run") from None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read the pipeline {path}: {error}", in_place="nothing was run") from error
    values = Variables(
        command_line=dict(variables or {}), profile=dict(project.profile.variables), environment=dict(os.environ)
    )
    return parse(text, file=str(path), variables=values, read=read_text)


def load_plan(pipeline: str | Path, project: Project, variables: Mapping[str, Any] | None = None) -> Plan:
    """The plan of a pipeline; raises PipelineError with everything that is wrong."""
    program = load_program(pipeline, project, variables)
    return make_plan(
        program,
        pipeline=recorded_name(Path(pipeline), project.root),
        project=project.root,
        profile=project.profile,
    )


def check_pipeline(
    pipeline: str | Path, project: Project, variables: Mapping[str, Any] | None = None
) -> list[Diagnostic]:
    """Everything that is wrong with a pipeline, SQL that cannot be parsed included."""
    program = load_program(pipeline, project, variables)
    return check(
        program,
        pipeline=recorded_name(Path(pipeline), project.root),
        project=project.root,
        profile=project.profile,
    )


def read_text(path: str) -> str:
    # newline="" keeps Windows line ends, which are part of the SQL that reaches Spark.
    with open(path, encoding="utf-8-sig", newline="") as file:
        return file.read()


def recorded_name(path: Path, root: Path) -> str:
    """A pipeline's name in the record of runs: relative to its project where it is inside it."""
    path = path.resolve()
    return str(path.relative_to(root)) if path.is_relative_to(root) else str(path)
