"""Small talk weights: trains what tells small talk from questions.

`python3 -m assistant.lab.small_talk_weights FOLDER`, with checkouts of the repositories below in
FOLDER, writes `agents/ending/small_talk.npz`. `docs/architecture.md` names the sets and licences.
"""

import json
import random
import re
import subprocess
import sys
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import django
import numpy as np

from agents.ending.small_talk import BUCKETS, KINDS, QUESTION, SURE, WEIGHTS, features
from assistant.lab.softmax_regression import Batch, Regression, in_bytes, save
from knowledge.trained_layers import Floats, softmax

OUTPUTS = (QUESTION, *KINDS)
Row = tuple[str, str]  # text, and what it is
SEEDS = Path(__file__).with_name("small_talk.toml")

# Microsoft's chit-chat for QnA Maker: per language the places of its pairs by kind. What else is
# in there (jokes, hobbies, sorrows) is neither learnt as small talk nor as a question.
CHITCHAT = "microsoft/botframework-cli"
CHITCHAT_FILE = "packages/qnamaker/docs/qnaFormat/{}/qna_chitchat_professional.qna"
PLACES: dict[str, dict[str, tuple[int, ...]]] = {
    "english": {
        "greeting": (53, 54, 55, 57, 58, 59, 60, 62, 79, 88),
        "goodbye": (52, 56),
        "thanks": (38, 49),
        "ability": (9,),
        "nature": (6, 14, 29),
        "discontent": (3, 32, 36, 39, 41, 42),
    },
    "german": {
        "greeting": (53, 54, 55, 57, 58, 59, 60, 62, 86),
        "goodbye": (52, 56),
        "thanks": (38, 49),
        "ability": (6,),
        "nature": (7, 14, 29),
        "discontent": (3, 32, 36, 39, 41, 42),
    },
    "spanish": {
        "greeting": (52, 53, 54, 56, 57, 58, 59, 61, 84),
        "goodbye": (51,),
        "thanks": (38,),
        "ability": (6,),
        "nature": (7, 14, 29),
        "discontent": (3, 32, 36, 39, 41, 42),
    },
    "french": {
        "greeting": (51, 53, 55, 56, 57, 58, 60, 84),
        "goodbye": (50, 54),
        "thanks": (38, 48),
        "ability": (6,),
        "nature": (7, 14, 29),
        "discontent": (3, 32, 39, 41, 42),
    },
    "italian": {
        "greeting": (51, 52, 53, 55, 56, 57, 59),
        "goodbye": (50, 54),
        "thanks": (38,),
        "ability": (6,),
        "nature": (7, 14, 29),
        "discontent": (3, 32, 36, 39, 41, 42),
    },
    "portuguese": {
        "greeting": (46, 47, 48, 50, 51, 52, 53, 55, 77),
        "thanks": (35, 44),
        "ability": (6,),
        "nature": (7, 14, 27),
        "discontent": (3, 30, 33, 36, 38, 39),
    },
    "chinese_simplified": {
        "greeting": (51, 52, 53, 55, 56, 57, 58, 60),
        "goodbye": (50, 54),
        "thanks": (38,),
        "ability": (6,),
        "nature": (7, 14, 29),
        "discontent": (3, 32, 36, 39, 41, 42),
    },
}
CLINC = {
    "greeting": "greeting",
    "goodbye": "goodbye",
    "thank_you": "thanks",
    "what_can_i_ask_you": "ability",
    "cancel": "giving_up",
    **dict.fromkeys(("are_you_a_bot", "what_is_your_name", "who_made_you"), "nature"),
}
# Neither small talk nor what anybody asks documents.
CLINC_LEFT_OUT = frozenset(
    {
        *("no", "meaning_of_life", "tell_joke", "fun_fact", "user_name"),
        *("how_old_are_you", "where_are_you_from", "who_do_you_work_for"),
        *("what_are_your_hobbies", "do_you_have_pets"),
    }
)
POLYAI = "PolyAI-LDN/task-specific-datasets"
CALLS = {"greet": "greeting", "thank": "thanks", "end_call": "goodbye", "handoff": "person"}
# Intents of Rasa bots, as far as their lines are small talk beyond doubt.
RUSSIAN = {
    **dict.fromkeys(
        ("greet", "goodevening", "goodmorning", "how_are_you", "nice_to_meet", "nice_to_see"),
        "greeting",
    ),
    **dict.fromkeys(("goodbye", "goodnight", "see_again"), "goodbye"),
    **dict.fromkeys(("thanks", "well_done"), "thanks"),
    **dict.fromkeys(("chatbot", "real", "introduction"), "nature"),
    **dict.fromkeys(("annoying", "unhelpful", "fired", "insult", "wrong"), "discontent"),
    "help": "ability",
}
POLISH = {
    **dict.fromkeys(
        ("greet", "how_are_you", "nice_to_meet_you", "nice_to_see_you", "are_you_there"), "greeting"
    ),
    **dict.fromkeys(("bye", "see_you_again"), "goodbye"),
    "thanks": "thanks",
    **dict.fromkeys(("are_you_bot", "user_wants_acquaintance"), "nature"),
    **dict.fromkeys(("crazy_bot", "bad_bot"), "discontent"),
    "need_help": "ability",
    "need_human": "person",
}
# Sentences of Tatoeba with their English, sorted by length: what the English is by a layer trained
# without them, they are, too, if that is sure.
PAIRS = "dariofugale95/LanguageIdentificationKeras"
PAIRED = ("ces", "pol", "cmn", "nld", "swe", "dan", "hun", "jpn", "fin", "ron", "bul", "ell")
SURELY, MOST_PAIRS, PLAIN_PAIRS = 0.97, 8000, 5
# Short sentences that ask or tell something: those of interfaces, and questions.
INTERFACES = ("admin", "auth")
LANGUAGES = ("de", "es", "fr", "ru", "zh_Hans", "pl", "cs", "it", "pt", "nl", "sv", "tr", "uk")
MOST_QUESTIONS = 990
# Small talk before a question leaves a question.
JOINED = 12000
WEIGHTIEST = (
    *("person", "goodbye", "giving_up", "discontent", "ability", "nature", "thanks", "greeting"),
)
JOINTS = ("\uff0c", ", ", ". ", "! ", " ", ", and ", " - ", "\n")
EPOCHS, BATCH, RATE, DECAY = 14, 256, 0.05, 2e-6


