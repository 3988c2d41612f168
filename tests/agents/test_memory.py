"""Memory: what leaves the history stays in the summary."""

from agents.contract import REGISTRY
from agents.names import Role

LEAVING = [
    {"role": "user", "text": "How do I descale the kettle?", "time": "2026-11-20T10:00:00+00:00"},
    {"role": "assistant", "text": "Boil vinegar in it.", "time": "2026-11-20T10:00:05+00:00"},
]


def test_every_message_that_leaves_is_in_the_summary_beside_what_was_there() -> None:
    wrote = REGISTRY[Role.MEMORY]({"summary": "[2026-11-19] The user: Hello", "leaving": LEAVING})
    update = wrote["summary_update"]
    assert update["summary"].splitlines() == [
        "[2026-11-19] The user: Hello",
        "[2026-11-20] The user: How do I descale the kettle?",
        "[2026-11-20] The assistant: Boil vinegar in it.",
    ]
    assert update["until"] == LEAVING[-1]["time"]
