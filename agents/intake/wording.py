"""Wording: how people refer back, choose, thank and leave, in Docent's languages."""

import re

# Words that stand for something said before. German articles count only without their noun,
# Spanish "lo" not in "lo que".
REFERENCE = re.compile(
    r"\b(?:it|this|these|those|they|them|that(?=\s*(?:[?.!,;]|$|one\b|work|mean|happen|for\b|in\b"
    r"|on\b|with\b)))(?![\w-])"
    r"|\b(?:es|ihn|davon|damit|dazu|dafür|darin|dies|das)\b(?!\s+(?-i:[A-ZÄÖÜ]))"
    r"|\b(?:eso|esto|ello|lo(?!\s+que))\b"
    r"|\b(?:cela|ça|ceci|celui-ci|celui-là)\b"
    r"|\b(?:это|этого|этим|этом|его|её|ее|их|ним|ней|них)\b"
    r"|它|这个|那个|这些|那些|这(?=[?？。]|$)|那(?=[?？。]|$)",
    re.IGNORECASE,
)
# "It" that stands for nothing.
EXPLETIVE = re.compile(
    r"\b(?:is|was|would|will|does|can|might)\s+it\s+(?:be\s+)?(?:possible|allowed|necessary|required|"
    r"ok|okay|safe|true|better|worth|matter|take|make\s+sense)\b"
    r"|\bit(?:'s|\s+is)\s+(?:possible|allowed|necessary|required|true|better|like)\b"
    r"|\bgibt\s+es\b|\bist\s+es\b|\bgeht\s+es\b",
    re.IGNORECASE,
)
# A message that begins like this goes on from the one before.
CONTINUING = re.compile(
    r"^(?:and|but|or|also|so|what about|how about|what if|then|why not|why\??$|how\??$|"
    r"und|oder|aber|was ist mit|wie ist es mit|y|o|pero|qué tal|et|ou|mais|qu'en est-il|"
    r"а|и|или|но|а если|那|那么|还有)(?:\s|$|,)|^(?:那|那么|还有)",
    re.IGNORECASE,
)
QUESTION = re.compile(
    r"^(?:who|what|when|where|which|why|how|can|could|do|does|did|is|are|should|may|will|would|"
    r"tell me|show me|explain|wer|was|wann|wo|welche[rsnm]?|warum|wieso|wie|kann|können|gibt|ist|"
    r"sind|muss|darf|qué|quién|cuándo|dónde|cuál|por qué|cómo|puedo|puede|hay|es|que|como|qui|quoi|"
    r"quand|où|quel(?:le)?s?|pourquoi|comment|est-ce|puis-je|peut-on|y a-t-il|кто|что|когда|где|"
    r"какой|какая|какие|почему|как|можно|могу|есть ли)\b|^(?:谁|什么|什麼|哪|为什么|怎么|如何|可以|能)",
    re.IGNORECASE,
)
# What introduces a reply and says nothing by itself.
LEAD_IN = re.compile(
    r"^(?:(?:oh|ah|yes|yeah|ok|okay|well|sorry|please|ja|sí|si|oui|да|是的|好)[\s,.!，]+)*"
    r"(?:i mean|i meant|i'm talking about|i am talking about|it's about|it is about|it's|it is|"
    r"i want to know about|i'm asking about|the one about|about|ich meine|es geht um|ich rede von|"
    r"me refiero a|quiero decir|es sobre|se trata de|je parle de|je veux dire|il s'agit de|"
    r"c'est pour|я имею в виду|я про|я о|речь о|речь идёт о|это про|我是说|我指的是|我的意思是|"
    r"关于)?[\s:，]*",
    re.IGNORECASE,
)
PREPOSITION = re.compile(
    r"^(?:for|on|in|with|without|from|to|by|via|using|at|when|if|as|für|auf|mit|bei|in|von|para|"
    r"con|en|sin|pour|avec|sur|dans|sans|для|на|в|с|без|при|对|在|用)\b",
    re.IGNORECASE,
)