def read(folder: Path, repository: str, path: str) -> str:
    """Return a file of a checkout, or of a bare clone `owner+name/repo`."""
    plain = folder / repository.split("/")[1] / path
    if plain.exists():
        return plain.read_text("utf-8-sig")
    clone = folder / repository.replace("/", "+") / "repo"
    shown = subprocess.run(  # noqa: S603
        ["git", "--git-dir", clone, "show", f"HEAD:{path}"],  # noqa: S607
        capture_output=True,
        check=True,
    )
    return shown.stdout.decode("utf-8-sig").replace("\r", "")


def chitchat(folder: Path) -> Iterator[Row]:
    """Yield Microsoft's small talk in seven languages."""
    for language, places in PLACES.items():
        text = read(folder, CHITCHAT, CHITCHAT_FILE.format(language))
        blocks = re.split(r"^# \?", text, flags=re.MULTILINE)[1:]
        for kind, numbers in places.items():
            for number in numbers:
                first, *others = blocks[number].partition("**Filters:**")[0].strip().splitlines()
                lines = [first, *(line[2:] for line in others if line.startswith("- "))]
                yield from ((line.strip(), kind) for line in lines)


def clinc(folder: Path, splits: Iterable[str]) -> Iterator[Row]:
    """Yield CLINC150's utterances of those splits."""
    sets: dict[str, Any] = json.loads(read(folder, "clinc/oos-eval", "data/data_full.json"))
    for split in splits:
        for text, intent in sets[split]:
            if intent not in CLINC_LEFT_OUT:
                yield text, CLINC.get(intent, QUESTION)


