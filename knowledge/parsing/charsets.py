"""Charsets: the encoding that a page or its server says it is in, as a codec of Python."""

import codecs
import re

from bs4.dammit import EncodingDetector

# A page says so near its beginning, as it would be too late further down.
HEAD = 4096
# What stands for something wider in practice: the windows code page for the standard it extends
# (https://encoding.spec.whatwg.org/#names-and-labels), by the codec's name.
WIDER = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "shift_jis": "cp932",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "big5": "big5hkscs",
    "euc_kr": "cp949",
    "iso2022_jp": "iso2022_jp_ext",
}
WIDTH = re.compile(r"utf-(?:16|32)")


def declared(html: bytes) -> str:
    """Return what a page's XML declaration or meta element says; nothing when they don't."""
    head = html[:HEAD]
    return EncodingDetector.find_declared_encoding(head, True, True) or ""


def codec(label: str) -> str:
    """Return the codec for a label; nothing when Python has none.

    What calls itself UTF-16 where it was read byte by byte is UTF-8, as in browsers.
    """
    name = label.strip().lower()
    for each in (name, simpler(name)):
        try:
            b"\0\0\0\0".decode(each)
        except (LookupError, ValueError):
            continue
        found = codecs.lookup(each).name
        return "utf-8" if WIDTH.match(found) else WIDER.get(found, found)
    return ""


def simpler(label: str) -> str:
    """Return a label without what browsers know and Python does not."""
    label = re.sub(r"^x-|-[ei]$", "", label)
    return re.sub(r"^(?:windows|dos)-", "cp", label).replace("cp31j", "cp932")
