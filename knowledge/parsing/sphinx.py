"""Sphinx: the directives and roles that documentation is written with and docutils does not know.

What only Sphinx could say, because it runs the program or reads its other pages, is left out and
counted. Nothing here opens a file.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives, roles
from docutils.statemachine import StringList

DIRECTIVE = re.compile(r"^[ \t]*\.\.[ \t]+(?:\|[^|\n]+\|[ \t]+)?([\w:+.-]+?)[ \t]?::", re.MULTILINE)
ROLE = re.compile(r":([A-Za-z][\w:+.-]*):`|`:([A-Za-z][\w:+.-]*):")
DEFAULT_ROLE = re.compile(r"^\.\.[ \t]+default-role::[ \t]+(\S+)", re.MULTILINE)
LONGEST_NAME = 60
TITLED = re.compile(r"(?P<title>.+?)\s*<(?P<target>[^<>]*)>", re.DOTALL)


class Options(dict[str, Any]):
    """Takes every option as it stands: which ones there are differs from extension to extension."""

    def __missing__(self, name: str) -> Any:
        return directives.unchanged


class Lenient(Directive):
    """A directive that takes whatever it is given."""

    optional_arguments = 1
    final_argument_whitespace = True
    has_content = True
    option_spec = Options(name=directives.unchanged)

    @property
    def argument(self) -> str:
        """What stands behind its name, on one line; nothing where that is its content."""
        return " ".join(self.arguments[0].split()) if self.is_on_its_line else ""

    @property
    def is_on_its_line(self) -> bool:
        """Whether anything stands behind its name, rather than on the next line."""
        first = self.block_text.split("\n", 1)[0]
        return bool(self.arguments) and not first.rstrip().endswith("::")

    def whole(self) -> StringList:
        """Return its content, with what only looked like an argument."""
        if self.arguments and not self.is_on_its_line:
            lines = self.arguments[0].split("\n")
            return StringList([*lines, "", *self.content], source=self.name)
        return self.content

    def inside(self) -> list[nodes.Node]:
        """Return what its content says."""
        element = nodes.Element()
        self.state.nested_parse(self.whole(), self.content_offset, element, match_titles=True)
        return list(element.children)

    def words(self, text: str) -> list[nodes.Node]:
        """Return a line of text, read as such."""
        children, _ = self.state.inline_text(text, self.lineno)
        return list(children)


class Silent(Lenient):
    """Says something to Sphinx and nothing to a reader."""

    def run(self) -> list[nodes.Node]:
        """Return nothing."""
        return []


class Missing(Lenient):
    """Stands for what Sphinx would fetch from elsewhere."""

    def run(self) -> list[nodes.Node]:
        """Return a note that it is missing, which nobody reads but `names_left_out`."""
        return [absent(self.name)]


def absent(name: str) -> nodes.comment:
    """Return what stands for a directive that was left out."""
    return nodes.comment("", "", directive=name)


class Code(Lenient):
    """A block of code."""

    def run(self) -> list[nodes.Node]:
        """Return it as it stands; without any, nothing."""
        language = self.argument or FIXED_LANGUAGES.get(self.name, "")
        text = "\n".join(self.whole())
        if not text.strip():
            return []
        caption = as_text(self.options.get("caption"))
        block = nodes.literal_block(text, text, language=language)
        return [*paragraph(*self.words(f"{caption}:")), block] if caption else [block]


class Change(Lenient):
    """Tells since when something is there, or is no more."""

    def run(self) -> list[nodes.Node]:
        """Return a sentence, and what is said about it."""
        version, _, rest = self.argument.partition(" ")
        sentence = f"{CHANGES[self.name]} {version}" if version else CHANGES[self.name]
        said = self.words(f"{sentence}: {rest}" if rest else f"{sentence}.")
        return [*paragraph(*said), *self.inside()]


class Section(Lenient):
    """Describes a function, class, option or the like: a section with its name for a heading."""

    def run(self) -> list[nodes.Node]:
        """Return the section."""
        signatures = [line.strip() for line in "\n".join(self.arguments).split("\n")]
        signatures = [line.rstrip("\\").strip() for line in signatures if line.strip()]
        kind = self.name.rpartition(":")[2]
        if not signatures or (kind in ANCHORS and not self.content):
            return self.inside()
        names = dict.fromkeys(short(each, self.name) for each in signatures)
        section = nodes.section(ids=[])
        section += nodes.title("", ", ".join(names))
        if [*names] != signatures:
            block = nodes.literal_block("\n".join(signatures), "\n".join(signatures))
            section += block
        section += self.inside()
        return [section]


class Titled(Lenient):
    """A tab, a card, something to unfold: what stands in it, under its title."""

    def run(self) -> list[nodes.Node]:
        """Return the title as a paragraph in bold, and what is inside."""
        if not self.argument:
            return self.inside()
        strong = nodes.strong("", "", *self.words(self.argument))
        return [*paragraph(strong), *self.inside()]


class SeeAlso(Lenient):
    """Names places to read on."""

    def run(self) -> list[nodes.Node]:
        """Return them behind "See also"."""
        said = self.words(f"See also: {self.argument}".strip())
        return [*paragraph(*said), *self.inside()]


class Plain(Lenient):
    """Stands around what it holds, or is unknown: what it holds is kept."""

    def run(self) -> list[nodes.Node]:
        """Return what is inside."""
        return self.inside()


def paragraph(*children: nodes.Node) -> list[nodes.Node]:
    """Return a paragraph of these."""
    return [nodes.paragraph("", "", *children)]


def as_text(value: Any) -> str:
    """Return an option's value on one line."""
    return " ".join(str(value or "").split())