def rasa(text: str, kinds: dict[str, str]) -> Iterator[Row]:
    """Yield the lines of Rasa's Markdown whose intent has a kind."""
    intent = ""
    for line in text.splitlines():
        if line.startswith("## intent"):
            intent = line.partition("<!--")[0].split(":")[-1].split("/")[-1].strip()
        elif line.startswith("- ") and intent in kinds:
            yield line[2:].strip(), kinds[intent]


def banking(folder: Path) -> Iterator[Row]:
    """Yield BANKING77's questions."""
    text = read(folder, POLYAI, "banking_data/train.csv")
    for line in text.splitlines()[1:]:
        yield line.rpartition(",")[0].strip('"'), QUESTION


def calls(folder: Path) -> Iterator[Row]:
    """Yield what callers of a bank and of a hotel said, by NLU++; greetings apart from wishes."""
    for domain in ("banking", "hotels"):
        for fold in range(20):
            text = read(folder, POLYAI, f"nlupp/data/{domain}/fold{fold}.json")
            for said in json.loads(text):
                kinds = {CALLS.get(intent, QUESTION) for intent in said.get("intents") or ()}
                if kinds:
                    yield said["text"], kinds.pop() if len(kinds) == 1 else QUESTION


def xquad(folder: Path) -> Iterator[Row]:
    """Yield the last of XQuAD's questions in each language, whole and cut to three words."""
    for language in ("ar", "de", "el", "en", "es", "hi", "ro", "ru", "th", "tr", "vi", "zh"):
        sets = json.loads(read(folder, "google-deepmind/xquad", f"xquad.{language}.json"))["data"]
        questions = [
            asked["question"]
            for page in sets
            for part in page["paragraphs"]
            for asked in part["qas"]
        ]
        for question in questions[-MOST_QUESTIONS:]:
            yield question, QUESTION
            yield " ".join(question.split()[:3]).rstrip("?"), QUESTION


def interfaces() -> Iterator[Row]:
    """Yield what Django's interfaces say in many languages."""
    root = Path(django.__file__).parent
    for language in LANGUAGES:
        files = [root / f"contrib/{app}/locale/{language}" for app in INTERFACES]
        for file in (*files, root / f"conf/locale/{language}"):
            path = file / "LC_MESSAGES/django.po"
            text = path.read_text("utf-8") if path.exists() else ""
            for said in re.findall(r'^msgstr "(.+)"$', text, re.MULTILINE):
                if "%" not in said and "\\" not in said:
                    yield said, QUESTION


def seeds() -> Iterator[Row]:
    """Yield the project's own lines."""
    with SEEDS.open("rb") as file:
        for kind, languages in tomllib.load(file).items():
            yield from ((line, kind) for lines in languages.values() for line in lines)


def pairs(folder: Path, layer: Regression) -> Iterator[Row]:
    """Yield Tatoeba's sentences, as what their English surely is."""
    for language in PAIRED:
        lines = read(folder, PAIRS, f"data/{language}.txt").splitlines()[:MOST_PAIRS]
        both = [line.split("\t")[:2] for line in lines if "\t" in line]
        shares = predict(layer, [english for english, _ in both])
        for (_, text), row in zip(both, shares, strict=True):
            is_rare = row.argmax() != 0 or crc32(text.encode()) % PLAIN_PAIRS == 0
            if row.max() >= SURELY and is_rare:
                yield text, OUTPUTS[int(row.argmax())]


def joined(rows: list[Row], dice: random.Random) -> Iterator[Row]:
    """Yield small talk with a question behind it, or before it: a question."""
    talk = [text for text, kind in rows if kind not in {QUESTION, "giving_up"} and len(text) < 40]
    questions: dict[str, list[str]] = {}
    for text, kind in rows:
        if kind == QUESTION:
            questions.setdefault(script(text), []).append(text)
    for _ in range(JOINED):
        first = dice.choice(talk).rstrip("?")
        parts = [first, dice.choice(questions[script(first)])]
        if dice.random() < 0.25:
            parts.reverse()
        yield dice.choice(JOINTS).join(parts), QUESTION


