"""The shape of the code: directions, names and sizes that no other test sees."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml

from agents.apps import FOLDERS
from agents.names import MODEL_ASKERS, Role
from assistant.lab import house
from assistant.management.commands.workers import NAMES, SWEEPER
from knowledge.identifiers import INGEST_QUEUE

ROOT = Path(__file__).parent.parent
# Each may import those after it, and itself.
PACKAGES = ("assistant", "conversations", "agents", "knowledge", "prompts")
LONGEST_FILE = 450
OF_A_MODEL = ("MODEL", "SECOND_MODEL", "MAX_TOKENS", "TEMPERATURE", "TIMEOUT")
BY_STRING = frozenset({"import_module", "import_string", "importlib", "import_from_string"})
# Why a module is imported by its name, at run time.
BY_NAME = {
    "agents/apps.py": "models exist only once Django is ready; roles are found by their word",
    "agents/llm/retry.py": "MODEL_TRANSPORT: `openai` takes a second of CPU that few commands need",
    "agents/steps/preload.py": "MODEL_TRANSPORT, before the first question",
    "agents/steps/sweeper.py": "TRACES: packages that are installed where a collector is set",
    "assistant/apps.py": "Celery is set up once the settings are read; Sentry is not always there",
    "assistant/lab/weights_server.py": "llama.cpp, which Docent neither needs nor installs",
    "agents/billing/business_days.py": "the library takes .17 s, and few processes need it",
    "agents/billing/system.py": "BILLING_SYSTEM: a class of whoever runs Docent",
    "conversations/mcp_http.py": "MCP_SERVER: the library takes a second and 20 MB",
    "conversations/apps.py": "models exist only once Django is ready",
    "knowledge/embedding/local.py": "EMBEDDING_RUNTIME: the runtime takes memory that few need",
    "knowledge/embedding/registry.py": "EMBEDDING_ENDPOINT: `openai`, where a model is asked",
    "knowledge/sandbox/child.py": "a process loads the libraries of what it is asked for",
    "knowledge/parsing/dispatch.py": "a process that parses loads the libraries of its formats",
}
# Why a module of a few lines is one.
TINY = {
    "agents/errors.py": "the errors of an app",
    "assistant/celery.py": "Celery looks for it",
    "assistant/errors.py": "the errors of an app, needed before anything is installed",
    "agents/billing/business_days.py": "a library that few processes need",
    "knowledge/folder_lock.py": "what two that make files for all need",
    "knowledge/identifiers.py": "needed by the settings, before there are models",
    "knowledge/postgres_text.py": "what both agents and knowledge store has to be",
    "knowledge/tasks.py": "Celery looks for it",
}
# Why what one module needs for one name is a module of its own.
LONELY = {
    "agents.analysis.compliance": "a role",
    "agents.admin": "Django looks for it",
    "agents.billing.rest": "a system of billing that a setting names",
    "agents.documentation.streaming": "what may be shown while a model writes",
    "agents.intake.router": "a role",
    "agents.lent_worker": "what a command needs that finds no worker",
    "agents.llm.draft": "a text on its way, as the agent that shows it has a stream",
    "agents.llm.fragments": "a judgement with figures of its own",
    "agents.management.commands.trace": "a command",
    "assistant.appearance": "what the settings of the admin are made of",
    "assistant.celery": "Celery looks for it",
    "assistant.connections": "a protocol with limits of its own",
    "assistant.needs": "what waits for somebody, from all of Docent",
    "assistant.lab.nginx": "another server and its configuration",
    "assistant.lab.retrieval_chart": "the picture of a measurement",
    "conversations.case_messages": "a receiver of what becomes of cases",
    "conversations.example_questions": "what can be asked, read from the documents",
    "conversations.expiry": "what is forgotten by age, by a thread of its own",
    "conversations.mcp_server": "a setting names the rest of it",
    "conversations.notifications": "what is told to other servers, by a process of its own",
    "conversations.staff_groups": "the groups of staff, which a migration makes",
    "conversations.conversation_events": "the events of a conversation over HTTP",
    "conversations.terminal_talk": "a conversation in the terminal, which a command begins",
    "conversations.user_api": "users over HTTP",
    "conversations.assistant_admin": "Django looks for admin.py, which holds another concept",
    "knowledge.admin.document_orders": "what changes documents, beside what shows them",
    "knowledge.admin.golden_admin": "the page of one kind of row, which Django is told of",
    "knowledge.admin.graph_picture": "a picture and its measures",
    "knowledge.graph_rules": "what is read without a model",
    "knowledge.archive.export": "one of the two directions of an archive",
    "knowledge.embedding.e5": "a process, and what measures it",
    "knowledge.embedding.minilm": "a process, and what measures it",
    "knowledge.embedding.unigram": "an algorithm of its own",
    "knowledge.embedding.kept_vectors": "files that processes share",
    "knowledge.admin.source_admin": "what is followed, in the admin",
    "knowledge.parsing.dispatch": "imported by name; a message hands it what is attached",
    "knowledge.parsing.html": "a format; the chapters of a book are such pages",
    "knowledge.parsing.pdf.bombs": "what is told before a library reads a file",
    "knowledge.search.explainer": "what is said to who asks why",
}
SETTING = re.compile(r"^#?([A-Z][A-Z_]+)=", re.MULTILINE)
DOCUMENTED = re.compile(r"^(?:- |\| )`([A-Z][A-Z_]+)`", re.MULTILINE)


def sources() -> Iterator[Path]:
    """The Python files of the packages; migrations are written by Django."""
    for package in PACKAGES:
        found = (ROOT / package).rglob("*.py")
        yield from (path for path in found if "migrations" not in path.parts)


@cache
def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def imported(node: ast.AST) -> list[str]:
    """Names of the top-level packages that an import statement reaches."""
    if isinstance(node, ast.ImportFrom):
        return [(node.module or "").split(".")[0]]
    if isinstance(node, ast.Import):
        return [alias.name.split(".")[0] for alias in node.names]
    return []


def names_imported(node: ast.AST) -> list[str]:
    """The dotted names of what an import statement reaches."""
    if isinstance(node, ast.ImportFrom):
        return [f"{node.module}.{alias.name}" for alias in node.names]
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
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


def test_nothing_below_imports_what_measures() -> None:
    lab = [
        place(path, node)
        for path in sources()
        for node in ast.walk(parsed(path))
        if any(name.startswith("assistant.lab") for name in names_imported(node))
        if "lab" not in path.parts and not house.is_command(path)
    ]
    assert lab == []


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


def test_modules_are_imported_by_name_only_where_a_reason_is_given() -> None:
    by_name = {
        str(path.relative_to(ROOT))
        for path in sources()
        for node in ast.walk(parsed(path))
        if not BY_STRING.isdisjoint(name.rpartition(".")[2] for name in names_imported(node))
        or (isinstance(node, ast.Name) and node.id == "__import__")
    }
    assert by_name == set(BY_NAME)


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
    names |= {f"{asker.upper()}_{setting}" for asker in MODEL_ASKERS for setting in OF_A_MODEL}
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


def test_only_the_steps_and_the_threads_of_tools_catch_every_exception() -> None:
    found = [
        place(path, node).rpartition(":")[0]
        for path in sources()
        for node in ast.walk(parsed(path))
        if isinstance(node, ast.ExceptHandler) and broad(node)
    ]
    assert sorted(found) == ["agents/steps/steps.py", "agents/tools/flight.py"]


def test_no_file_is_longer_than_a_reader_can_hold_in_mind() -> None:
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    assert [str(path) for path, length in lengths.items() if length > LONGEST_FILE] == []


def test_no_module_is_tiny_but_those_that_must_be_modules() -> None:
    tiny = {
        str(path.relative_to(ROOT))
        for path in sources()
        if path.stem not in {*house.OF_DJANGO, *Role}
        and len(path.read_text(encoding="utf-8").splitlines()) < house.TINY
    }
    assert tiny == set(TINY)


def test_no_two_modules_have_one_name() -> None:
    assert house.repeated(house.modules(ROOT)) == []


def test_modules_are_named_by_nouns_of_the_field() -> None:
    modules = house.modules(ROOT)
    assert house.gerunds(modules) == []
    named = {path.stem for path in modules} | {path.parent.name for path in modules}
    assert named >= house.GERUNDS_OF_THE_FIELD


def test_no_part_of_a_turn_has_more_helpers_than_roles() -> None:
    crowded = {
        folder: sorted(helpers)
        for folder, roles in FOLDERS.items()
        if len(helpers := {path.stem for path in modules_in(folder)} - {*roles, "__init__"})
        > len(roles)
    }
    assert crowded == {}


def modules_in(folder: str) -> Iterator[Path]:
    """The modules and packages of a folder of roles; some packages are concepts of their own."""
    root = ROOT / folder.replace(".", "/")
    yield from (path for path in root.iterdir() if path.suffix == ".py")
    packages = (path for path in root.iterdir() if (path / "__init__.py").is_file())
    yield from (path for path in packages if path.name not in {"citations", "dialogue"})


def test_a_module_that_one_other_needs_for_one_name_has_a_reason() -> None:
    users: dict[str, set[tuple[str, str]]] = {}
    for path in sources():
        for module, name in uses(path):
            users.setdefault(module, set()).add((str(path), name))
    lonely = {
        module
        for module, by in users.items()
        if len({path for path, _ in by}) == 1 and len({name for _, name in by}) == 1
    }
    assert lonely == set(LONELY)


def uses(path: Path) -> Iterator[tuple[str, str]]:
    """Modules of ours that a file imports, each with a name it uses of it; packages left out."""
    tree = parsed(path)
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.module:
            continue
        for alias in node.names:
            if is_module(f"{node.module}.{alias.name}"):
                for name in attributes(tree, alias.asname or alias.name):
                    yield f"{node.module}.{alias.name}", name
            elif is_module(node.module):
                yield node.module, alias.name


def is_module(name: str) -> bool:
    return (
        name.split(".")[0] in PACKAGES
        and (ROOT / name.replace(".", "/")).with_suffix(".py").is_file()
    )


def attributes(tree: ast.Module, name: str) -> set[str]:
    """The attributes that a file reads of the module it imported under a name."""
    return {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == name
    }
