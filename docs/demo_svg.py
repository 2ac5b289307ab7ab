"""Draws docs/demo.svg from a real run of examples/shop. Needs a minute: .venv/bin/python docs/demo_svg.py"""

from __future__ import annotations

import fcntl
import io
import os
import pty
import re
import shlex
import shutil
import struct
import sys
import tempfile
import termios
from pathlib import Path

from rich.console import Console
from rich.text import Text

WIDTH = 106
ROOT = Path(__file__).resolve().parent.parent
COMMANDS = (
    "lockgate check pipeline.sql",
    "lockgate run pipeline.sql --var batch=day1",
    "cat out/daily.csv",
    "lockgate run pipeline.sql --var batch=broken",
)


def in_terminal(command: str, folder: Path) -> tuple[str, int]:
    """What a terminal shows once the command has ended, and its exit code."""
    child, screen = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.environ |= {"TERM": "xterm-256color", "COLUMNS": str(WIDTH), "HOME": str(folder.parent)}
        os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        words = shlex.split(command)
        os.execvp(words[0], words)
    fcntl.ioctl(screen, termios.TIOCSWINSZ, struct.pack("HHHH", 60, WIDTH, 0, 0))
    written = b""
    while True:
        try:
            block = os.read(screen, 65536)
        except OSError:  # how Linux says that the other side is closed
            break
        if not block:
            break
        written += block
    _, status = os.waitpid(child, 0)
    return settled(written.decode()), os.waitstatus_to_exitcode(status)


def settled(written: str) -> str:
    """The text that stays when the moving lines of progress have erased themselves."""
    lines: list[str] = []
    for line in written.replace("\r\n", "\n").split("\n"):
        if "\x1b[1A" in line and lines:
            lines.pop()
        lines.append(re.sub(r"\x1b\[\?25[hl]|\r", "", line.rsplit("\x1b[2K", 1)[-1]))
    return "\n".join(lines).rstrip("\n")


def main() -> None:
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True, highlight=False)
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home).resolve() / "shop"
        shutil.copytree(ROOT / "examples" / "shop", folder)
        for command in COMMANDS:
            shown, code = in_terminal(command, folder)
            console.print(Text.assemble(("$ ", "dim"), (command, "bold")))
            console.print(Text.from_ansi(shown.replace(str(folder), "~/shop")))
        console.print(Text.assemble(("$ ", "dim"), ("echo $?", "bold")))
        console.print(str(code))
    svg = console.export_svg(title="lockgate", unique_id="demo")
    svg = re.sub(r"\s*@font-face \{.*?\}\n", "\n", svg, flags=re.DOTALL)  # nothing is fetched from elsewhere
    svg = svg.replace("Fira Code, monospace", "Menlo, Consolas, DejaVu Sans Mono, monospace")
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (ROOT / "docs" / "demo.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
