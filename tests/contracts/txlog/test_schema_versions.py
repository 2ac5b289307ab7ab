"""A log whose schema is older or newer than the code: refused, and migrated on demand, with all that is in it."""

from __future__ import annotations

import pytest

import lockgate
from lockgate.txlog import postgres_store, sqlite_store
from lockgate.txlog.addresses import store_at
from lockgate.txlog.migrations import scripts
from support.txlogs import TABLE, Place, add, paths


@pytest.fixture
def database(somewhere: Place) -> str:
    return "sqlite" if somewhere.url.startswith("sqlite") else "postgres"


def known_are(monkeypatch: pytest.MonkeyPatch, known: list[list[str]]) -> None:
    for module in (sqlite_store, postgres_store):
        monkeypatch.setattr(module, "scripts", lambda _: known)


def test_a_newer_schema_is_refused(somewhere: Place, database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    now = scripts(database)
    with monkeypatch.context() as later:
        known_are(later, [*now, ["CREATE TABLE dl_later (n INTEGER)"]])
        with somewhere.open() as log:
            somewhere.table(log)
    store = store_at(somewhere.url, root=None, pool_size=1, timeout=5.0)
    for use in (somewhere.open, store.migrate):
        with pytest.raises(
            lockgate.DatabaseError, match=f"schema {len(now) + 1}, this one knows {len(now)}"
        ) as refused:
            use()
        assert refused.value.hint == "upgrade lockgate"
    store.close()


def test_every_older_schema_is_refused_and_can_be_migrated(
    somewhere: Place, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = scripts(database)
    known_are(monkeypatch, now[:1])
    monkeypatch.setattr(postgres_store.PostgresStore, "appends", False)
    with somewhere.open() as log:
        somewhere.table(log)
        log.commit(TABLE, None, [add("old")])
    monkeypatch.undo()
    known_are(monkeypatch, [*now, ["CREATE TABLE dl_later (n INTEGER)"]])
    with pytest.raises(lockgate.DatabaseError, match="has schema 1") as refused:
        somewhere.open()
    assert "lockgate table migrate" in (refused.value.hint or "")
    store = store_at(somewhere.url, root=None, pool_size=1, timeout=5.0)
    assert store.migrate() == store.migrate() == store.schema_version() == len(now) + 1
    store.close()
    with somewhere.open() as log:
        assert log.commit(TABLE, None, [add("new")]) == 2
        assert paths(log) == ["new", "old"]


def test_a_default_isolation_that_would_not_see_what_was_committed_meanwhile(somewhere: Place, database: str) -> None:
    if database == "postgres":
        somewhere.url += "%20-cdefault_transaction_isolation%3Dserializable%20-csynchronous_commit%3Doff"
    with somewhere.open() as log, somewhere.open() as other:
        somewhere.table(log)
        assert [each.commit(TABLE, None, [add(str(n))]) for n, each in enumerate((log, other, log))] == [1, 2, 3]
