"""Pass: which tables are read more than once, so that the run computes them once and keeps them."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from lockgate.language.statements import CreateTableStep, LoadStep
from lockgate.plan.draft import Draft


def find_shared(draft: Draft) -> Draft:
    """Fill in `shared`."""
    readers = Counter(read.producer for reads in draft.reads for read in reads)
    tables = {
        index for index, statement in enumerate(draft.statements) if isinstance(statement, LoadStep | CreateTableStep)
    }
    return replace(draft, shared=frozenset(index for index in tables if readers[index] > 1))
