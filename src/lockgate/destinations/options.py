"""Checking the OPTIONS and the path of an export before anything runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from lockgate.destinations.protocol import Complaint, ExportRequest
from lockgate.storage.s3_address import is_s3, parse_address


@dataclass(frozen=True)
class Option:
    """What an option accepts: a kind of value, and maybe a closed set or a single character."""

    kind: type
    choices: tuple[str, ...] = ()
    one_character: bool = False
    encoding: bool = False
    positive: bool = False

    def refusal(self, value: Any) -> str | None:
        if not isinstance(value, self.kind) or (self.kind is int and isinstance(value, bool)):
            names = {str: "text", bool: "true or false", int: "a whole number", list: "a list"}
            return f"must be {names[self.kind]}, not {value!r}"
        shown: Any = value  # isinstance with a type held in a variable tells the type checker only `object`
        if self.choices and shown.lower() not in self.choices:
            return f"must be one of {', '.join(self.choices)}, not {value!r}"
        if self.one_character and len(shown) != 1:
            return f"must be one character, not {value!r}"
        if self.positive and shown < 1:
            return f"must be 1 or more, not {value!r}"
        if self.encoding:
            try:
                "".encode(shown)  # unlike codecs.lookup, refuses codecs that are not for text, such as base64
            except LookupError:
                return f"names no known text encoding: {value!r}"
        return None


def option_problems(request: ExportRequest, known: Mapping[str, Option]) -> list[Complaint]:
    """Unknown options with the nearest known one, and values of the wrong kind."""
    found = []
    for name, value in request.options.items():
        option = known.get(name)
        if option is None:
            close = get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"{request.type} takes {', '.join(sorted(known))}"
            found.append(Complaint("options", "unknown-option", f"{request.type} has no option {name!r}", hint))
        elif refusal := option.refusal(value):
            found.append(Complaint("options", "bad-option", f"option {name!r} {refusal}"))
    return found


def path_problems(request: ExportRequest) -> list[Complaint]:
    """A destination that cannot be a path on this machine."""
    text = request.destination
    if not text.strip():
        return [Complaint("destination", "bad-path", "the destination is empty")]
    if "\0" in text:
        return [Complaint("destination", "bad-path", "the destination holds a NUL character")]
    scheme, found, _ = text.partition("://")
    if is_s3(text):
        try:
            parse_address(text)
        except ValueError as error:
            return [Complaint("destination", "bad-path", str(error), "s3:// addresses look like s3://bucket/key")]
    elif found:
        hint = (
            "write s3://" if scheme.lower() in ("s3a", "s3n") else "give a path on this machine's filesystem, or s3://"
        )
        message = f"TYPE {request.type} cannot write to {scheme}:// addresses in this version"
        return [Complaint("destination", "scheme-unavailable", message, hint)]
    return []


def local_path(request: ExportRequest) -> Path:
    """The destination as an absolute path; what is relative is relative to the project."""
    return Path(request.project, request.destination)
