"""The shape of the code: directions, names and sizes that no other test sees."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from agents.apps import FOLDERS
from agents.names import THINKERS, Role
from assistant.management.commands.workers import NAMES, SWEEPER
from knowledge.identifiers import INGEST_QUEUE

ROOT = Path(__file__).parent.parent
# Each may import those after it, and itself.
PACKAGES = ("assistant", "conversations", "agents", "knowledge", "prompts")
LONGEST_FILE = 450
OF_A_MODEL = ("MODEL", "SECOND_MODEL", "MAX_TOKENS", "TEMPERATURE", "TIMEOUT")
SETTING = re.compile(r"^#?([A-Z][A-Z_]+)=", re.MULTILINE)
DOCUMENTED = re.compile(r"^(?:- |\| )`([A-Z][A-Z_]+)`", re.MULTILINE)


def sources() -> Iterator[Path]:
    """The Python files of the packages; migrations are written by Django."""
    for package in PACKAGES:
        found = (ROOT / package).rglob("*.py")
        yield from (path for path in found if "migrations" not in path.parts)


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """Names of the top-level packages that an import statement reaches."""
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").split(".")[0]]
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    return []


def place(path: Path, node: ast.AST) -> str:
    return f"{path.relative_to(ROOT)}:{getattr(node, 'lineno', 1)}"


def test_imports_run_downwards_only() -> None:
    upwards = [
        f"{place(path, node)} imports {name}"
        for path in sources()
        for node in ast.walk(parsed(path))
        for name in imported(node)
        if name in PACKAGES
        and PACKAGES.index(name) < PACKAGES.index(path.relative_to(ROOT).parts[0])
    ]
    assert upwards == []


def test_nothing_is_imported_inside_a_function() -> None:
    hidden = [
        place(path, node)
        for path in sources()
        for function in ast.walk(parsed(path))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    assert hidden == []


def test_the_names_of_the_roles_import_nothing_of_ours() -> None:
    names = [name for node in ast.walk(parsed(ROOT / "agents/names.py")) for name in imported(node)]
    assert set(names).isdisjoint(PACKAGES)


def test_every_queue_has_a_worker_service_and_every_such_service_a_worker() -> None:
    compose = yaml.safe_load((ROOT / "docker/compose.yaml").read_text(encoding="utf-8"))
    commands = {name: said.get("command", "") for name, said in compose["services"].items()}
    started = {
        name: command.split()[3:]
        for name, command in commands.items()
        if command.startswith("python manage.py workers")
    }
    assert all([name] == words for name, words in started.items())
    assert set(started) == {str(name) for name in NAMES}


def test_every_queue_is_named_after_its_worker() -> None:
    assert {role.queue for role in Role} == {f"agents.{role}" for role in Role}
    assert {name for name in NAMES if name not in set(Role)} == {
        INGEST_QUEUE.split(".")[-1],
        SWEEPER,
    }


def test_every_role_is_declared_in_a_module_of_its_word() -> None:
    modules = [
        ROOT / folder.replace(".", "/") / f"{role}.py"
        for folder, roles in FOLDERS.items()
        for role in roles
    ]
    assert [path for path in modules if not path.is_file()] == []
    # The manager is no agent: it has a table instead of a contract.
    assert {path.stem for path in modules} | {Role.MANAGER} == set(Role)
    assert (ROOT / "agents/manager.py").is_file()


@pytest.mark.parametrize("role", Role)
def test_every_role_is_tested_in_a_file_of_its_word(role: Role) -> None:
    word = "routing" if role is Role.MANAGER else role
    assert list((ROOT / "tests/agents").rglob(f"test_{word}.py"))


def settings_read() -> set[str]:
    """Environment variables by name: those of the settings, of STATE_DIR and of each role."""
    names = {role.concurrency_setting for role in Role}
    names |= {f"{asker.upper()}_{setting}" for asker in THINKERS for setting in OF_A_MODEL}
    for path in sources():
        for node in ast.walk(parsed(path)):
            if isinstance(node, ast.Call) and _reads(node.func) and node.args:
                name = node.args[0]
                if isinstance(name, ast.Constant) and isinstance(name.value, str):
                    names.add(name.value)
    return names


def _reads(function: ast.expr) -> bool:
    """Whether it is `env.<type>` or `os.environ.get`."""
    if not isinstance(function, ast.Attribute):
        return False
    owner = ast.unparse(function.value)
    return (owner == "env" and function.attr not in {"read_env", "seal"}) or (
        owner == "os.environ" and function.attr == "get"
    )


def test_the_example_lists_exactly_the_settings_that_are_read() -> None:
    listed = SETTING.findall((ROOT / ".env.example").read_text(encoding="utf-8"))
    assert sorted(listed) == sorted(settings_read())


def test_the_documentation_explains_exactly_the_settings_that_are_read() -> None:
    explained = DOCUMENTED.findall((ROOT / "docs/settings.md").read_text(encoding="utf-8"))
    assert sorted(explained) == sorted(settings_read())


def broad(handler: ast.ExceptHandler) -> bool:
    """Whether it catches everything and keeps it."""
    kind = handler.type
    kinds = kind.elts if isinstance(kind, ast.Tuple) else [kind]
    caught = {ast.unparse(each) if each else "BaseException" for each in kinds}
    passes_on = isinstance(handler.body[-1], ast.Raise)
    return "Exception" in caught or ("BaseException" in caught and not passes_on)


def test_only_the_steps_catch_every_exception() -> None:
    found = [
        place(path, node).rpartition(":")[0]
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and broad(node)
    ]
    assert found == ["agents/steps/steps.py"]


def test_no_file_is_longer_than_a_reader_can_hold_in_mind() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert [str(path) for path, length in lengths.items() if length > LONGEST_FILE] == []
