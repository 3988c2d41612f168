"""Citations: markers however a model writes them, and what is taken out of an answer."""

from typing import Any

import pytest

from agents.attributes import SourceReference
from agents.documentation.augmentation import assemble
from agents.documentation.citations import nearness
from agents.documentation.citations.check import check
from agents.documentation.citations.links import Addresses, harmless
from agents.documentation.citations.statements import (
    known_only,
    markers,
    normalised,
    pieces,
    whole,
    without,
)
from agents.documentation.passages import without_own_list, without_written_list
from agents.documentation.refusal import refusal
from knowledge.errors import EmbeddingUnavailable
from tests.agents.passages import PASSAGES


def references(passages: list[dict[str, Any]] = PASSAGES) -> list[SourceReference]:
    writes = assemble({"canonical_question": "?", "search_results": passages})
    return [SourceReference.model_validate(each) for each in writes["source_references"]]


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("a [C1][C2].", "a [C1][C2]."),
        ("a [C1, C2].", "a [C1][C2]."),
        ("a [C1,2; C3]", "a [C1][C2][C3]"),
        ("a (C1)", "a [C1]"),
        ("a [c 1]", "a [C1]"),
        ("a [^C1]", "a [C1]"),
        ("a [[C1]](#c1)", "a [C1]"),
        ("\u4e00\u3010C1\u3011\u3002", "\u4e00[C1]\u3002"),
        ("a [C1 and C2]", "a [C1][C2]"),
        ("`[C1, C2]`", "`[C1, C2]`"),
        ("```\nx (C1)\n```", "```\nx (C1)\n```"),
        ("vitamin C1 and [Care]", "vitamin C1 and [Care]"),
    ],
)
def test_markers_are_understood_however_they_are_written(written: str, meant: str) -> None:
    assert normalised(written) == meant


def test_markers_nobody_gave_disappear_with_the_space_before_them() -> None:
    assert known_only("a [C1][C9]. b [C8].", {"C1"}) == "a [C1]. b."


ANSWER = (
    "# Descaling\n\nIt is needed often. [C1] Do it e.g. in May [C2]. Then rest.\n\n"
    "To do it [C1]:\n\n1. Fill the tank with descaler [C1]\n2. Press the Clean button [C1]\n\n"
    "```bash\nrun --now\n```\n[C1]\n\n| part | life |\n|---|---|\n| filter | a year [C2] |\n"
)


def test_the_pieces_of_an_answer_are_the_answer() -> None:
    assert "".join(piece.text for piece in pieces(ANSWER)) == ANSWER
    assert without(pieces(ANSWER), []) == ANSWER


def test_a_marker_right_below_a_table_is_set_apart_from_its_rows() -> None:
    table = "| part | life |\n|---|---|\n| filter | a year |\n"
    assert without(pieces(f"{table}[C2]\n"), []) == f"{table}\n[C2]\n"
    assert without(pieces(f"{table}\n[C2]\n"), []) == f"{table}\n[C2]\n"


def test_each_statement_keeps_its_own_markers() -> None:
    said = {piece.statement: piece.markers for piece in pieces(ANSWER) if piece.kind}
    assert said["It is needed often."] == ["C1"]
    assert said["Do it e.g. in May."] == ["C2"]
    assert said["Then rest."] == []
    assert said["Press the Clean button"] == ["C1"]
    assert said["run --now"] == ["C1"]
    assert said["filter | a year"] == ["C2"]


def test_what_led_only_to_what_was_taken_out_goes_too() -> None:
    parts = pieces("Keep it clean [C1].\n\n## Steps\n\nDo this:\n\n1. Wash it in the sea [C1]\n")
    assert without(parts, [each for each in parts if "sea" in each.text]) == "Keep it clean [C1]."


def test_a_cut_answer_keeps_whole_sentences_only() -> None:
    assert whole("One is whole [C1]. The other is n") == "One is whole [C1]."
    assert whole("- One item [C1]\n- Ano") == "- One item [C1]"
    assert whole("It is whole [C1].") == "It is whole [C1]."
    assert whole("It is not") == ""


def test_statements_that_name_what_no_passage_has_are_taken_out() -> None:
    checked = check(
        "Descaling takes about twenty minutes [C1]. Polish the lid with 25 g of beeswax [C1]. "
        "The warranty covers defects for two years [C2][C7].",
        references(),
    )
    assert checked.text == (
        "Descaling takes about twenty minutes [C1]. The warranty covers defects for two years [C2]."
    )
    assert checked.removed == ["Polish the lid with 25 g of beeswax."]
    assert checked.unknown == ["C7"]
    assert [each.marker for each in checked.citations] == ["C1", "C2"]


