"""Trains the layer by which the guardrails judge.

`python3 -m assistant.lab.guardrails_fit FOLDER [JSONL…]` reads the public sets of
`guardrails_sets` below the folder and `guardrails_texts.jsonl`, which a language model wrote, adds
orders to a language model that are composed from `guardrails_orders.toml`, puts orders beside other
texts, and writes `agents/intake/guardrails.npz`. What shares eight words in a row with a text of
the JSONL files is left out: they measure. The same sets give the same weights. Takes a quarter of
an hour and 5 GB.
"""

import json
import os
import random
import re
import sys
import tomllib
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

import django
import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from assistant.lab.guardrails_sets import ABUSE, KINDS, SAFE, Text, read
from assistant.lab.softmax_regression import save
from assistant.lab.token_regression import fit, samples
from knowledge.embedding import token_states
from knowledge.sentences import split_message
from knowledge.trained_layers import TokenLayer

LAYER = Path(__file__).parents[2] / "agents" / "intake" / "guardrails.npz"
WRITTEN = Path(__file__).with_name("guardrails_texts.jsonl")
WRITTEN_WEIGHT = 3.0
SEED = 20
# Orders that are composed, by language; English is what most documents and attacks are in.
COMPOSED = {"en": 6000}
COMPOSED_ELSEWHERE = 400
# Of the orders so many stand beside something safe as well, as they do inside a longer text.
BESIDE = 0.35
LONGEST_ORDER, LONGEST_BESIDE = 250, 600  # characters
# So many safe texts stand beside each other, and so many parts of longer ones by themselves.
SAFE_PAIRS, SAFE_PARTS = 4000, 12_000
# What the texts of each kind weigh together, however many they are.
SHARES = dict(zip(KINDS, (0.6, 0.12, 0.22, 0.06), strict=True))
AT_ONCE = 512
SLOT = re.compile(r"\{(\w+)\}")
IN_A_ROW = 8


def composed() -> list[Text]:
    """Return orders of every language."""
    with (Path(__file__).parent / "guardrails_orders.toml").open("rb") as file:
        languages = tomllib.load(file)
    chance = random.Random(SEED)  # noqa: S311 nothing secret
    orders = (
        _order(phrases, chance)
        for language, phrases in languages.items()
        for _ in range(COMPOSED.get(language, COMPOSED_ELSEWHERE))
    )
    return [Text(order, ABUSE, 0.3) for order in dict.fromkeys(orders)]


def combined(texts: Sequence[Text]) -> Iterator[Text]:
    """Yield orders beside safe texts, safe texts beside each other, and parts of longer ones."""
    chance = random.Random(SEED)  # noqa: S311 nothing secret
    safe = [each for each in texts if each.kind == SAFE and len(each.text) < LONGEST_BESIDE]
    for each in texts:
        is_order = each.kind == ABUSE and len(each.text) < LONGEST_ORDER
        if is_order and chance.random() < BESIDE:
            pieces = split_message(chance.choice(safe).text)
            pieces.insert(chance.randint(0, len(pieces)), each.text)
            yield each._replace(text=chance.choice((" ", "\n")).join(pieces))
    for _ in range(SAFE_PAIRS if safe else 0):
        yield Text(" ".join(each.text for each in chance.choices(safe, k=2)), SAFE)
    split = ((each, split_message(each.text)) for each in texts if each.kind == SAFE)
    parts = [each._replace(text=part) for each, found in split if len(found) > 1 for part in found]
    yield from chance.sample(parts, min(SAFE_PARTS, len(parts)))


def _order(parts: dict[str, list[str]], chance: random.Random) -> str:
    pattern = chance.choice(parts["patterns"])
    text = " ".join(SLOT.sub(lambda slot: chance.choice(parts[slot[1]]), pattern).split())
    # Whoever types one writes it in any case, or shouts.
    forms = [text, text[:1].upper() + text[1:], text.lower(), text.upper()]
    return chance.choices(forms, [2, 4, 2, 0.3])[0]


def runs(text: str) -> set[str]:
    """Return all runs of IN_A_ROW words of a text; the whole of a shorter one."""
    words = re.findall(r"\w+", text.lower())
    return {
        " ".join(words[place : place + IN_A_ROW])
        for place in range(max(1, len(words) - IN_A_ROW + 1))
        if words
    }


def training_texts(folder: Path, measuring: Sequence[Path]) -> list[Text]:
    """Return what is trained on: of the sets, written and composed, without what measures."""
    measured: set[str] = set()
    for path in measuring:
        for line in path.read_text("utf-8").splitlines():
            measured |= runs(json.loads(line)["text"])
    texts = [*read(folder), *written(), *composed()]
    texts = [each for each in texts if not runs(each.text) & measured]
    return [*texts, *combined(texts)]


def written() -> list[Text]:
    """Return the texts that were written for it."""
    lines = map(json.loads, WRITTEN.read_text("utf-8").splitlines())
    return [Text(line["text"], line["kind"], WRITTEN_WEIGHT) for line in lines]


def targets(texts: Sequence[Text]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Return the number of the kind of each text, and what it weighs, 1 on average."""
    kinds = np.array([KINDS.index(each.kind) for each in texts], np.int64)
    weights = np.array([each.weight for each in texts])
    for number, kind in enumerate(KINDS):
        weights[kinds == number] *= SHARES[kind] / weights[kinds == number].sum()
    return kinds, (weights / weights.mean()).astype(np.float32)


def states_of(texts: Sequence[Text]) -> list[NDArray[np.float16]]:
    """Return the states of the texts' tokens in half precision; similar lengths at a time."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place].text))
    states: dict[int, NDArray[np.float16]] = {}
    ends = [*range(0, len(order), AT_ONCE), len(order)]
    for start, end in track(list(pairwise(ends)), "reading"):
        places = order[start:end]
        batch = token_states([texts[place].text for place in places])
        halves = (each.astype(np.float16) for each in batch)
        states |= dict(zip(places, halves, strict=True))
    return [states[place] for place in range(len(texts))]


def main() -> None:
    """Train on the sets of a folder, and write the layer."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    django.setup()
    folder, *measuring = map(Path, sys.argv[1:])
    texts = training_texts(folder, measuring)
    learned = samples(states_of(texts), [each.text for each in texts], *targets(texts))
    words, *arrays = fit(learned, KINDS)
    halves = words._replace(rows=words.rows.astype(np.float16))
    names = TokenLayer._fields[1:]
    save(halves, LAYER, **{n: a.astype(np.float16) for n, a in zip(names, arrays, strict=True)})


if __name__ == "__main__":
    main()
