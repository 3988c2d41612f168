"""Scheduling: which tests one process takes whole, as they share a Docent or what was read."""

from pathlib import PurePosixPath

from xdist.scheduler import LoadScopeScheduling

E2E = "tests/e2e/"
# The Docent that the tests of a file ask; what begins first takes longest.
DOCENTS = {
    "test_answers": "rules",
    "test_crashes": "rules",
    "test_ingest_crashes": "rules",
    "test_generated_clients": "rules",
    "test_mcp_clients": "rules",
    "test_openai_clients": "rules",
    "test_refusals": "rules",
    "test_analysis": "thinker",
    "test_asker_crashes": "thinker",
    "test_billing": "thinker",
    "test_crash_matrix": "thinker",
    "test_fairness": "thinker",
    "test_forgotten_words": "thinker",
    "test_handover_crashes": "thinker",
    "test_scenarios": "thinker",
    "test_chaos": "their own",
    "test_strict_server": "their own",
}

# Every test of it reads all files of the project; what one process has parsed serves all.
PARSED_ONCE = "tests/test_architecture.py"


class Scheduling(LoadScopeScheduling):  # type: ignore[misc]
    """Hands out the tests of a Docent together, largest groups first, and all others one by one."""

    def _split_scope(self, nodeid: str) -> str:
        return group(nodeid)


def group(nodeid: str) -> str:
    """Return the name that tests have in common which one process takes."""
    path = nodeid.partition("::")[0]
    if path.startswith(E2E):
        return DOCENTS[PurePosixPath(path).stem]
    return path if path == PARSED_ONCE else nodeid
