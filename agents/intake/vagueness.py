"""Vagueness: how little a question says about what it is about."""

from agents.intake.wording import REFERENCE
from agents.terms import content_words

# From here on asking back is better than searching for nothing in particular (SPEC section 5).
VAGUE = 0.6
# Words that fit any question, in each of our languages: they do not say what it is about.
GENERAL = frozenset(
    """
    set setup use using used work works working do does make get fix stop change add remove
    enable disable install configure check find see show tell explain know want need try happen
    happens wrong problem problems issue issues error errors question questions thing things stuff
    something anything everything way ways option options help broken run turn put mean means
    possible understand info information detail details exactly actually really support give look
    talk take new able best right
    einrichten einstellen benutzen verwenden nutzen funktioniert machen mache mach richte stelle
    ändern hinzufügen entfernen aktivieren installieren konfigurieren finden zeigen erklären wissen
    problem fehler frage sache ding hilfe kaputt tun tue verstehe
    configurar usar utilizar funciona funcionar hacer hago cambiar añadir quitar activar instalar
    encontrar mostrar explicar saber problema error pregunta cosa ayuda configuro instalo uso
    configurer utiliser fonctionne marche faire fais changer ajouter supprimer activer installer
    trouver montrer expliquer savoir problème erreur question chose aide configure installe
    настроить использовать работает делать сделать изменить добавить удалить включить установить
    найти показать объяснить знать проблема ошибка вопрос помощь помогите настраивать
    设置 使用 工作 问题 帮助 怎么 如何 什么 么设 么用 这个 那个 个怎 安装 置它 用它 装它 为什
    """.split()
)


def vagueness(question: str) -> float:
    """How vague a question is: 0 when it names its subject, 1 when nothing in it does."""
    telling = [word for word in content_words(question) if word not in GENERAL]
    refers = REFERENCE.search(question) is not None
    if not telling:
        return 1.0 if refers else 0.9
    if len(telling) == 1:
        return 0.4 if refers else 0.2
    return 0.1 if refers else 0.0
