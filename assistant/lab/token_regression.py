"""Token regression: fits token layers, with words beside them, by stochastic descent.

Adam with decay (Loshchilov and Hutter 2019, arXiv:1711.05101), more of it for the words.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.progress import track

from assistant.lab.softmax_regression import Batch, sums_of
from knowledge.trained_layers import LinearLayer, TokenLayer, word_features

Numbers = NDArray[np.float32]

BUCKETS = 1 << 15
OUTPUTS, WIDTH = 96, 5
ROUNDS, AT_ONCE, SPEED, WARMING = 4, 128, 2e-3, 50
# Texts of like length stand together, those of so many batches at a time.
SORTED = 20
DECAY = 0.02
# Words are learned faster and pulled to nothing: what few texts have shall not decide.
WORD_SPEED, WORD_DECAY = 3.0, 0.1
# What is left out at random, so that nothing is relied on alone (Srivastava et al. 2014).
DROPPED, DROPPED_WORDS = 0.3, 0.3
# No text is learned as surely of its kind: labels are wrong now and then (Szegedy et al. 2016).
SMOOTHED = 0.01
SEED = 20


@dataclass(frozen=True)
class Samples:
    """What is learned from: of each text its states, features, the number of its kind, a weight."""

    states: Sequence[NDArray[np.float16]]
    features: Sequence[Sequence[int]]
    kinds: NDArray[np.int64]
    weights: Numbers

    def batches(self, chance: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """Yield the places of all, at random, similar lengths at a time."""
        order = chance.permutation(len(self.states))
        lengths = np.array([len(each) for each in self.states])
        for begin in range(0, len(order), AT_ONCE * SORTED):
            some = order[begin : begin + AT_ONCE * SORTED]
            some = some[np.argsort(lengths[some], kind="stable")]
            parts = np.array_split(some, max(1, len(some) // AT_ONCE))
            yield from (parts[number] for number in chance.permutation(len(parts)))


def samples(
    states: Sequence[NDArray[np.float16]],
    texts: Sequence[str],
    kinds: NDArray[np.int64],
    weights: Numbers,
) -> Samples:
    """Return texts, their states, and the numbers of their kinds as what is learned from."""
    return Samples(states, [word_features(text, BUCKETS) for text in texts], kinds, weights)


def fit(learned: Samples, kinds: Sequence[str]) -> TokenLayer:
    """Return the layer; the same for the same samples. Shows a bar."""
    chance = np.random.default_rng(SEED)
    layer = Convolution(learned.states[0].shape[1], len(kinds), chance)
    batches = [each for _ in range(ROUNDS) for each in learned.batches(chance)]
    for step, chosen in enumerate(track(batches, "learning"), start=1):
        found = [_some(learned.features[place], chance) for place in chosen]
        batch = Batch(found, learned.kinds[chosen])
        scores = layer.forward([learned.states[place] for place in chosen], batch, chance)
        errors = batch.errors(scores)
        errors[np.arange(len(chosen)), batch.kinds] += SMOOTHED
        errors -= SMOOTHED / len(kinds)
        errors *= learned.weights[chosen][:, None] / len(chosen)
        rest = 1 - step / (len(batches) + 1)
        layer.learn(batch, errors, SPEED * rest * min(1.0, step / WARMING), step)
    values = layer.values
    words = LinearLayer(tuple(kinds), values.pop("words"), np.ones(()), values.pop("bias"))
    return TokenLayer(words, **values)


def _some(features: Sequence[int], chance: np.random.Generator) -> Sequence[int]:
    """The features of a text but for some; all where none would be left."""
    kept = chance.random(len(features)) >= DROPPED_WORDS
    return [each for each, is_kept in zip(features, kept, strict=True) if is_kept] or features


class Convolution:
    """The arrays of a token layer on their way, by name, with the moments of their slopes."""

    def __init__(self, dimensions: int, kinds: int, chance: np.random.Generator) -> None:
        def drawn(*shape: int) -> Numbers:
            inputs = int(np.prod(shape[:-1]))
            return np.asarray(chance.standard_normal(shape) * np.sqrt(2 / inputs), np.float32)

        self.values: dict[str, Numbers] = {
            "narrow": drawn(dimensions, OUTPUTS),
            "narrow_bias": np.zeros(OUTPUTS, np.float32),
            "window": drawn(WIDTH, OUTPUTS, OUTPUTS),
            "window_bias": np.zeros(OUTPUTS, np.float32),
            "out": np.zeros((2 * OUTPUTS + dimensions, kinds), np.float32),
            "bias": np.zeros(kinds, np.float32),
            "words": np.zeros((BUCKETS, kinds), np.float32),
        }
        self.means = {name: np.zeros_like(value) for name, value in self.values.items()}
        self.squares = {name: np.zeros_like(value) for name, value in self.values.items()}

    def forward(
        self, states: Sequence[NDArray[np.float16]], batch: Batch, chance: np.random.Generator
    ) -> Numbers:
        """Return the scores of the kinds (columns) for texts (rows), some inputs left out."""
        values, length = self.values, max(len(each) for each in states)
        self.lengths = np.array([len(each) for each in states], np.float32)[:, None]
        self.real = (np.arange(length) < self.lengths).astype(np.float32)[:, :, None]
        whole = np.zeros((len(states), length, states[0].shape[1]), np.float32)
        for row, text in enumerate(states):
            whole[row, : len(text)] = text
        self.inputs = whole * _mask(whole.shape, chance)
        each = np.maximum(self.inputs @ values["narrow"] + values["narrow_bias"], 0) * self.real
        self.padded = np.pad(each, ((0, 0), (WIDTH // 2, WIDTH // 2), (0, 0)))
        runs = sum(
            self.padded[:, place : place + length] @ values["window"][place]
            for place in range(WIDTH)
        )
        self.found = np.maximum(runs + values["window_bias"], 0) * self.real
        self.largest = self.found.argmax(axis=1)
        pooled = [self.found.max(axis=1), self.found.sum(axis=1) / self.lengths]
        features = np.concatenate([*pooled, whole.sum(axis=1) / self.lengths], axis=1)
        self.kept = _mask(features.shape, chance)
        self.features = features * self.kept
        scores = self.features @ values["out"] + values["bias"]
        owners, evidence = sums_of(values["words"][batch.ids], batch.owners)
        scores[owners] += evidence / batch.roots[owners]
        return np.asarray(scores, np.float32)

    def learn(self, batch: Batch, errors: Numbers, speed: float, step: int) -> None:
        """Go down the slope of the errors of the last scores, (texts, kinds)."""
        for name, slope in self._slopes(batch, errors).items():
            mean, square, value = self.means[name], self.squares[name], self.values[name]
            mean += 0.1 * (slope - mean)
            square += 0.001 * (slope**2 - square)
            change = (mean / (1 - 0.9**step)) / (np.sqrt(square / (1 - 0.999**step)) + 1e-8)
            faster, decay = (WORD_SPEED, WORD_DECAY) if name == "words" else (1.0, DECAY)
            value -= speed * faster * (change + decay * value)

    def _slopes(self, batch: Batch, errors: Numbers) -> dict[str, Numbers]:
        values = self.values
        of_words = np.zeros_like(values["words"])
        used, slopes = sums_of((errors / batch.roots)[batch.owners], batch.ids)
        of_words[used] = slopes
        of_features = (errors @ values["out"].T) * self.kept
        of_found = np.repeat(
            (of_features[:, OUTPUTS : 2 * OUTPUTS] / self.lengths)[:, None],
            self.found.shape[1],
            axis=1,
        )
        rows, outputs = np.indices(self.largest.shape)
        of_found[rows, self.largest, outputs] += of_features[:, :OUTPUTS]
        of_runs = of_found * (self.found > 0)
        of_padded = np.zeros_like(self.padded)
        of_window = np.empty_like(values["window"])
        length = of_runs.shape[1]
        for place in range(WIDTH):
            part = slice(place, place + length)
            of_window[place] = _product(self.padded[:, part], of_runs)
            of_padded[:, part] += of_runs @ values["window"][place].T
        middle = slice(WIDTH // 2, WIDTH // 2 + length)
        of_each = of_padded[:, middle] * (self.padded[:, middle] > 0)
        return {
            "narrow": _product(self.inputs, of_each),
            "narrow_bias": of_each.sum(axis=(0, 1)),
            "window": of_window,
            "window_bias": of_runs.sum(axis=(0, 1)),
            "out": self.features.T @ errors,
            "bias": errors.sum(axis=0),
            "words": of_words,
        }


def _product(left: Numbers, right: Numbers) -> Numbers:
    """The sum over all tokens of all texts of what one makes of the other."""
    return left.reshape(-1, left.shape[-1]).T @ right.reshape(-1, right.shape[-1])


def _mask(shape: tuple[int, ...], chance: np.random.Generator) -> Numbers:
    """What is kept, 0 or as much more as makes up for what is not."""
    kept = chance.random(shape, dtype=np.float32) >= DROPPED
    return kept.astype(np.float32) / (1 - DROPPED)