def test_a_marker_that_adds_nothing_is_taken_out_alone() -> None:
    checked = check("The warranty covers defects for two years [C2][C3].", references())
    assert checked.text == "The warranty covers defects for two years [C2]."
    assert [each.marker for each in checked.citations] == ["C2"]


def test_two_passages_may_support_a_statement_together() -> None:
    said = "The grinder has five settings and the warranty covers defects for two years [C2][C3]."
    checked = check(said, references())
    assert {each.marker for each in checked.citations} == {"C2", "C3"}
    assert checked.text == said


def test_code_belongs_to_the_sentence_that_leads_to_it() -> None:
    code = PASSAGES[0] | {"text": "To export, run:\n\n```\nexport --all\n```\n"}
    checked = check("To export, run [C1]:\n\n```\nexport --all\n```", references([code]))
    assert [each.quote for each in checked.citations] == ["To export, run:", "export --all"]
    invented = check("To export, run [C1]:\n\n```\nrm --force disk9\n```", references([code]))
    assert "rm --force" not in invented.text


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ("Rinse the tank twice [C1]. For example:\n\n```\nrm --force disk9\n```\n\n"
         "The guarantee covers defects for two years [C2].",
         "Rinse the tank twice [C1].\n\nThe guarantee covers defects for two years [C2]."),
        ("To begin, run [C1]:\n\n```\nrm --force disk9\n```\n\nRinse the tank twice [C1].",
         "Rinse the tank twice [C1]."),
        ("Do this:\n- Press disk9 [C1]\n- Rinse the tank twice [C1]",
         "Do this:\n- Rinse the tank twice [C1]"),
        ("Note: press disk9 [C1]. Rinse the tank twice [C1].", "Rinse the tank twice [C1]."),
    ],
)  # fmt: skip
def test_what_announced_only_what_was_taken_out_goes_with_it(said: str, left: str) -> None:
    checked = check(said, references())
    assert checked.text == left
    assert all(each.quote in checked.text.replace(" [C1]", "").replace(" [C2]", "")
               for each in checked.citations)  # fmt: skip


def test_a_statement_without_a_marker_gets_that_of_the_passage_that_has_it() -> None:
    checked = check(
        "The warranty covers defects for two years. Descaling takes about twenty minutes [C1].",
        references(),
    )
    assert checked.text.startswith("The warranty covers defects for two years [C2]. Descaling")
    assert [each.marker for each in checked.citations] == ["C2", "C1"]
    assert (checked.uncited, checked.confidence) == ([], 1)


@pytest.mark.parametrize(
    ("said", "marked"),
    [
        ("Defects are covered by the warranty for two years.", "C2"),
        ("The grinder can be set in five ways, and a finer setting gives stronger coffee.", "C3"),
        ("Every three months the machine has to be descaled.", "C1"),
    ],
)
def test_what_is_said_in_other_words_gets_the_marker_of_its_passage(said: str, marked: str) -> None:
    checked = check(said, references())
    assert checked.text == f"{said.rstrip('.')} [{marked}]."
    assert [each.citation_status for each in checked.citations] == ["weak"]
    assert checked.uncited == []


@pytest.mark.parametrize("wrong", ["[C1]", "[C3]", "[C1][C3]"])
def test_the_marker_of_another_passage_is_put_right(wrong: str) -> None:
    exact = check(f"The warranty covers defects for two years {wrong}.", references())
    assert exact.text == "The warranty covers defects for two years [C2]."
    reworded = check(f"Defects are covered by the warranty for two years {wrong}.", references())
    assert reworded.text == "Defects are covered by the warranty for two years [C2]."


@pytest.mark.parametrize(
    "said",
    [
        "Coffee was first grown in the highlands of Ethiopia.",
        "Wholesale orders leave the store on weekdays before noon.",
    ],
)
def test_what_no_passage_is_near_to_stays_without_a_marker(said: str) -> None:
    checked = check(f"Descaling takes about twenty minutes [C1]. {said}", references())
    assert {each.quote for each in checked.citations} == {"Descaling takes about twenty minutes."}


