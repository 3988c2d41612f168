"""Norms: what texts prescribe and define, by the wordings of their languages."""

import re
import tomllib

import pytest

from knowledge import norms as module
from knowledge.norms import definitions, languages, norms

SENTENCES = {
    "en": ("The tenant shall not sublet the flat.", "The tenant must insure it.", "She may leave."),
    "de": (
        "Der Mieter darf die Wohnung nicht untervermieten.",
        "Der Mieter hat die Miete bis zum dritten Werktag zu zahlen.",
        "Der Mieter ist berechtigt, die Miete zu mindern.",
    ),
    "es": ("El cliente no podrá ceder el contrato.", "El cliente deberá pagar.", "Podrá cancelar."),
    "fr": (
        "Le locataire ne doit pas sous-louer.",
        "Le locataire est tenu de payer le loyer.",
        "Le locataire a le droit de partir.",
    ),
    "it": ("Il cliente non può cedere.", "Il cliente deve pagare.", "Il cliente può recedere."),
    "pt": ("O cliente não poderá ceder.", "O cliente deve pagar.", "O cliente pode sair."),
    "nl": (
        "De huurder mag de woning niet onderverhuren.",
        "De huurder moet de huur betalen.",
        "De huurder heeft het recht op te zeggen.",
    ),
    "pl": ("Najemca nie może podnająć.", "Najemca musi płacić.", "Najemca ma prawo odejść."),
    "cs": ("Nájemce nesmí byt podnajmout.", "Nájemce je povinen platit.", "Nájemce může odejít."),
    "ru": ("Арендатор не вправе сдавать.", "Арендатор обязан платить.", "Арендатор может уйти."),
    "zh": ("承租人不得转租该房屋。", "承租人应当按时支付租金。", "承租人有权解除合同。"),
}
DEFINED = {
    "en": "\u201cFlat\u201d means the rooms on the first floor.",
    "de": "\u201eWohnung\u201c bezeichnet die Räume im ersten Stock.",
    "fr": "«\u00a0Logement\u00a0» désigne les pièces du premier étage.",
    "cs": "\u201eBytem\u201c se rozumí místnosti v prvním patře.",
    "zh": "\u201c房屋\u201d是指一楼的房间。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_what_is_forbidden_required_and_allowed_is_told_by_its_wording(language: str) -> None:
    found = norms("\n\n".join(SENTENCES[language]), f"{language}-xx")
    assert [each.kind for each in found] == ["prohibition", "duty", "permission"]
    assert [each.text for each in found] == [*SENTENCES[language]]


def test_there_are_sentences_for_every_language_with_wordings() -> None:
    assert languages() == sorted(SENTENCES)


@pytest.mark.parametrize(
    "text",
    [
        "The flat has three rooms.",
        "Must the tenant insure it?",
        "\u201cFlat\u201d shall mean the rooms.",
        "```\nyou must not read this\n```",
        "Maybe in May.",
        "The editor will open the page.",
        "The Recipient will be entitled to damages.",
        "The company will suffer harm.",
        "The supplier will",
    ],
)
def test_what_prescribes_nothing_is_left_out(text: str) -> None:
    assert norms(text, "en") == []


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("The Recipient will keep it secret.", "duty"),
        ("Upon request, the receiving party will promptly return all copies.", "duty"),
        ("The Parties each will bear their costs.", "duty"),
        ("[Company] will disclose what it invents.", "duty"),
        ("Contractor(s) will report it.", "duty"),
        ("You will be responsible for it.", "duty"),
        ("The Recipient will not sell it.", "prohibition"),
        ("Neither party nor its agents will disclose it.", "prohibition"),
    ],
)
def test_what_a_party_says_that_it_will_do_it_has_to_do(text: str, kind: str) -> None:
    assert [each.kind for each in norms(text, "en")] == [kind]


def test_numbers_of_clauses_are_no_part_of_what_they_say() -> None:
    found = norms("2.1 The tenant must pay.\n\n(b) She shall heat.\n\n- c) He must go.", "en")
    assert [each.text for each in found] == [
        "The tenant must pay.",
        "She shall heat.",
        "He must go.",
    ]


def test_a_list_below_a_duty_belongs_to_it() -> None:
    text = "The tenant undertakes:\n\n- to pay the rent;\n- to heat the rooms.\n\nRooms are white."
    found = norms(text, "en")
    assert [each.text for each in found][1:] == ["to pay the rent;", "to heat the rooms."]
    assert {each.wording for each in found} == {"undertakes"}


@pytest.mark.parametrize("language", DEFINED)
def test_a_term_is_defined_by_quotation_marks_and_a_wording(language: str) -> None:
    (found,) = definitions(DEFINED[language], language)
    assert found.text == DEFINED[language]
    assert found.term in DEFINED[language]
    assert norms(DEFINED[language], language) == []


def test_a_term_in_parentheses_is_defined_in_any_language() -> None:
    (found,) = definitions("Ann Lee, Bergen (heretter \u00abutleier\u00bb) leier ut.", "nb")
    assert found.term == "utleier"
    assert definitions("It is called \u201cgreen\u201d here.", "en") == []


def test_every_wording_is_a_word_of_its_language_once() -> None:
    with module.WORDINGS.open("rb") as file:
        for language, kinds in tomllib.load(file).items():
            for kind, wordings in kinds.items():
                assert len(set(wordings)) == len(wordings), (language, kind)
                assert not [each for each in wordings if re.search(r"^\s|\s$|…$|^…", each)]
