"""Enrichment: what a document's own words say about it."""

from knowledge import enrichment
from knowledge.parsing import Page

PAGE = """The ferry sails at night. Passengers sleep in cabins on the upper deck.

## Cabins

Every cabin has a window and two beds. `code` is not a sentence worth much.

## Bicycles

Bicycles travel free of charge on the ferry.
"""


def test_keywords_are_few_words_of_the_right_length_title_first() -> None:
    words = enrichment.keywords("Ferry cabins", PAGE * 20, about="night trips")
    assert len(words) <= 12
    assert {"ferry", "cabins"} == set(words[:2])
    assert all(3 <= len(word) <= 23 for word in words)
    assert not {"the", "and", "has"} & set(words)


def test_keywords_of_a_chunk_occur_in_it() -> None:
    keywords = enrichment.keywords("Ferry", PAGE)
    places = {word: place for place, word in enumerate(keywords)}
    found = enrichment.chunk_keywords("Bicycles travel free.", ["Bicycles"], places)
    assert found[0] == "bicycles"
    assert "cabins" not in found


def test_summary_key_points_and_description_are_sentences_of_the_document() -> None:
    keywords = enrichment.keywords("Ferry", PAGE)
    assert "Passengers sleep in cabins on the upper deck." in enrichment.summary(PAGE, keywords)
    assert enrichment.keypoints(PAGE) == [
        "Every cabin has a window and two beds.",
        "Bicycles travel free of charge on the ferry.",
    ]
    assert enrichment.description(PAGE) == "The ferry sails at night."


CODED = """Intro words.

```sh
# fetch the package list first
apt-get update
```

## Use it

```sh
# start it
ferry
```

Then it runs.

    # indented

Docks
-----

They are wide.

## Closed
"""


def test_comments_in_code_are_no_headings_and_code_is_no_key_point() -> None:
    assert enrichment.headings(CODED) == ["Use it", "Docks", "Closed"]
    assert enrichment.keypoints(CODED) == ["Then it runs.", "They are wide."]
    assert "fetch" not in enrichment.keywords("", CODED)[:4]
    assert enrichment.description(f"```\n# no\n```\n\n{PAGE}") == "The ferry sails at night."


def test_empty_text_yields_nothing_and_no_error() -> None:
    assert enrichment.keywords("", "") == []
    assert enrichment.summary("", []) == ""
    assert enrichment.keypoints("") == []
    assert enrichment.description("") == ""


def test_what_a_page_says_about_itself_is_kept() -> None:
    said = Page(
        PAGE,
        title="Ferry",
        language="fr",
        description="About ferries.",
        summary="Ferries sail.",
        keypoints=["They sail."],
        keywords=["boats"],
    )
    found = enrichment.by_rules(said)
    assert (found.language, found.description, found.summary) == (
        "fr",
        "About ferries.",
        "Ferries sail.",
    )
    assert (found.keypoints, found.keywords[0]) == (["They sail."], "boats")


def test_what_a_page_leaves_out_is_found_in_its_text() -> None:
    found = enrichment.by_rules(Page(PAGE, title="Ferry"))
    assert (found.language, found.description) == ("en", "The ferry sails at night.")
    assert len(found.keywords) == len(set(found.keywords)) <= 12
    assert found.summary
    assert found.keypoints
