"""Trains the layer by which the guardrails judge.

`python3 -m assistant.lab.guardrails_fit FOLDER [JSONL…]` reads the public sets of
`guardrails_sets` below the folder, adds orders to a language model that are composed from
`guardrails_orders.toml`, alone and beside other texts, and writes `agents/intake/guardrails.npz`.
What shares eight words in a row with a text of the JSONL files is left out: they measure. The
same sets give the same weights.
"""

import json
import os
import random
import re
import sys
import tomllib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import django
import numpy as np
from numpy.typing import NDArray

from assistant.lab.guardrails_sets import ABUSE, KINDS, SAFE, Text, read
from assistant.lab.softmax_regression import Batch, Regression, save
from knowledge.embedding import encode
from knowledge.linear_layer import Classifier, LinearLayer, word_features

LAYER = Path(__file__).parents[2] / "agents" / "intake" / "guardrails.npz"
SEED = 20
# Orders that are composed, by language; English is what most documents and attacks are in.
COMPOSED = {"en": 6000}
COMPOSED_ELSEWHERE = 400
# Of the composed orders so many stand beside a safe sentence, as they do inside a longer text.
BESIDE = 0.35
LONGEST_BESIDE = 300
# What the texts of each kind weigh together, however many they are.
SHARES = dict(zip(KINDS, (0.7, 0.12, 0.12, 0.06), strict=True))
WORD_BUCKETS = 1 << 15
ROUNDS, AT_ONCE, SPEED = 10, 512, 0.1
# Words are pulled to nothing: what was seen once shall not decide.
DECAY_OF_WORDS = 2e-3
SLOT = re.compile(r"\{(\w+)\}")
IN_A_ROW = 8


def composed(safe: Sequence[str]) -> list[Text]:
    """Return orders of every language, a part of them beside a safe sentence."""
    with (Path(__file__).parent / "guardrails_orders.toml").open("rb") as file:
        languages = tomllib.load(file)
    chance = random.Random(SEED)  # noqa: S311 nothing secret
    texts = []
    for language, parts in languages.items():
        for _ in range(COMPOSED.get(language, COMPOSED_ELSEWHERE)):
            order = _order(parts, chance)
            if chance.random() < BESIDE:
                pair = [order, chance.choice(safe)]
                chance.shuffle(pair)
                order = " ".join(pair)
            texts.append(Text(order, ABUSE, 0.3))
    return list(dict.fromkeys(texts))


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
    """Return what is trained on: of the sets and composed, without what measures."""
    texts = read(folder)
    safe = [each.text for each in texts if each.kind == SAFE and len(each.text) < LONGEST_BESIDE]
    measured: set[str] = set()
    for path in measuring:
        for line in path.read_text("utf-8").splitlines():
            measured |= runs(json.loads(line)["text"])
    return [each for each in [*texts, *composed(safe)] if not runs(each.text) & measured]


def fit(vectors: NDArray[np.float32], texts: Sequence[Text]) -> Classifier:
    """Return the logistic regression of kinds on vectors and words, by stochastic descent.

    Adam for the vectors and Adagrad for the words, of which few are in any text.
    """
    chance = np.random.default_rng(SEED)
    kinds, weights = _targets(texts)
    found = [word_features(each.text, WORD_BUCKETS) for each in texts]
    inputs = np.hstack([vectors, np.ones((len(vectors), 1), np.float32)])
    dense = np.zeros((inputs.shape[1], len(KINDS)), np.float32)
    mean, square = np.zeros_like(dense), np.zeros_like(dense)
    words = Regression(WORD_BUCKETS, len(KINDS))
    batches = ROUNDS * (len(texts) // AT_ONCE)
    order = np.concatenate([
        chance.permutation(len(texts))[: len(texts) // AT_ONCE * AT_ONCE] for _ in range(ROUNDS)
    ])  # fmt: skip
    for step, chosen in enumerate(order.reshape(batches, AT_ONCE), start=1):
        speed = SPEED * (1 - step / (batches + 1))
        batch = Batch([found[place] for place in chosen], kinds[chosen])
        error = batch.errors(inputs[chosen] @ dense + words.scores(batch))
        error *= weights[chosen][:, None] / AT_ONCE
        slope = inputs[chosen].T @ error
        mean, square = 0.9 * mean + 0.1 * slope, 0.999 * square + 0.001 * slope**2
        dense -= speed * (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
        words.learn(batch, error, speed, decay=DECAY_OF_WORDS / AT_ONCE)
    layer = LinearLayer(KINDS, words.rows, np.ones(()), dense[-1].astype(np.float32))
    return Classifier(layer, dense[:-1].T.astype(np.float32))


def _targets(texts: Sequence[Text]) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """The number of the kind of each text, and what it weighs, 1 on average."""
    kinds = np.array([KINDS.index(each.kind) for each in texts], np.int64)
    weights = np.array([each.weight for each in texts])
    for number, kind in enumerate(KINDS):
        weights[kinds == number] *= SHARES[kind] / weights[kinds == number].sum()
    return kinds, (weights / weights.mean()).astype(np.float32)


def vectors_of(texts: Sequence[Text]) -> NDArray[np.float32]:
    """Return the vectors of the texts, rounded to half precision; similar lengths at a time."""
    order = sorted(range(len(texts)), key=lambda place: len(texts[place].text))
    vectors: dict[int, NDArray[np.float16]] = {}
    for start, end in pairwise([*range(0, len(order), AT_ONCE), len(order)]):
        places = order[start:end]
        batch = encode([texts[place].text for place in places]).astype(np.float16)
        vectors |= dict(zip(places, batch, strict=True))
    return np.stack([vectors[place] for place in range(len(texts))]).astype(np.float32)


def main() -> None:
    """Train on the sets of a folder, and write the layer."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "assistant.settings")
    django.setup()
    folder, *measuring = map(Path, sys.argv[1:])
    texts = training_texts(folder, measuring)
    words, weights = fit(vectors_of(texts), texts)
    halves = words._replace(rows=words.rows.astype(np.float16))
    save(halves, LAYER, weights=weights.astype(np.float16))


if __name__ == "__main__":
    main()
