"""The embedded servers, for real: started once, shared, stopped with their last user, data kept."""

import os
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import psycopg
import pytest
import redis

from assistant.errors import SetupError
from assistant.local import paths, servers, shared_servers
from tests.assistant.conftest import eventually, is_anything_left, is_taken

Starter = Callable[[], subprocess.Popen[str]]


def query(statement: str) -> list[tuple[object, ...]]:
    with psycopg.connect(shared_servers.postgres_url(), autocommit=True) as connection:
        cursor = connection.execute(statement)
        return cursor.fetchall() if cursor.description else []


def pid_of(name: str, state: Path) -> int:
    return int((state / f"{name}.pid").read_text())


def keeper_of(state: Path) -> int:
    status = Path(f"/proc/{pid_of('postgres', state)}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def program(folder: Path, name: str, script: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def test_the_servers_answer_at_the_addresses_given(state: Path) -> None:
    shared_servers.join(durable=False)
    query("CREATE EXTENSION vector")
    assert query("SELECT '[3,4]'::vector <-> '[0,0]', current_database()") == [(5.0, "docent")]
    assert query("SELECT datcollate, datlocale, pg_encoding_to_char(encoding) FROM pg_database "
                 "WHERE datname = 'docent'") == [("C", "C.UTF-8", "UTF8")]  # fmt: skip
    with redis.Redis.from_url(shared_servers.redis_url()) as client:
        assert client.ping()


def test_processes_share_the_servers_and_the_last_to_leave_stops_them(
    state: Path, another_process: Starter
) -> None:
    first = another_process()
    postgres, keeper = pid_of("postgres", state), keeper_of(state)
    second = another_process()
    assert (pid_of("postgres", state), keeper_of(state)) == (postgres, keeper)
    first.communicate("")
    shared_servers.join(durable=False)
    shared_servers.leave(wait=True)
    assert servers.is_ready("postgres", state)
    assert servers.is_ready("redis", state)
    second.communicate("")
    eventually(lambda: not is_anything_left(state))
    assert not paths.socket_folder(state).exists()


def test_a_killed_user_leaves_no_process(state: Path, another_process: Starter) -> None:
    user = another_process()
    postgres, keeper = pid_of("postgres", state), keeper_of(state)
    user.kill()
    eventually(lambda: not is_anything_left(state))
    eventually(lambda: not any(map(is_alive, (postgres, keeper))))


def test_who_waits_while_the_keeper_removes_a_scratch_folder_is_done(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared_servers.join(durable=False)
    # As if it went between two looks: whoever waits has found the keeper alive just before.
    monkeypatch.setattr("time.sleep", lambda _: shutil.rmtree(state, ignore_errors=True))
    shared_servers.leave(wait=True)
    monkeypatch.undo()
    state.mkdir()


def test_a_killed_keeper_takes_its_servers_along_and_the_next_join_starts_anew(
    state: Path, another_process: Starter
) -> None:
    another_process()
    query("CREATE TABLE kept AS SELECT 1")
    os.kill(keeper_of(state), signal.SIGKILL)
    eventually(lambda: not is_anything_left(state))
    shared_servers.join(durable=False)
    assert query("SELECT * FROM kept") == [(1,)]


def test_joining_right_after_the_keeper_was_killed_waits_for_its_servers_to_end(
    state: Path, another_process: Starter
) -> None:
    another_process()
    query("CREATE TABLE kept AS SELECT 1")
    os.kill(keeper_of(state), signal.SIGKILL)
    # Only its death can be noticed, not the signal that is on its way.
    eventually(lambda: not is_taken(state / "keeper.lock"))
    shared_servers.join(durable=False)
    assert query("SELECT * FROM kept") == [(1,)]


@pytest.mark.parametrize("name", ["postgres", "redis"])
def test_a_server_that_dies_is_started_again(state: Path, name: str) -> None:
    shared_servers.join(durable=False)
    dead = pid_of(name, state)
    os.kill(dead, signal.SIGKILL)
    eventually(lambda: pid_of(name, state) != dead and servers.is_ready(name, state))


def test_data_outlives_the_servers(state: Path) -> None:
    shared_servers.join()
    query("CREATE TABLE kept AS SELECT 42")
    with redis.Redis.from_url(shared_servers.redis_url()) as client:
        client.set("kept", "42")
    shared_servers.leave(wait=True)
    assert not is_anything_left(state)
    shared_servers.join()
    assert query("SELECT * FROM kept") == [(42,)]
    with redis.Redis.from_url(shared_servers.redis_url()) as client:
        assert client.get("kept") == b"42"


def test_a_pid_file_naming_a_living_process_hinders_nothing(state: Path) -> None:
    shared_servers.join(durable=False)
    shared_servers.leave(wait=True)
    (state / "postgres" / "postmaster.pid").write_text(f"{os.getpid()}\n{state}/postgres\n")
    shared_servers.join(durable=False)
    assert query("SELECT 1") == [(1,)]


def test_only_the_server_that_is_not_configured_is_started(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/docent")
    shared_servers.join(durable=False)
    assert servers.is_ready("redis", state)
    assert not (state / "postgres").exists()


def test_nothing_is_started_when_both_are_configured(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://elsewhere/docent")
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    shared_servers.join(durable=False)
    assert list(state.iterdir()) == []


def test_sockets_of_a_deep_state_folder_are_in_a_short_private_one(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = state / ("d" * 60) / ("e" * 60)
    deep.mkdir(parents=True)
    for folder in (deep, deep.parent):
        folder.chmod(0o711)
    monkeypatch.setenv("STATE_DIR", str(deep))
    shared_servers.join(durable=False)
    sockets = paths.socket_folder(deep)
    assert len(f"{sockets}/.s.PGSQL.5432") < 104
    assert stat.S_IMODE(sockets.stat().st_mode) == 0o700
    assert query("SELECT 1") == [(1,)]
    shared_servers.leave(wait=True)
    assert not sockets.exists()


def test_a_socket_folder_that_somebody_else_made_is_refused(state: Path) -> None:
    paths.socket_folder(state).symlink_to("/")
    with pytest.raises(SetupError, match="belongs to somebody else"):
        shared_servers.join(durable=False)


def test_nobody_else_can_read_the_data(state: Path) -> None:
    shared_servers.join(durable=False)
    for name in ("postgres", "redis", "run"):
        assert stat.S_IMODE((state / name).stat().st_mode) == 0o700
    assert (state / "postgres").stat().st_uid != 0


def test_a_disk_that_is_too_full_is_told_before_anything_is_written(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda _: SimpleNamespace(free=45 * 1024**2))
    with pytest.raises(SetupError, match=r"room for 45 MB only .* set STATE_DIR"):
        shared_servers.join()
    assert not (state / "postgres").exists()


def test_data_of_another_postgresql_is_left_alone(state: Path) -> None:
    (state / "postgres").mkdir(mode=0o700)
    (state / "postgres" / "PG_VERSION").write_text("17\n")
    user = servers.owner(state / "postgres")
    os.chown(state / "postgres", user.uid, user.gid)
    with pytest.raises(SetupError, match="PostgreSQL 17's, and Docent comes with 18"):
        shared_servers.join(durable=False)


def test_a_server_that_cannot_start_is_reported_with_the_end_of_its_log(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fails = (
        'case "$1" in --version) echo "Redis server v=7.2.4";; *) echo out of luck; exit 3;; esac'
    )
    program(tmp_path, "redis-server", fails)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    with pytest.raises(SetupError, match=r"(?s)redis ended with status 3.*out of luck"):
        shared_servers.join(durable=False)
    eventually(lambda: not is_anything_left(state))


def test_a_redis_that_is_too_old_is_passed_over_for_a_valkey(
    state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(tmp_path, "redis-server", 'echo "Redis server v=6.0.16 sha=00000000:0"')
    program(tmp_path, "valkey-server", 'echo "Valkey server v=8.1.1 sha=00000000:0"')
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    servers.prepare("redis", state, durable=True)
    assert str(tmp_path / "valkey-server") in (state / "redis.json").read_text()
    assert (state / "redis" / "valkey-8").is_dir()


def test_a_state_folder_of_somebody_else_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("STATE_DIR", str(tmp_path / "file"))
    with pytest.raises(SetupError, match="STATE_DIR"):
        paths.state_folder()


def test_scratch_servers_leave_neither_files_nor_variables(
    state: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", "redis://elsewhere")
    with shared_servers.scratch() as folder:
        assert folder != state
        assert os.environ["DATABASE_URL"] == shared_servers.postgres_url()
        assert query("SHOW fsync") == [("off",)]
        with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
            assert client.ping()
    assert not folder.exists()
    assert os.environ["STATE_DIR"] == str(state)
    assert "DATABASE_URL" not in os.environ
    assert os.environ["REDIS_URL"] == "redis://elsewhere"


def test_a_scratch_folder_goes_even_if_its_process_is_killed(
    state: Path, another_process: Starter
) -> None:
    (state / "scratch").touch()
    another_process().kill()
    eventually(lambda: not state.exists())
    state.mkdir()
