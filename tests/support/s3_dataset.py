"""A dataset on S3 for the suite of the engines: a folder that is brought up before each merge and down after it, so
that what the suite asks of files and rows is asked of what is in the bucket."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import lockgate
from contracts.engine.dataset import Dataset
from lockgate import MergeResult
from support.s3_server import Bucket


@dataclass(frozen=True)
class S3Dataset(Dataset):
    bucket: Bucket | None = None

    def merge(self, source: Any, strategy: str = "upsert", key: Any = "id", **options: Any) -> MergeResult:
        self._up()
        try:
            result = lockgate.merge(
                self.prepared(source) if self.prepared else source,
                "s3://lake/dataset",
                strategy=strategy,
                key_columns=key,
                **{**self.implementation, **options},
            )
        finally:
            self._down()
        return self._as_here(result)

    def _as_here(self, result: MergeResult) -> MergeResult:
        """With the names that the files have in the folder."""

        def here(path: str) -> str:
            return path.replace("s3://lake/dataset", str(self.root))

        lists = ("rewritten_files", "inserted_files", "preserved_files", "removed_files")
        return replace(
            result,
            files=[replace(f, path=here(f.path)) for f in result.files],
            **{name: [here(path) for path in getattr(result, name)] for name in lists},
        )

    def _there(self) -> dict[str, str]:
        assert self.bucket is not None
        return {key.removeprefix("dataset/"): key for key in self.bucket.keys("dataset/")}

    def _up(self) -> None:
        assert self.bucket is not None
        there = self._there()
        here = {str(p.relative_to(self.root)): p for p in self.root.rglob("*") if p.is_file()}
        for name, path in here.items():
            if name not in there or self.bucket.read(there[name]) != path.read_bytes():
                self.bucket.put(f"dataset/{name}", path.read_bytes())

    def _down(self) -> None:
        assert self.bucket is not None
        there = self._there()
        for path in [p for p in self.root.rglob("*") if p.is_file()]:
            if str(path.relative_to(self.root)) not in there:
                path.unlink()
        for name, key in there.items():
            path = self.root / name
            if name.startswith("."):
                continue
            data = self.bucket.read(key)
            if not path.exists() or path.read_bytes() != data:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