def short(signature: str, kind: str) -> str:
    """Return the name in a signature, "()" behind it where it is called."""
    name = re.split(r"[(\[]|\s+->", signature, maxsplit=1)[0].strip() or signature
    prefix = kind.rpartition(":")[2]
    if prefix in PREFIXED:
        return f"{prefix} {name}"
    return f"{name}()" if signature.startswith(f"{name}(") else name


# By what stands behind the domain: "py:function" and "function" are one.
SILENT = (
    "toctree index highlight tabularcolumns currentmodule program module contents sectnum "
    "default-domain codeauthor sectionauthor moduleauthor rst-class cssclass todolist testsetup "
    "testcleanup namespace namespace-push namespace-pop todo section-numbering target-notes "
    "header footer local-contents minitoc raw"
)
MISSING = (
    "automodule autoclass autofunction automethod autoattribute autodata autoexception "
    "autodecorator autoproperty autosummary literalinclude include graphviz graph digraph "
    "inheritance-diagram plot uml mermaid click command-output program-output argparse autoprogram"
)
CODE = (
    "code code-block sourcecode testcode testoutput doctest ipython prompt productionlist "
    "code-tab parsed-literal"
)
CHANGES = {
    "versionadded": "Added in version",
    "version-added": "Added in version",
    "versionchanged": "Changed in version",
    "version-changed": "Changed in version",
    "deprecated": "Deprecated since version",
    "version-deprecated": "Deprecated since version",
    "versionremoved": "Removed in version",
    "version-removed": "Removed in version",
}
SECTIONS = (
    "function class method attribute data exception classmethod staticmethod property decorator "
    "decoratormethod coroutinefunction coroutinemethod awaitablefunction awaitablemethod "
    "cfunction macro type struct enum enumerator member var union alias concept option "
    "cmdoption envvar confval setting describe object directive:option opcode "
    "get post put delete patch head options any resource django-admin templatetag templatefilter "
    "fieldlookup token cmember ctype cvar cmacro pdbcommand monitoring-event event"
)
TITLED_NAMES = (
    "tab tab-item group-tab dropdown card grid-item-card grid-item collapse details tab-set-code "
    "topic sidebar"
)
# Often only a place to refer to, right above the heading of what they name.
ANCHORS = frozenset({"setting", "confval", "envvar", "templatetag", "templatefilter", "event"})
PREFIXED = frozenset({"class", "exception", "decorator", "struct", "enum", "union"})
FIXED_LANGUAGES = {"doctest": "python", "testcode": "python", "ipython": "python"}
KINDS: dict[str, type[Lenient]] = {
    **dict.fromkeys(SILENT.split(), Silent),
    **dict.fromkeys(MISSING.split(), Missing),
    **dict.fromkeys(CODE.split(), Code),
    **dict.fromkeys(CHANGES, Change),
    **dict.fromkeys(SECTIONS.split(), Section),
    **dict.fromkeys(TITLED_NAMES.split(), Titled),
    "seealso": SeeAlso,
    "rst:directive": Section,
    "rst:role": Section,
}
# Roles that name a program's parts, whatever domain they belong to.
LITERAL_ROLES = (
    "func meth class mod attr exc data obj const type option envvar file samp program command "
    "makevar code confval setting macro member struct enum enumerator var keyword token cmdoption "
    "regexp mailheader mimetype newsgroup djadmin djadminopt tfilter ttag lookup source src "
    "src_file gh-file"
)
LITERAL = frozenset(LITERAL_ROLES.split())
CALLED = frozenset({"func", "meth", "cfunc"})
REFERENCES = frozenset({"ref", "numref", "any", "keyword"})
PAGES = frozenset({"doc", "download"})


