"""Wishes: how the user wants to be answered, now or from now on."""

import re

from agents.languages import named_in

NUMBERS = r"\d+|one|two|three|four|five|a few|ein|eine[nm]?|zwei|drei|vier|fünf|una?|dos|tres|cuatro|cinco|une?|deux|trois|quatre|cinq|одн\w+|дв\w+|тр\w+|[一二两三四五]"
DIGITS = {
    word: str(number)
    for number, spoken in enumerate(
        (
            "one ein eine einen einem un una une 一",
            "two zwei dos deux 二 两",
            "three drei tres trois 三",
            "four vier cuatro quatre 四",
            "five fünf cinco cinq 五",
        ),
        start=1,
    )
    for word in spoken.split()
} | {"одн": "1", "дв": "2", "тр": "3"}
# What a note calls the wish, and how it is uttered. The order is that of the notes.
FORMS = (
    ("lines", re.compile(rf"\b({NUMBERS})\s*(?:lines?|zeilen?|líneas?|lignes?|строк\w*)\b|([\d一二两三四五]+)\s*行", re.IGNORECASE)),
    ("sentences", re.compile(rf"\b({NUMBERS})\s*(?:sentences?|sätze[n]?|satz|frases?|oraciones|phrases?|предложени\w*)\b|([\d一二两三四五]+)\s*句", re.IGNORECASE)),
    ("brief", re.compile(r"\b(?:brief(?:ly)?|short(?:er|ly)?|concise(?:ly)?|in short|in a nutshell|tl;?dr|summar\w+|shorten|kurz|kürzer|knapp|zusammenfass\w*|fass\w*|breve(?:mente)?|corto|resum\w+|bref|brièvement|court|résum\w+|кратко|короче|вкратце|кратк\w+)\b|简短|简要|总结|概括", re.IGNORECASE)),
    ("list", re.compile(r"\b(?:bullet(?:ed)?(?: points?| list)?|as a list|in a list|stichpunkte\w*|als liste|viñetas|lista|puces|liste|списком|по пунктам)\b|列表|要点", re.IGNORECASE)),
    ("steps", re.compile(r"\b(?:step[- ]by[- ]step|schritt für schritt|paso a paso|étape par étape|пошагово|по шагам)\b|一步一步|分步", re.IGNORECASE)),
    ("example", re.compile(r"\b(?:(?:an|with) examples?|for example|beispiele?|ejemplos?|exemples?|пример\w*)\b|例子|举例", re.IGNORECASE)),
    ("simple", re.compile(r"\b(?:in simple (?:terms|words)|simply|simpler|plain (?:english|words|language)|eli5|einfache[rn]? worte\w*|einfacher|sencill\w+|simplement|простыми словами|проще)\b|简单", re.IGNORECASE)),
    ("detailed", re.compile(r"\b(?:in (?:more )?detail|detailed|more details?|ausführlich\w*|en detalle|detallad\w+|en détail|détaillé\w*|подробн\w+)\b|详细", re.IGNORECASE)),
)
STANDING = re.compile(
    r"\b(?:always|from now on|in (?:the )?future|please keep|keep (?:your |all |the )?(?:answers|it|them|replies)|"
    r"i prefer|i'd prefer|i like|immer|ab jetzt|in zukunft|künftig|ich bevorzuge|siempre|a partir de ahora|"
    r"prefiero|toujours|désormais|à partir de maintenant|je préfère|всегда|впредь|отныне|я предпочитаю)\b|以后|总是|今后",
    re.IGNORECASE,
)
ANSWER_IN = re.compile(
    r"\b(?:answer|reply|respond|speak|write|talk|switch|antworte\w*|schreib\w*|sprich|sprechen|"
    r"responde\w*|contesta\w*|habla\w*|escribe\w*|répond\w*|parle\w*|écri\w+|отвеча\w+|ответ\w+|говори\w*|пиши\w*)\b"
    r".{0,30}?\b(?:in|to|auf|en|на|по|по-)\s*[- ]?(\w+)|(?:用|说|讲)\s*(\w+?文|\w+?语)",
    re.IGNORECASE,
)
ABOUT_ANSWER = re.compile(
    r"\b(?:that|it|this|again|the (?:last |previous )?answer|your (?:last |previous )?(?:answer|reply)|"
    r"das|es|nochmal|noch einmal|antwort|eso|esto|respuesta|cela|ça|réponse|это|ещё раз|еще раз|ответ\w*)\b|这|再|答案",
    re.IGNORECASE,
)
# The words a request to say the same in another form is made of.
FORMING = frozenset(
    """
    summarize summarise summary sum shorten shorter short brief briefly rephrase reword repeat again answer
    answers reply replies line lines sentence sentences word words bullet bullets point points list table
    example examples simple simply simpler simplify plain terms step steps detailed detail details format
    reformat version long longer concise always future prefer keep write say speak respond english german
    spanish french russian chinese two three four five one few make put now only
    zusammenfassen zusammenfassung fasse fass zusammen kürzer kurz zeilen sätzen sätze wiederhole
    stichpunkte stichpunkten beispiel liste nochmal antwort antworten einfacher zwei drei immer ausführlicher deutsch
    resume resumir resumen líneas frases breve corto lista ejemplo repite respuesta responde siempre español dos tres
    résume résumer résumé lignes phrases bref court liste exemple répète réponse réponds toujours français deux trois
    кратко короче строк строках строки предложениях пример списком повтори ответ отвечай всегда русском русски двух трёх суммируй
    """.split()
)


def notes(text: str) -> list[str]:
    """How the answer is wanted: "2 lines", "brief", "list" and so on, each form once."""
    found = []
    for form, uttered in FORMS:
        if match := uttered.search(text):
            number = next((group for group in match.groups() if group), "").casefold()
            stem = next((word for word in ("одн", "дв", "тр") if number.startswith(word)), number)
            found.append(f"{DIGITS.get(stem, number)} {form}".strip())
    # Two lines are brief enough: what is exact replaces what is not.
    return [note for note in found if note != "brief"] if _exact(found) else found


def _exact(found: list[str]) -> bool:
    return any(note.endswith(("lines", "sentences")) for note in found)


def standing(text: str) -> list[str]:
    """The wish to be kept in mind from now on, in the user's own words; at most one."""
    wished = STANDING.search(text) and (notes(text) or answer_language(text))
    return [" ".join(text.split())[:200]] if wished else []


def answer_language(text: str) -> str | None:
    """The language the user asks to be answered in, if any."""
    for match in ANSWER_IN.finditer(text):
        if language := named_in(next(group for group in match.groups() if group)):
            return language
    return None
