"""Pass: every EXPORT has a destination that is known and can do what is asked of it."""

from __future__ import annotations

import os
from collections.abc import Iterator

from lockgate.config import Project
from lockgate.destinations.protocol import Complaint, ExportRequest
from lockgate.errors import ArgumentError
from lockgate.language.diagnostics import Diagnostic, Place, did_you_mean
from lockgate.language.statements import ExportStep
from lockgate.plan.draft import Draft
from lockgate.tables.places import table_folder

_REPLACING = {"REPLACE", "FULL_MERGE"}  # of these a destination keeps no row but the export's own


def check_exports(draft: Draft) -> Draft:
    """Complain about types, modes, options and destinations of exports, and about two that collide."""
    exports = [statement for statement in draft.statements if isinstance(statement, ExportStep)]
    found: list[Diagnostic] = []
    for number, export in enumerate(exports, start=1):
        found += _problems(export, number, draft)
    return draft.complaining([*found, *_collisions(exports, Project(draft.project, draft.profile))])


def _problems(export: ExportStep, number: int, draft: Draft) -> Iterator[Diagnostic]:
    if export.path_escape:
        hint = "write the path in the pipeline itself; a variable's value stays inside the project"
        yield Diagnostic(export.destination_place, "path-escape", export.path_escape, hint)
    destination = draft.find(export.connector_type)
    if destination is None:
        types = ", ".join(draft.types())
        near = did_you_mean(export.connector_type, draft.types())
        hint = f"{near} ({types})" if near else f"there are {types}"
        message = f"there is no destination type {export.connector_type}"
        yield Diagnostic(export.type_place, "unknown-type", message, hint)
        return
    request = ExportRequest(
        destination=export.destination_uri,
        type=export.connector_type,
        mode=export.mode,
        options=export.options,
        keys=tuple(export.upsert_keys),
        order_by=tuple(export.order_by),
        project=draft.project,
        profile=draft.profile,
        number=number,
    )
    for complaint in destination.problems(request):
        yield Diagnostic(_place(export, complaint), complaint.code, complaint.message, complaint.hint)


def _place(export: ExportStep, complaint: Complaint) -> Place:
    match complaint.about:
        case "type":
            return export.type_place
        case "mode":
            return export.mode_place
        case "destination":
            return export.destination_place
    for name, place in export.option_places.items():
        if repr(name) in complaint.message:  # a complaint about one option quotes its name
            return place
    return export.options_place


def _collisions(exports: list[ExportStep], project: Project) -> Iterator[Diagnostic]:
    """Two exports may add to one destination, in their order; if one replaces it, the other's rows are lost or all
    that is left."""
    for index, export in enumerate(exports):
        for earlier in exports[:index]:
            where = f"the one on line {earlier.place.line}"
            if earlier.place.file != export.place.file:
                where += f" of {earlier.place.file}"
            here, there = _target(export, project), _target(earlier, project)
            if _inside(here, earlier, there) or _inside(there, export, here):
                message = f"this export and {where} overlap: one writes inside the folder of the other"
                yield Diagnostic(export.destination_place, "duplicate", message, "give each a folder of its own")
                break
            if here == there and _REPLACING.intersection((export.mode, earlier.mode)):
                message = f"this export and {where} write to {export.destination_uri}, and one replaces its rows"
                hint = "use another destination, or a mode for both that keeps the rows of the other"
                yield Diagnostic(export.destination_place, "duplicate", message, hint)
                break
            if export.label == earlier.label and (export.name or earlier.name):
                message = f"this export and {where} are both named {export.label}"
                yield Diagnostic(export.place, "duplicate", message, "give one of them another name with AS")
                break


def _target(export: ExportStep, project: Project) -> str:
    """Where an export goes, whatever its type and however it is spelled: one file is one file."""
    if export.connector_type.upper() == "DELTA":
        try:
            return str(table_folder(project, export.destination_uri))
        except ArgumentError:  # no name of a table, which the destination refuses in better words
            return f"\0DELTA\0{export.destination_uri}"
    connection = export.options.get("connection")
    if connection is not None:  # no path of this machine
        return f"\0{connection}\0{export.destination_uri}"
    try:
        return os.path.realpath(os.path.join(project.root, export.destination_uri))
    except ValueError:  # a NUL in it, which the destination refuses in better words
        return export.destination_uri


def _inside(path: str, folder_export: ExportStep, folder: str) -> bool:
    """Whether `path` lies below what the other export takes for its folder of data files."""
    kind = folder_export.connector_type.upper()
    is_folder = kind == "DELTA" or (kind == "PARQUET" and not folder.lower().endswith(".parquet"))
    return is_folder and path.startswith(folder + os.sep)