def register(text: str) -> None:
    """Make docutils know every directive and role that a text uses.

    Those of docutils itself stay but where Sphinx has its own meaning for them.
    """
    for name in {name.lower() for name in DIRECTIVE.findall(text) if len(name) <= LONGEST_NAME}:
        kind = KINDS.get(name) or KINDS.get(name.partition(":")[2])
        if kind is None and name not in OWN_DIRECTIVES:
            kind = Plain
        if kind is not None:
            directives.register_directive(name, kind)
    used = [name for pair in ROLE.findall(text) for name in pair] + DEFAULT_ROLE.findall(text)
    for name in {name.lower() for name in used if name and len(name) <= LONGEST_NAME}:
        if name not in OWN_ROLES:
            roles.register_local_role(name, spoken)


# docutils' own that say all there is to say, without opening anything.
DOCUTILS_ROLES = (
    "emphasis strong literal subscript sub superscript sup title-reference title t math pep "
    "pep-reference rfc rfc-reference raw"
)
OWN_ROLES = frozenset(DOCUTILS_ROLES.split())


DOCUTILS_DIRECTIVES = (
    "attention caution danger error hint important note tip warning admonition topic rubric "
    "epigraph highlights pull-quote compound container math table csv-table list-table image "
    "figure meta replace unicode date class role default-role title line-block"
)
OWN_DIRECTIVES = frozenset(DOCUTILS_DIRECTIVES.split())


def spoken(
    name: str,
    rawtext: str,
    text: str,
    lineno: int,
    inliner: Any,
    options: Any = None,
    content: Sequence[str] = (),
) -> tuple[list[Any], list[Any]]:
    """Return what a reader sees of a role: a title, a name of the program, or the words."""
    kind = name.lower().rpartition(":")[2]
    words = nodes.unescape(text).strip()
    titled = TITLED.fullmatch(words)
    if kind in REFERENCES and not titled:
        label = " ".join(words.lstrip("!").lower().split())
        return [nodes.inline("", re.sub(r"[-_/]+", " ", words), label=label)], []
    if titled and kind != "samp":
        words = titled["title"]
    elif kind in PAGES:
        words = re.sub(r"[-_]+", " ", words.rstrip("/").rpartition("/")[2])
    if kind in LITERAL or ":" in name:
        return [nodes.literal("", program_name(words, kind, is_titled=titled is not None))], []
    return [nodes.inline("", words)], []


def program_name(words: str, kind: str, *, is_titled: bool) -> str:
    """Return the name of a function, class or file as a reader sees it."""
    if is_titled:
        return words
    if words.startswith("~"):
        words = words.rpartition(".")[2] or words
    words = words.lstrip("!~.") or words
    return f"{words}()" if kind in CALLED and not words.endswith(")") else words


def names_left_out(document: nodes.document) -> Counter[str]:
    """Return the directives that were left out, each with how often."""
    notes = document.findall(nodes.comment)
    return Counter(str(note["directive"]) for note in notes if note.get("directive"))


FIELD = re.compile(r"(?P<kind>[a-z]+)(?:\s+(?P<about>.+))?", re.DOTALL)
FIELDS = {
    "returns": "Returns",
    "return": "Returns",
    "rtype": "Return type",
    "raises": "Raises",
    "raise": "Raises",
    "yields": "Yields",
}
PARAMETER_FIELDS = "param parameter arg argument key keyword kwarg kwparam ivar var cvar"
PARAMETERS = frozenset(PARAMETER_FIELDS.split())


def field_label(name: str) -> str:
    """Return the name of a field as a reader sees it: "param int count" as "count"."""
    match = FIELD.fullmatch(name.strip())
    if match is None:
        return name
    about = match["about"] or ""
    if match["kind"] in PARAMETERS and about:
        return about.split()[-1]
    if match["kind"] == "type" and about:
        return f"type of {about}"
    return f"{FIELDS[match['kind']]} {about}".strip() if match["kind"] in FIELDS else name
