"""Pass: a pipeline has something to do."""

from __future__ import annotations

from lockgate.language.diagnostics import Diagnostic, Place
from lockgate.plan.draft import Draft


def require_statements(draft: Draft) -> Draft:
    """A pipeline without statements is a mistake, unless its statements are there and wrong."""
    if draft.statements or draft.program.diagnostics:
        return draft
    place = Place(draft.program.files[0] if draft.program.files else draft.pipeline)
    hint = "a pipeline needs at least one statement, such as EXPORT ... TO ... TYPE ..."
    return draft.complaining([Diagnostic(place, "empty", "the pipeline has no statements", hint)])
