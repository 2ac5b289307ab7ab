"""Destinations and sources reach a server by the same settings, and say why they could not in the same words."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import lockgate
from lockgate.config import Connection
from lockgate.sources.postgres_session import SnapshotSession
from support.postgres import Database
from support.postgres_runs import write

PASSWORD = "hunter2 ä@/#?:%2F&'\\"
Reach = Callable[..., None]


def as_destination(folder: Path, database: Database, **settings: Any) -> None:
    write(folder, database.profile(**settings), pa.table({"id": [1]}), "t", "APPEND")


def as_source(folder: Path, database: Database, **settings: Any) -> None:
    del folder
    opened = SnapshotSession(Connection("pg", "postgres", {"url": database.url, **settings}), "orders")
    try:
        assert opened.ask("orders", "counting", "SELECT count(*) FROM t").fetchone() == (0,)
        assert settings.get("password", "hunter2") not in repr(opened.access)
    finally:
        opened.close()


@pytest.fixture(params=[as_destination, as_source])
def reach(request: pytest.FixtureRequest) -> Reach:
    return request.param  # type: ignore[no-any-return]


@pytest.fixture
def guarded(database: Database) -> Iterator[str]:
    """A role of which the server asks a password."""
    role = f"guarded_{uuid.uuid4().hex[:8]}"
    with database.session() as session:
        session.execute("CREATE TABLE t (id int)")
        literal = PASSWORD.replace("'", "''")
        session.execute(f"CREATE ROLE {role} LOGIN PASSWORD '{literal}'")
        session.execute(f"GRANT SELECT, INSERT ON t TO {role}")
        session.execute(f"GRANT TEMPORARY ON DATABASE {session.info.dbname} TO {role}")
    yield role
    database.run(f"DROP OWNED BY {role}")
    database.run(f"DROP ROLE {role}")


def refusal(reach: Reach, *given: Any, **settings: Any) -> str:
    with pytest.raises(lockgate.LockgateError) as caught:
        reach(*given, **settings)
    assert isinstance(caught.value, lockgate.StageError | lockgate.SourceError)
    told = caught.value.render()
    assert "hunter2" not in told + repr(caught.value.__cause__)
    return told


def test_a_user_and_a_password_are_settings_of_their_own(
    place: Path, database: Database, guarded: str, reach: Reach
) -> None:
    reach(place, database, user=guarded, password=PASSWORD)


def test_who_is_refused_and_who_reaches_nobody_get_different_advice(
    place: Path, database: Database, guarded: str, reach: Reach
) -> None:
    told = refusal(reach, place / "1", database, user=guarded, password="hunter2, and wrong")
    assert "the server is up and has refused this connection: correct the user, the password" in told
    told = refusal(reach, place / "2", database, url="postgresql://me@127.0.0.1:1/db", password=PASSWORD)
    assert "nothing answers there: see that the server is up" in told


def test_an_address_that_libpq_cannot_read_is_not_repeated(place: Path, database: Database, reach: Reach) -> None:
    refusal(reach, place, database, url="postgresql://me:hunter2%ZZ@127.0.0.1:1/db")
