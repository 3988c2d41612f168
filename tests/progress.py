"""Progress: of tests that run side by side, a line for every twentieth of them and each failure.

Registered by `manage.py test`; lines come whole, so that they can be read in a log, too.
"""

import time

import pytest

LINES = 20


class Progress:
    """Counts the tests that ended, in the process that distributes them."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.start = time.monotonic()
        self.all = self.ended = self.failed = 0

    def pytest_xdist_node_collection_finished(self, node: object, ids: list[str]) -> None:
        """Learn how many there are: each process has collected all."""
        self.all = len(ids)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Have no letters printed: lines say it."""
        if report.when == "call" and report.passed:
            return "passed", "", ""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), "", ""
        return None

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test once it is cleared away."""
        if report.failed:
            self.failed += 1
            self.say(f"FAILED {report.nodeid} ({report.when})")
        if report.when != "teardown":
            return
        before, self.ended = self.ended, self.ended + 1
        if self.ended * LINES // self.all > before * LINES // self.all:
            self.say(self.so_far())

    def so_far(self) -> str:
        """Return how many have ended, how many failed, and the time since the start."""
        minutes, seconds = divmod(round(time.monotonic() - self.start), 60)
        share = 100 * self.ended // self.all
        return (
            f"{share:3} %  {self.ended:,} of {self.all:,} tests, {self.failed} failed, "
            f"{minutes}:{seconds:02}"
        )

    def say(self, line: str) -> None:
        reporter = self.config.pluginmanager.getplugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(line)
        reporter.flush()  # a file or a pipe would keep it for long


def pytest_configure(config: pytest.Config) -> None:
    """Show it where the tests are distributed, unless each test is shown anyway."""
    if not hasattr(config, "workerinput") and config.get_verbosity() < 1:
        config.pluginmanager.register(Progress(config))
