"""Bombs: PDFs that unpack to more than files may, told before anything reads it.

Deflate packs a thousand to one, and twice that to a million: a file of a kilobyte may hold more
than there is memory. Pictures are left out, of which a scanned book rightly holds gigabytes, and
which nothing here unpacks.
"""

import re
import zlib

from knowledge.errors import Unreadable
from knowledge.parsing.parsed_page import Limits

STREAM = re.compile(rb"(?<!end)stream\r?\n")
END = b"endstream"
PICTURE = re.compile(rb"/Subtype\s*/Image\b")
DICTIONARY = 4096  # bytes before a stream that may say what it is
NESTED = 8  # times that a stream may be packed
BLOCK = 1024 * 1024


def refuse_endless(body: bytes, limits: Limits) -> None:
    """Raise Unreadable when what is no picture unpacks to more than files may."""
    left = limits.max_expanded_bytes
    for stream in STREAM.finditer(body):
        end = body.find(END, stream.end())
        if end < 0:
            return
        before = body[max(stream.start() - DICTIONARY, 0) : stream.start()]
        if PICTURE.search(before, before.rfind(b" obj") + 1):
            continue
        left -= unpacked_size(body[stream.end() : end], left)
        if left < 0:
            raise Unreadable(
                f"unpacked it is larger than {limits.max_expanded_bytes:,} bytes "
                "(PARSE_MAX_EXPANDED_BYTES)"
            )


def unpacked_size(packed: bytes, most: int) -> int:
    """Return how many bytes come of it, also of what was packed again; little above `most`."""
    size = 0
    for _ in range(NESTED):
        if not is_packed(packed) or size > most:
            break
        unpacker, content = zlib.decompressobj(), bytearray()
        try:
            while packed and size <= most:
                block = unpacker.decompress(packed, BLOCK)
                packed = unpacker.unconsumed_tail
                size += len(block)
                # The first of it tells whether it is packed again, and what is so is small.
                content += block if is_packed(content or block) else b""
        except zlib.error:
            break
        packed = bytes(content)
    return size


def is_packed(content: bytes | bytearray) -> bool:
    """Tell whether it begins as what deflate has packed does (RFC 1950)."""
    return len(content) > 1 and content[0] & 15 == 8 and (content[0] << 8 | content[1]) % 31 == 0
