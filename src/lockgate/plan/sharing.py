"""Pass: which tables are read more than once, so that the run computes them once and keeps them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

from lockgate.language.statements import CreateTableStep, LoadStep
from lockgate.plan.draft import Draft


def find_shared(draft: Draft) -> Draft:
    """Fill in `shared`. A version that adds to the one before reads it too."""
    readers = Counter(read.producer for reads in draft.reads for read in reads)
    for made in draft.versions.values():
        for earlier, later in pairwise(made):
            statement = draft.statements[later]
            if isinstance(statement, LoadStep | CreateTableStep) and statement.mode != "REPLACE":
                readers[earlier] += 1
    tables = {
        index for index, statement in enumerate(draft.statements) if isinstance(statement, LoadStep | CreateTableStep)
    }
    return replace(draft, shared=frozenset(index for index in tables if readers[index] > 1))
