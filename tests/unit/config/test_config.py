from __future__ import annotations

from pathlib import Path

import pytest

from lockgate.config import load_project
from lockgate.errors import ConfigError

FULL = """
default_profile = "dev"
[profile.dev]
warehouse = "wh"
log = "postgresql://user:${PGPASSWORD}@host/db"
[profile.dev.spark]
master = "local[3]"
conf = { "spark.sql.shuffle.partitions" = 8, "spark.x" = true }
[profile.dev.variables]
env = "dev"
limit = 7
[profile.dev.connections.pg]
type = "postgres"
url = "postgresql://user:${PGPASSWORD}@host:5432/db"
secret_key = "abc"
[profile.prod]
"""


def test_a_profile_is_read_and_secrets_stay_hidden(tmp_path: Path) -> None:
    (tmp_path / "lockgate.toml").write_text(FULL)
    (tmp_path / "sub").mkdir()
    project = load_project(tmp_path / "sub", environment={"PGPASSWORD": "hunter2"})
    assert project.root == tmp_path
    profile = project.profile
    assert profile.spark.master == "local[3]"
    assert profile.spark.conf == {"spark.sql.shuffle.partitions": "8", "spark.x": "true"}
    assert profile.variables == {"env": "dev", "limit": 7}
    assert profile.connections["pg"].settings["url"] == "postgresql://user:hunter2@host:5432/db"
    assert "hunter2" not in repr(project)
    assert "abc" not in repr(project)
    assert load_project(tmp_path, profile="prod", environment={}).profile.name == "prod"


def test_which_profile_is_the_default(tmp_path: Path) -> None:
    path = tmp_path / "lockgate.toml"
    path.write_text("[profile.only]\n")
    assert load_project(tmp_path).profile.name == "only"
    path.write_text("[profile.a]\n[profile.dev]\n")
    assert load_project(tmp_path).profile.name == "dev"
    path.write_text('default_profile = "a"\n[profile.a]\n[profile.dev]\n')
    assert load_project(tmp_path).profile.name == "a"


def test_no_file_means_defaults(tmp_path: Path) -> None:
    project = load_project(tmp_path)
    assert project.root == tmp_path
    assert (project.profile.tables, project.profile.warehouse) == ("memory", "warehouse")
    with pytest.raises(ConfigError, match="no profile 'x'"):
        load_project(tmp_path, profile="x")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[profile.dev\n", "not valid TOML"),
        ("[profil.dev]\n", "no setting 'profil'"),
        ("[profile.dev]\nmaster = 'x'\n", "no setting 'master'"),
        ("[profile.dev]\nspark = 7\n", "must be a table"),
        ("[profile.dev]\ntables = 'nowhere'\n", "tables must be"),
        ("[profile.dev]\ntables = 'disk'\n", 'must be "memory" or "warehouse"'),
        ("[profile.dev]\nlog = '${NOPE}'\n", r"has no NOPE"),
        ("[profile.dev.connections.pg]\nurl = 'x'\n", "needs a type"),
        ("default_profile = 'prd'\n[profile.prod]\n", "no profile 'prd'"),
    ],
)
def test_a_wrong_file_is_named_with_what_is_wrong(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "lockgate.toml").write_text(text)
    with pytest.raises(ConfigError, match=said) as caught:
        load_project(tmp_path, environment={})
    assert "lockgate.toml" in caught.value.message
    assert caught.value.exit_code == 2