def test_without_the_embedding_model_words_alone_say_where_it_is_from(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def unavailable(texts: list[str]) -> None:
        raise EmbeddingUnavailable("no model")

    monkeypatch.setattr(nearness, "encode", unavailable)
    checked = check("Defects are covered by the warranty for two years.", references())
    assert [each.marker for each in checked.citations] == ["C2"]


@pytest.mark.parametrize(
    ("written", "marked"),
    [
        ("- Rinse the tank twice", "- Rinse the tank twice [C1]"),
        ("| rinse | the tank twice |", "| rinse | the tank twice [C1] |"),
        ("Rinse the tank twice!", "Rinse the tank twice [C1]!"),
    ],
)
def test_a_marker_is_put_where_it_belongs(written: str, marked: str) -> None:
    assert check(written, references()).text == marked


QUESTION = "How long is the warranty?"


def test_a_sentence_beside_the_question_counts_nothing_and_alone_is_no_answer() -> None:
    aside = "Fill the tank with descaler and water [C1]."
    answer = "The warranty covers defects for two years [C2]."
    mixed = check(f"{answer} {aside}", references(), QUESTION)
    assert mixed.off_topic == ["Fill the tank with descaler and water."]
    assert mixed.confidence == 0.5
    alone = check(aside, references(), QUESTION)
    assert (alone.text, alone.citations) == ("", [])
    assert alone.removed == ["Fill the tank with descaler and water."]


def test_what_stands_beside_an_answer_in_one_passage_and_few_words_are_on_topic() -> None:
    receipt = "Keep the receipt, because the service asks for it [C2]."
    together = f"The warranty covers defects for two years [C2]. {receipt}"
    assert check(together, references(), QUESTION).off_topic == []
    assert check("Two years [C2].", references(), QUESTION).citations


COPIED = [
    f"The room at place {number} of the house holds the {name} of the family until the spring."
    for number, name in enumerate([f"{a}{b}" for a in "klmnrst" for b in ("adder", "ender")] * 5)
]


@pytest.mark.parametrize(("form", "kept"), [("{}", 19), ("- {}", 36)])
def test_what_is_copied_without_end_is_kept_to_the_length_of_a_quotation(
    form: str, kept: int
) -> None:
    rooms = references([PASSAGES[0] | {"text": "\n\n".join(COPIED)}])
    own = "Everything that the family keeps in the house has a room of its own [C1]."
    checked = check("\n".join([f"{own}\n", *map(form.format, COPIED)]), rooms)
    assert checked.text.startswith(own)
    assert [each.quote for each in checked.citations[1:]] == COPIED[:kept]
    assert (checked.removed, COPIED[kept] in checked.text) == ([], False)


def test_another_language_is_a_translation_only_when_it_was_asked_for() -> None:
    said = "Jeden Abend soll man alles gut putzen und danach trocknen lassen [C1]."
    german = check(said, references(), language="de")
    assert [each.citation_status for each in german.citations] == ["weak"]
    assert check(said, references(), language="fr").citations == []


INVENTED = (
    "The machine also costs 49 euros and was built by the Smith brothers.",
    "Call our hotline at 555-1234 for a refund.",
    "It has been loved by the people of Cornwall.",
)


@pytest.mark.parametrize("said", INVENTED)
def test_a_statement_without_a_marker_that_names_what_is_nowhere_is_taken_out(said: str) -> None:
    checked = check(f"Descaling takes about twenty minutes [C1]. {said}", references())
    assert checked.text == "Descaling takes about twenty minutes [C1]."
    assert checked.removed == [said]


def test_what_leads_to_a_list_keeps_no_number_that_nobody_gave() -> None:
    checked = check("Call 555-1234 and then:\n\n- Rinse the tank twice [C1]", references())
    assert "555" not in checked.text
    assert checked.text.endswith("- Rinse the tank twice [C1]")


def test_a_question_is_no_statement_of_a_passage_unless_it_stands_there() -> None:
    checked = check("How do I descale the machine? [C1]", references())
    assert (checked.text, checked.citations) == ("", [])
    passage = [PASSAGES[0] | {"text": "How do I descale the machine? Press Clean."}]
    (citation,) = check("How do I descale the machine? [C1]", references(passage)).citations
    assert citation.citation_status == "verified"


def test_a_statement_is_in_the_language_of_the_answer_or_of_its_passage() -> None:
    german = "F\u00fcllen Sie dann Entkalker in den Tank der Maschine [C1]."
    assert check(german, references(), language="en").citations == []
    (citation,) = check(german, references(), language="de").citations
    assert citation.citation_status == "weak"


def test_what_claims_nothing_stays() -> None:
    said = "Gladly!\n\nDescaling takes about twenty minutes [C1].\n\nHope this helps."
    assert check(said, references()).text == said


def test_what_is_only_worded_differently_stays_and_is_weak() -> None:
    said = "Every three months the machine has to be descaled [C1]. Do not polish the lid [C1]."
    checked = check(said, references())
    assert checked.text == said
    assert [each.citation_status for each in checked.citations] == ["weak", "weak"]
    assert (checked.removed, checked.confidence) == ([], 0.75)


def test_a_marker_of_another_passage_than_has_a_number_does_not_take_the_statement_out() -> None:
    checked = check("It takes five settings of the grinder [C1].", references())
    assert [each.citation_status for each in checked.citations] == ["weak"]


def test_what_is_missing_may_name_numbers_of_the_question_only() -> None:
    said = "Descaling takes about twenty minutes [C1]. The documents do not say what {} cost."
    question = "How long does it take, and what do 12 filters cost?"
    assert "12 filters" in check(said.format("12 filters"), references(), question).text
    assert "0900-77" not in check(said.format("calls to 0900-77"), references(), question).text


def test_in_another_language_a_statement_without_a_marker_stays_and_counts_against_it() -> None:
    checked = check(
        "Das Entkalken dauert etwa zwanzig Minuten [C1]. "
        "Danach braucht die Maschine frisches Wasser.",
        references(),
    )
    assert checked.uncited == ["Danach braucht die Maschine frisches Wasser."]
    assert checked.confidence == 0.375


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("![chart](https://evil.example/?q=secret) ok", "chart ok"),
        ("![](https://docs.example/a.png) ok", " ok"),
        ("[here](https://evil.example/x)", "here"),
        ("[here](//evil.example/x)", "here"),
        ("[here](javascript:alert(1))", "here"),
        ("[![a](https://evil.example/p)](https://evil.example)", "a"),
        ("go to https://evil.example/x.", "go to ."),
        ("go to www.evil.example now", "go to  now"),
        ("<img src=x onerror=y> hi", " hi"),
        ("<https://evil.example/x> hi", " hi"),
        ("[a][b]\n\n[b]: https://evil.example", "[a][b]\n\n"),
        ("[q](https://docs.example/team?q=secret)", "q"),
        ("[q](https://docs.example@evil.example/team)", "q"),
        ("[q](https://docs.example/plans)", "q"),
        ("[q](https://docs.example/)", "[q](https://docs.example/)"),
        ("[q](https://docs.example/team?tab=1)", "[q](https://docs.example/team?tab=1)"),
        ("`curl https://evil.example`", "`curl https://evil.example`"),
        ("a < b > c [C1]", "a < b > c [C1]"),
        ("[one [two [three](x)](y)](https:evil.example)", "one two three"),
        ("see htt<b a=1>ps://evil.example/s", "see https:"),
    ],
)
def test_only_addresses_of_the_passages_stay(written: str, shown: str) -> None:
    addresses = Addresses(["See https://docs.example/team?tab=1, please."])
    assert harmless(written, addresses) == shown


