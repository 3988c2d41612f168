"""Evaluation of parsing: how near to what was expected, and what was refused."""

from pathlib import Path

from assistant.lab.parsing_quality import Row, compare, means


def test_files_are_compared_with_what_was_expected_of_them(tmp_path: Path) -> None:
    for folder in ("html/sources", "html/groundtruth", "md/sources"):
        (tmp_path / folder).mkdir(parents=True)
    table = "<table><tr><th>A<th>B</tr><tr><td>1<td>2</tr></table>"
    (tmp_path / "html/sources/same.html").write_text(f"<h1>Lamps</h1>{table}")
    (tmp_path / "html/groundtruth/same.html.md").write_text("# Lamps\n\n|A|B|\n|-|-|\n|1|2|\n")
    (tmp_path / "html/sources/half.html").write_text("<h2>Oil</h2>one two three")
    (tmp_path / "html/groundtruth/half.md").write_text("# Lamps\n\n# Oil\n\none two four")
    (tmp_path / "html/sources/empty.html").write_text("")
    (tmp_path / "md/sources/alone.md").write_text("Words.")

    empty, half, same, alone = compare(tmp_path)

    assert empty == Row("html", "empty.html", refused="it is empty")
    assert (half.headings, half.headings_found, half.headings_more) == (2, 1, 0)
    assert half.f1 == 2 * 3 / (4 + 5)
    assert (same.f1, same.ratio, same.headings_found) == (1.0, 1.0, 1)
    assert (alone.refused, alone.f1) == ("", None)
    (mean,) = means([empty, half, same, alone])
    assert (mean.format, mean.name, mean.headings) == ("html", "2 files", 3)


def test_the_formats_of_one_document_are_compared_with_its_markdown(tmp_path: Path) -> None:
    for folder in ("html", "markdown", "json"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "index.html").write_text("Not one document in several formats.")
    (tmp_path / "index.md").write_text("Another.")
    (tmp_path / "alone.md").write_text("Words.")
    (tmp_path / "html/manual.html").write_text("<h1>Lamps</h1><h2>Oil</h2>one two three")
    (tmp_path / "markdown/manual.md").write_text("---\ntitle: L\n---\nLamps\n=====\none two four")
    (tmp_path / "json/manual.json").write_text("{")
    (tmp_path / "ships.html").write_text("<h1>Ships</h1>sail")
    (tmp_path / "ships.txt").write_text("Ships sail")

    html, broken, ships = compare(tmp_path)

    assert (html.format, html.name) == ("html", "manual.html")
    assert html.f1 == 2 * 3 / (5 + 4)
    assert (html.headings, html.headings_found, html.headings_more) == (1, 1, 1)
    assert broken.refused.startswith("broken JSON")
    assert (ships.format, ships.ratio, ships.headings, ships.headings_found) == ("txt", 1.0, 1, 0)