# The whole message has to be made of these, so that "thanks, but how…" is not a farewell.
GOODBYE = (
    r"bye(?:[\s-]?bye)?|good\s?bye|see (?:you|ya)(?: later| soon)?|have a (?:nice|good|great) day|cheers|"
    r"that(?:'s| is| was) (?:all|it)|thanks?|thank you(?: very much| so much)?|many thanks|"
    r"tschüss|tschüß|auf wiedersehen|danke(?: schön| sehr)?|vielen dank|das war'?s|"
    r"adiós|adios|hasta luego|gracias|muchas gracias|eso es todo|"
    r"au revoir|merci(?: beaucoup| bien)?|bonne journée|c'est tout|"
    r"пока|до свидания|спасибо(?: большое)?|благодарю|это всё|это все|"
    r"再见|拜拜|谢谢(?:你|您)?|多谢|就这样"
)
GIVING_UP = (
    r"never ?mind|nevermind|forget (?:it|about it)|no,? thanks|no thank you|cancel(?: it| that)?|stop|"
    r"quit|exit|skip(?: it)?|leave it|doesn't matter|drop it|not important|"
    r"egal|schon gut|vergiss es|vergessen sie es|abbrechen|abbruch|lass(?: es| mal| gut sein)?|nicht so wichtig|"
    r"macht nichts|nein danke|hat sich erledigt|erledigt|"
    r"no importa|da igual|olvídalo|olvidalo|déjalo|dejalo|cancelar?|nada|no gracias|"
    r"laisse(?:z)?(?: tomber)?|tant pis|peu importe|oublie(?:z)?(?: ça)?|annuler?|non merci|ce n'est pas grave|"
    r"отмена|не ?важно|забудь(?:те)?|ладно|не надо|неважно|нет,? спасибо|хватит|стоп|"
    r"算了|没事|不用了|没关系|取消|不必了|别管了"
)
FILLER = r"ok(?:ay)?|well|then|please|all right|alright|gut|also|dann|bueno|vale|entonces|alors|bon|d'accord|хорошо|тогда|ну|好的?|那|吧|了|no|nein|non|нет|不"


def _whole(*alternatives: str) -> re.Pattern[str]:
    """Match a message that consists of the alternatives and fillers, the former at least once."""
    meant = "|".join(alternatives)
    gap = r"[\s,.!;:，。！…-]*"
    return re.compile(
        rf"^{gap}(?:(?:{FILLER})(?!\w){gap})*(?:{meant})(?!\w)?{gap}(?:(?:{FILLER}|{meant}){gap})*$",
        re.IGNORECASE,
    )


FAREWELL = _whole(GOODBYE)
LEAVING = _whole(GIVING_UP, GOODBYE)

ORDINALS = (
    ("first", "erste", "ersten", "erstes", "primero", "primera", "premier", "première", "первый", "первое", "第一"),
    ("second", "zweite", "zweiten", "segundo", "segunda", "deuxième", "второй", "второе", "第二"),
    ("third", "dritte", "dritten", "tercero", "tercera", "troisième", "третий", "третье", "第三"),
    ("fourth", "vierte", "vierten", "cuarto", "cuarta", "quatrième", "четвёртый", "четвертый", "第四"),
)
LAST = ("last", "letzte", "letzten", "último", "última", "dernier", "dernière", "последний", "最后")
NUMBER = re.compile(r"^(?:option|number|no\.?|nr\.?|#|номер|número|numéro)?\s*(\d)\s*[.)]?$", re.IGNORECASE)
NONE_OF_THEM = re.compile(
    r"^(?:no|none|neither|nothing|nein|keine?[rs]?|nichts|ninguno|ninguna|aucune?|нет|ни один|никакой|不|都不是|不是)"
    r"(?:\s+(?:of (?:these|them|those)|davon|de ellos|de estos|d'eux|из них))?[\s.!。]*$",
    re.IGNORECASE,
)