@pytest.mark.parametrize(
    "listed",
    [
        "Sources:\n- Care, Descaling\n- Warranty",
        "**Quellen**\n\n1. Whatever [C1]",
        "\u6765\u6e90\uff1a\n- Care",
    ],
)
def test_a_list_of_sources_as_docent_heads_it_is_taken_off(listed: str) -> None:
    assert without_own_list(f"It is so [C1].\n\n{listed}") == "It is so [C1]."


@pytest.mark.parametrize(
    "listed",
    [
        "## References\n[C1] Care",
        "Source: Care [C1]",
        "**Fonti**\n- Care > Descaling [C1]\n- handbook/care.md",
        "Bronnen:\n1. Care\n2. Care [C2]",
        "\u0179r\u00f3d\u0142a:\n\n* [C1] handbook/care.md",
        "\u0421\u0441\u044b\u043b\u043a\u0438:\n- Care",
        "\u53c2\u8003\u8d44\u6599\uff1a\n- Care",
    ],
)
def test_a_list_that_names_the_references_is_taken_off_whatever_heads_it(listed: str) -> None:
    answer = f"It is so [C1].\n\n{listed}"
    assert without_written_list(answer, references()) == "It is so [C1]."


@pytest.mark.parametrize(
    "answer",
    [
        "Two guides tell how to care for it:\n- Care",
        "Do this [C1]:\n\nSteps:\n- Open the lid\n- Care for the filter",
        "Guides:\n- Care",
        "It is so [C1].\n\nCare",
    ],
)
def test_a_list_that_says_something_stays(answer: str) -> None:
    assert without_written_list(answer, references()) == answer


def test_a_sentence_about_sources_is_no_list() -> None:
    answer = "Sources:\n\nThey are set on the page Traffic [C1]."
    assert without_own_list(answer) == answer


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("INSUFFICIENT: the price", "insufficient_context"),
        ("**INSUFFICIENT:** the price", "insufficient_context"),
        ("Insufficient: the price.", "insufficient_context"),
        ("DETAIL NEEDED: the price", "missing_details"),
        ("INSUFFICIENT - the price", "insufficient_context"),
    ],
)
def test_the_line_that_declines_is_understood(line: str, reason: str) -> None:
    refused = refusal(line)
    assert refused
    assert refused.reason == reason
    assert refused.missing.strip("- ") == "the price"


def test_an_ordinary_sentence_does_not_decline() -> None:
    assert refusal("Insufficient permissions cause this error [C1].") is None
    assert markers("Insufficient [C1]") == ["C1"]
