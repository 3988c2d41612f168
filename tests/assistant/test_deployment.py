"""The files for containers: whether they are in step with the program."""

import os
import re
import shlex
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
import yaml
from django.db import connection

from agents.names import Role
from agents.steps import presence
from assistant.management.commands.workers import NAMES
from tests.conftest import Begin

ROOT = Path(__file__).parent.parent.parent
DOCKER = ROOT / "docker"
# Of the compose specification, what is used here: a misspelt key is ignored by nobody.
KEYS = {
    "build", "cap_drop", "command", "depends_on", "env_file", "environment", "healthcheck",
    "image", "ports", "read_only", "restart", "security_opt", "stop_grace_period", "tmpfs",
    "volumes",
}  # fmt: skip
HEALTH = {"test", "interval", "timeout", "retries", "start_period"}
SERVERS = {"postgres", "redis"}
VARIABLE = re.compile(r"\$\{(\w+)")


def compose() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((DOCKER / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def services() -> dict[str, dict[str, Any]]:
    """The services, those of our own image and the servers."""
    found: dict[str, dict[str, Any]] = compose()["services"]
    return found


def ours() -> dict[str, dict[str, Any]]:
    return {name: said for name, said in services().items() if name not in SERVERS}


def cluster() -> tuple[dict[str, Any], dict[str, Any]]:
    """The deployment and the scaler of the example for a cluster."""
    text = (DOCKER / "kubernetes.yaml").read_text(encoding="utf-8")
    deployment, scaler = yaml.safe_load_all(text)
    return deployment, scaler


def test_services_are_the_workers_the_web_and_what_they_need() -> None:
    assert set(services()) == {*NAMES, "web", "migrate", *SERVERS}


def test_services_have_no_key_that_compose_does_not_know() -> None:
    assert {key for said in services().values() for key in said} <= KEYS
    checks = [said.get("healthcheck", {}) for said in services().values()]
    assert {key for check in checks for key in check} <= HEALTH


def test_every_service_that_stays_has_a_healthcheck() -> None:
    unwatched = {name for name, said in services().items() if "healthcheck" not in said}
    assert unwatched == {"migrate"}


def test_all_of_ours_run_from_one_image_without_rights_they_do_not_need() -> None:
    for said in ours().values():
        assert said["image"] == "docent"
        assert said["read_only"] is True
        assert said["cap_drop"] == ["ALL"]
        assert "user" not in said


def test_the_image_does_not_run_as_root() -> None:
    lines = (DOCKER / "Dockerfile").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("USER ")] == ["USER docent"]


def test_every_command_is_one_that_exists() -> None:
    for said in ours().values():
        python, manage, command, *_ = shlex.split(said["command"])
        assert (python, manage) == ("python", "manage.py")
        assert command in {"workers", "serve", "migrate"}


def test_every_variable_and_every_setting_of_the_file_is_documented() -> None:
    text = (DOCKER / "compose.yaml").read_text(encoding="utf-8")
    documented = (ROOT / "docs/settings.md").read_text(encoding="utf-8")
    used = {name for said in ours().values() for name in said["environment"]}
    for name in used | set(VARIABLE.findall(text)):
        assert f"- `{name}`" in documented


def test_every_volume_that_is_used_is_declared() -> None:
    used = {volume.split(":")[0] for said in services().values() for volume in said["volumes"]}
    assert used == set(compose()["volumes"])


def test_redis_keeps_what_it_was_given_and_throws_nothing_out() -> None:
    words = services()["redis"]["command"].split()
    assert words == ["redis-server", "--appendonly", "yes", "--maxmemory-policy", "noeviction"]


def checks() -> list[str]:
    """The shell commands that look whether a worker hears, of both files."""
    probes = cluster()[0]["spec"]["template"]["spec"]["containers"][0]
    return [
        *{services()[name]["healthcheck"]["test"][1] for name in NAMES},
        *(probes[probe]["exec"]["command"][2] for probe in ("startupProbe", "livenessProbe")),
    ]


@pytest.mark.parametrize("age", [0, 60])
def test_the_healthcheck_of_a_worker_holds_as_long_as_it_hears(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, age: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    presence.announce([Role.SEARCH.queue])
    os.utime(presence.heartbeat_file(Role.SEARCH.queue), (time.time() - age,) * 2)
    for check in checks():
        assert "find /tmp " in check
        command = check.replace("find /tmp ", f"find {tmp_path} ")
        assert (subprocess.run(["sh", "-c", command]).returncode == 0) == (age == 0)


def test_the_example_for_a_cluster_is_about_one_role_throughout() -> None:
    deployment, scaler = cluster()
    pod = deployment["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    *start, role = container["command"]
    assert start == ["python", "manage.py", "workers"]
    assert role in set(Role)
    assert deployment["spec"]["selector"]["matchLabels"] == pod["metadata"]["labels"]
    assert pod["metadata"]["labels"]["role"] == role
    name = deployment["metadata"]["name"]
    assert scaler["spec"]["scaleTargetRef"] == {"name": name}
    assert name == f"docent-{role}"


def test_the_scaler_aims_at_as_many_steps_as_one_worker_does_at_once() -> None:
    deployment, scaler = cluster()
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    given = {each["name"]: each["value"] for each in container["env"]}
    role = Role(container["command"][-1])
    (trigger,) = scaler["spec"]["triggers"]
    assert trigger["metadata"]["targetQueryValue"] == given[role.concurrency_setting]
    assert scaler["spec"]["minReplicaCount"] >= 1


def test_the_scaler_counts_the_steps_of_its_role_that_wait_or_are_under_way(begin: Begin) -> None:
    _, scaler = cluster()
    (trigger,) = scaler["spec"]["triggers"]
    with connection.cursor() as cursor:
        cursor.execute(trigger["metadata"]["query"])
        assert cursor.fetchone() == (0,)
        for _ in range(3):
            begin().steps.update(role=Role.RESPONSE)
        begin().steps.update(role=Role.SEARCH)
        begin().steps.update(role=Role.RESPONSE, status="done")
        cursor.execute(trigger["metadata"]["query"])
        assert cursor.fetchone() == (3,)
