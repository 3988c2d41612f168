"""Wire: frames over a pipe, each preceded by its length (8 bytes, big-endian)."""

from typing import IO

LENGTH = 8


def send(pipe: IO[bytes], body: bytes) -> None:
    """Write one frame. Raises BrokenPipeError when nobody reads any more."""
    pipe.write(len(body).to_bytes(LENGTH, "big"))
    pipe.write(body)
    pipe.flush()


def receive(pipe: IO[bytes], most: int) -> bytes | None:
    """Return the next frame; None when the other side is gone.

    Raises ValueError for a frame of more than `most` bytes, before any of them is read.
    """
    header = pipe.read(LENGTH)
    length = int.from_bytes(header, "big")
    if len(header) == LENGTH and length > most:
        raise ValueError(length)
    body = pipe.read(length) if len(header) == LENGTH else b""
    return body if len(header) == LENGTH and len(body) == length else None
