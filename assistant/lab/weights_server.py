"""Weights server: a model of one's own behind OpenAI's chat API, to measure Docent with.

`python3 -m assistant.lab.weights_server MODEL.gguf` serves a GGUF file until it is interrupted;
several files are parts, and are joined in the order given. Run by a Python that has `xllamacpp`,
a build of llama.cpp, which Docent neither needs nor installs; it needs nothing of Docent.
"""

import argparse
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory

MAGIC = b"GGUF"
# Room for Docent's requests and the reply, in each slot.
CONTEXT = 16_384
CACHE = 8192  # MiB, as llama.cpp has it
STOPPING = {signal.SIGINT, signal.SIGTERM}
MISSING = (
    "The package xllamacpp is missing. Docent does not need it: install it into an environment of "
    "its own with `pip install xllamacpp`, and run this file with the Python of that."
)
READY = """Ready: {name} on {address}
(slots: {slots}, of {context:,} tokens each; threads: {threads}).
Settings for Docent, e.g. in .env:

LOCAL_BASE_URL={address}/v1
RESPONSE_MODEL={name}@local

Interrupt to stop."""


class NoWeights(Exception):
    """What was given is no GGUF file."""


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Return what the command line says."""
    parser = argparse.ArgumentParser(
        prog="python3 -m assistant.lab.weights_server",
        description="Serve a GGUF file over OpenAI's chat API.",
    )
    parser.add_argument(
        "parts", nargs="+", type=Path, metavar="FILE", help="the file, or its parts in order"
    )
    parser.add_argument("--name", default="", help="what the model is called (the file's name)")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument(
        "--slots", type=int, default=1, help="requests at a time; each keeps its own prefix"
    )
    parser.add_argument(
        "--cache-ram", type=int, default=CACHE, help="MiB for prefixes that left their slot; 0: off"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--context", type=int, default=CONTEXT, help="tokens of each slot")
    return parser.parse_args(given)


def whole(parts: Sequence[Path], folder: Path) -> Path:
    """Return the one file, or in `folder` the parts joined. Raises NoWeights with a sentence."""
    if missing := [str(part) for part in parts if not part.is_file()]:
        raise NoWeights(f"There is no file {', '.join(missing)}.")
    with parts[0].open("rb") as first:
        if first.read(len(MAGIC)) != MAGIC:
            raise NoWeights(f"{parts[0]} is no GGUF file, nor the first part of one.")
    if len(parts) == 1:
        return parts[0]
    joined = folder / f"{name_of(parts)}.gguf"
    with joined.open("wb") as file:
        for part in parts:
            with part.open("rb") as opened:
                shutil.copyfileobj(opened, file)
    return joined


def name_of(parts: Sequence[Path]) -> str:
    """Return what a model is called after its first file."""
    return parts[0].name.partition(".")[0].lower()


def serve(path: Path, name: str, options: argparse.Namespace) -> None:
    """Serve the file until SIGINT or SIGTERM. Raises ImportError without xllamacpp."""
    llama = import_module("xllamacpp")
    # Blocked before there are threads, so that none of them takes the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
    params = llama.CommonParams()
    params.model.path = str(path)
    params.model_alias = {name}
    params.port = options.port
    params.n_parallel = options.slots
    params.cache_ram_mib = options.cache_ram
    params.n_ctx = options.context * options.slots
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = options.threads
    # Returns when the weights are loaded, and serves in threads of its own.
    server = llama.Server(params)
    print(  # noqa: T201 what whoever started it is told
        READY.format(
            name=name,
            address=server.listening_address,
            slots=options.slots,
            context=options.context,
            threads=options.threads,
        ),
        flush=True,
    )
    signal.sigwait(STOPPING)


def main() -> None:
    """Serve what the command line names."""
    options = arguments()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="weights-")))
        try:
            path = whole(options.parts, folder)
            serve(path, options.name or name_of(options.parts), options)
        except NoWeights as error:
            sys.exit(str(error))
        except ImportError as error:
            if error.name != "xllamacpp":
                raise
            sys.exit(MISSING)


if __name__ == "__main__":
    main()
