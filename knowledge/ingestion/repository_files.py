"""Repository files: what of a Git repository is to be taken in, and each of it."""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from django.conf import settings

from knowledge.errors import Unreadable
from knowledge.ingestion.inclusion import with_inclusions
from knowledge.ingestion.sources import as_known, why_member_ignored
from knowledge.web.git_repository import Commit, Repository

SHORT = 10  # digits of a commit


@dataclass(frozen=True)
class RepositoryFile:
    """A file of a commit."""

    origin: str
    path: str  # within the repository
    commit: Commit

    @property
    def location(self) -> str:
        """What is known of its place, as JSON: where it is shown, and its commit as its edition."""
        known = {"edition": self.commit.sha[:SHORT]}
        if page := self.commit.repository.page(self.path, self.commit.branch):
            known["source"] = page
        return json.dumps(known)

    def read(self) -> bytes:
        """Return its content. Raises Unreadable."""
        body = self.commit.read(self.path)
        if body is None:
            limit = settings.MAX_UPLOAD_BYTES
            raise Unreadable(f"it is larger than {limit:,} bytes (MAX_UPLOAD_BYTES)")
        return with_inclusions(as_known(self.path), body, self.commit.read)


@dataclass(frozen=True)
class Wanted:
    """What of a repository is to be taken in, as the item of a job says it."""

    repository: Repository
    patterns: Sequence[str] = ()
    known: str = ""  # commit that was read before: the same one is not read again

    @classmethod
    def read(cls, text: str) -> "Wanted":
        """Return it from its JSON."""
        values = json.loads(text)
        return cls(**(values | {"repository": Repository(**values["repository"])}))

    @property
    def root(self) -> str:
        """What the origins of its files begin with."""
        return self.repository.root

    @property
    def folder(self) -> str:
        """What the origins of all files that are wanted begin with."""
        folder = self.repository.folder
        return f"{self.root}/{folder}" if folder else self.root

    def files(self, commit: Commit, ignored: Counter[str]) -> Iterator[RepositoryFile]:
        """Yield what is wanted of a commit; what is passed over is counted, by reason."""
        for path in commit.blobs:
            if not f"{self.root}/{path}".startswith(f"{self.folder}/"):
                continue
            if self.patterns and not matches(path, self.patterns):
                ignored["another pattern"] += 1
            elif reason := why_member_ignored(path):
                ignored[reason] += 1
            else:
                yield RepositoryFile(f"{self.root}/{path}", path, commit)


def matches(path: str, patterns: Sequence[str]) -> bool:
    """Tell whether a path, or the name at its end, is of one of the patterns."""
    name = path.rpartition("/")[2]
    return any(fnmatchcase(each, pattern) for pattern in patterns for each in (path, name))