def script(text: str) -> str:
    """Return what the first letter of a text is written in: "LATIN", "CJK" and so on."""
    letter = next(filter(str.isalpha, text), "a")
    return unicodedata.name(letter, "LATIN").split(" ")[0]


def both(rows: list[Row], dice: random.Random) -> Iterator[Row]:
    """Yield small talk with more of it behind: what weighs more of the two."""
    talk = [row for row in rows if row[1] != QUESTION and len(row[0]) < 40]
    for _ in range(JOINED // 2):
        first, second = dice.choice(talk), dice.choice(talk)
        heavier = min(first[1], second[1], key=WEIGHTIEST.index)
        yield f"{first[0]}{dice.choice(JOINTS)}{second[0]}", heavier


def fit(rows: list[Row]) -> Regression:
    """Return the regression for texts and what they are, each kind weighing as much as its root."""
    inputs = [features(text) for text, _ in rows]
    labels = np.array([OUTPUTS.index(kind) for _, kind in rows])
    counts = np.bincount(labels, minlength=len(OUTPUTS))
    importance = np.sqrt(counts.max() / np.maximum(counts, 1))[labels]
    importance = np.where(labels == 0, 2.0, importance / importance.mean()).astype(np.float32)
    model = Regression(BUCKETS, len(OUTPUTS))
    generator = np.random.default_rng(7)
    for epoch in range(EPOCHS):
        rate = RATE * 10 * (1 - epoch / EPOCHS)
        order = generator.permutation(len(rows))
        for chosen in np.split(order, range(BATCH, len(order), BATCH)):
            batch = Batch([inputs[row] for row in chosen], labels[chosen])
            errors = batch.errors(model.scores(batch)) * importance[chosen][:, None] / len(chosen)
            model.learn(batch, errors, rate, bias_rate=RATE, decay=DECAY)
    return model


def predict(model: Regression, texts: list[str]) -> Floats:
    """Return how likely each text (rows) is each of the `OUTPUTS`."""
    unknown = np.zeros(len(texts), np.int64)
    return softmax(model.scores(Batch([features(text) for text in texts], unknown)))


def gather(folder: Path) -> list[Row]:
    """Return everything there is to learn from, each text once."""
    russian = read(folder, "cadaxapy/rasa-bot", "data/nlu_data.md")
    rows = [
        *chitchat(folder),
        *clinc(folder, ("train", "val")),
        *banking(folder),
        *calls(folder),
        *xquad(folder),
        *interfaces(),
        *rasa(russian, RUSSIAN),
    ]
    for name in ("smalltalk", "bot_challange", "user_wants"):
        path = f"data/nlu/chitchat/nlu_chitchat_{name}.md"
        rows += rasa(read(folder, "Albert-91/BARF-o-bot", path), POLISH)
    own = list(seeds())
    rows += pairs(folder, fit([*rows, *own * 4]))
    rows += own * 4
    dice = random.Random(7)  # noqa: S311 no secret
    rows += [*joined(rows, dice), *both([*own, *clinc(folder, ("train",))], dice)]
    return [row for row in rows if row[0].strip()]


def main() -> None:
    """Train, write the weights, and print what a held-out part of CLINC150 says of them."""
    folder = Path(sys.argv[1])
    rows = gather(folder)
    layer = fit(rows)
    save(in_bytes(OUTPUTS, layer, axis=0), WEIGHTS)
    held_out = list(clinc(folder, ("test",)))
    shares = predict(layer, [text for text, _ in held_out])
    taken = [OUTPUTS[int(row.argmax())] if row[1:].max() >= SURE else QUESTION for row in shares]
    for kind in OUTPUTS:
        places = [place for place, (_, known) in enumerate(held_out) if known == kind]
        right = sum(taken[place] == kind for place in places)
        if places:
            print(f"{kind:12} {right} of {len(places)}")  # noqa: T201 its only output


if __name__ == "__main__":
    main()
