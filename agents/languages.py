"""Languages: those with fixed sentences of our own, and the names people call them by."""

import re

ENGLISH = "en"

# Docent's language code to the locale Django keeps its sentences under.
LOCALES = {
    "en": "en",
    "de": "de",
    "es": "es",
    "fr": "fr",
    "ru": "ru",
    "zh": "zh-hans",
}

# A name is looked for at the start of a word, so that inflected endings are found as well
# ("на немецком", "auf deutsch"); Chinese writes no spaces, so there it may stand anywhere.
NAMES = {
    "en": ("english", "englisch", "inglés", "ingles", "anglais", "английск", "англ", "英语", "英文"),
    "de": ("german", "deutsch", "alemán", "aleman", "allemand", "немецк", "德语", "德文"),
    "es": ("spanish", "spanisch", "español", "espanol", "espagnol", "испанск", "西班牙语"),
    "fr": ("french", "französisch", "francés", "frances", "français", "francais", "французск", "法语"),
    "ru": ("russian", "russisch", "ruso", "russe", "русск", "俄语"),
    "zh": ("chinese", "chinesisch", "chino", "chinois", "китайск", "中文", "汉语", "普通话"),
    "it": ("italian", "italienisch", "italiano", "italien", "итальянск", "意大利语"),
    "pt": ("portuguese", "portugiesisch", "portugués", "portugais", "português", "португальск"),
    "nl": ("dutch", "niederländisch", "neerlandés", "néerlandais", "nederlands", "голландск"),
    "pl": ("polish", "polnisch", "polaco", "polonais", "polski", "польск"),
    "tr": ("turkish", "türkisch", "turco", "turc", "türkçe", "турецк"),
    "ja": ("japanese", "japanisch", "japonés", "japonais", "японск", "日语", "日本語"),
    "uk": ("ukrainian", "ukrainisch", "ucraniano", "ukrainien", "украинск", "українськ"),
}


def base(language: str) -> str:
    """The language without its region: "zh" for "zh-cn"."""
    return language.split("-", maxsplit=1)[0]


def locale_of(language: str) -> str:
    """The locale whose fixed sentences suit a speaker of `language`; English when none does."""
    return LOCALES.get(base(language), LOCALES[ENGLISH])


def named_in(text: str) -> str | None:
    """The code of the first language `text` names, by its code alone or in words."""
    wanted = text.strip().casefold()
    if base(wanted) in NAMES:
        return base(wanted)
    for language, names in NAMES.items():
        for name in names:
            edge = r"\b" if name.isascii() or name[0] < "\u0500" else ""
            if re.search(edge + re.escape(name), wanted):
                return language
    return None
