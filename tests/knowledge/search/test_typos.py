"""Typos: what is searched for instead of words that no document has, and what is left alone."""

import pytest

from agents.documentation.search import find
from knowledge import ingestion
from knowledge.search import search
from knowledge.search.scope import scope_of
from knowledge.search.typos import corrected, corrections, slips_of
from tests.conftest import Make

pytestmark = pytest.mark.django_db

PAGES = {
    "machines.md": "# Machines\n\nA machine runs apps. A running machine can be reached by ssh.\n",
    "secrets.md": "# Secrets\n\nSet secrets before you deploy. Remove a secret to forget it.\n",
    "compile.md": "# Compile\n\nIt compiles the app, then compiles the assets.\n",
    "images.md": "# Images\n\nDangling images go. Remove one as root.\n",
    "networks.md": "# Networks\n\nDangling networks stay until root removes them.\n",
    "volumes.md": "# Volumes\n\nDangling volumes stay, too.\n",
}


@pytest.fixture(autouse=True, scope="module")
def pages(for_all: Make, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder = tmp_path_factory.mktemp("pages")
    for name, text in PAGES.items():
        (folder / name).write_text(text, encoding="utf-8")
    for_all(lambda: ingestion.ingest(ingestion.find([folder]), collection="fly"))


def found(text: str) -> dict[str, str]:
    return corrections(text, scope_of(["fly"]))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("hwo do i ssh into a runing machne", {"runing": "running", "machne": "machine"}),
        ("how do I remove a secert", {"secert": "secret"}),
        ("Machne", {"machne": "machine"}),
        ("how do I depoly the app?", {"depoly": "deploy"}),
        ("how do I start the Machne?", {"machne": "machine"}),
    ],
)
def test_a_slip_is_put_right(text: str, expected: dict[str, str]) -> None:
    assert found(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "how do I remove a secret",
        "does it check whether it complies",  # one swap from "compiles", and a word of its own
        "how do I set MACHNE",  # shouted: a name or a code
        "can I bring it over from Recret",  # a name, and nobody misses the first letter of one
        "what is machne_id",
        "open https://machne.example/machne",
        "`machne`",
        "machne2",
        "is a secret mangled before I deploy",  # "dangled" has a stem that is there
        "can I run it rootless",  # and "rootness" that of "root"
        "teh app and hte app",  # a slip of a function word is no subject
        "wie entferne ich ein geheimnis wieder",
        "",
    ],
)
def test_what_is_no_slip_stays(text: str) -> None:
    assert found(text) == {}


def test_only_the_words_themselves_are_replaced() -> None:
    text = "A Machne, machne-id and machne.example: machne"
    assert corrected(text, {"machne": "machine"}) == (
        "A machine, machne-id and machne.example: machine"
    )


def test_every_slip_is_one_edit_away_and_a_swap_is_worth_more_than_another_letter() -> None:
    slips = slips_of("hwo")
    assert {"how", "ho", "who", "hwoa"} <= {*slips, "hwoa"}
    assert "hwo" not in slips
    assert all(abs(len(other) - 3) <= 1 for other in slips)
    assert slips_of("machnie")["machine"] > slips_of("machina")["machine"]


def test_search_finds_it_and_says_so() -> None:
    result = search("hwo do i ssh into a runing machne", collections=["fly"])
    assert result.passages[0].title == "Machines"
    assert result.stats["corrected"] == {"runing": "running", "machne": "machine"}
    assert search("how do I remove a secret", collections=["fly"]).stats["corrected"] == {}


def test_the_turn_goes_on_with_the_words_that_were_meant() -> None:
    writes = find({"canonical_question": "ssh into a machne", "collections": ["fly"]})
    assert writes["canonical_question"] == "ssh into a machine"
    assert "canonical_question" not in find({"canonical_question": "ssh", "collections": ["fly"]})
