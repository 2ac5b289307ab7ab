"""Pass: the order of the steps. What is read comes first; where that leaves a choice, the text decides."""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise

from lockgate.language.diagnostics import Diagnostic
from lockgate.plan.draft import Draft, name_of


def put_in_order(draft: Draft) -> Draft:
    """Fill in `order`, and complain about every cycle."""
    needs = _needs(draft)
    order: list[int] = []
    found: list[Diagnostic] = []
    done: set[int] = set()
    while True:
        order += _sorted(needs, done)
        left = {index for index in needs if index not in done}
        if not left:
            return replace(draft, order=tuple(order)).complaining(found)
        cycle = _cycle(needs, left)
        found.append(_complaint(cycle, draft))
        done |= set(cycle)  # so that a second cycle behind it shows as well


def _needs(draft: Draft) -> dict[int, set[int]]:
    """For each statement, those that must come before it."""
    needs: dict[int, set[int]] = {index: set() for index in range(len(draft.statements))}
    for made in draft.versions.values():
        for earlier, later in pairwise(made):
            needs[later].add(earlier)
    for reader, reads in enumerate(draft.reads):
        for read in reads:
            needs[reader].add(read.producer)
            # A view has one name for all its versions: who reads this one must look before the next is made.
            following = draft.following_version(read.producer)
            if following is not None and following != reader:
                needs[following].add(reader)
    return needs


def _sorted(needs: Mapping[int, set[int]], done: set[int]) -> list[int]:
    """As many statements as can be put in order now; adds them to `done`."""
    dependents: dict[int, list[int]] = {index: [] for index in needs}
    waiting: dict[int, int] = {}
    for index in needs:
        if index in done:
            continue
        missing = needs[index] - done
        waiting[index] = len(missing)
        for need in missing:
            dependents[need].append(index)
    ready = [index for index, count in waiting.items() if not count]
    heapq.heapify(ready)
    order = []
    while ready:
        index = heapq.heappop(ready)
        done.add(index)
        order.append(index)
        for dependent in dependents[index]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heapq.heappush(ready, dependent)
    return order


def _cycle(needs: Mapping[int, set[int]], left: set[int]) -> list[int]:
    """Some cycle among the statements left: from any of them, following needs must come round."""
    path = [min(left)]
    seen = {path[0]: 0}
    while True:
        following = min(needs[path[-1]] & left)
        if following in seen:
            cycle = path[seen[following] :]
            first = cycle.index(min(cycle))
            return cycle[first:] + cycle[:first]
        seen[following] = len(path)
        path.append(following)


def _complaint(cycle: list[int], draft: Draft) -> Diagnostic:
    names = [name_of(draft.statements[index]) for index in cycle]
    shown = " -> ".join([*names, names[0]])
    hint = "each of them needs the next one first; break the circle at one of them"
    if len(cycle) == 1:
        hint = "a table cannot be made from itself; read another one, or define it before"
    return Diagnostic(draft.statements[cycle[0]].place, "cycle", f"a circle of dependencies: {shown}", hint)
