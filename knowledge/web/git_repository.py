"""Git repository: the files of one commit, read with `git` and never checked out.

A bare copy of one commit of one branch is fetched, so no hook, filter, submodule or link of the
repository is ever followed, and nothing of it is run.
"""

import base64
import os
import re
import shutil
import signal
import subprocess
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp
from urllib.parse import quote, urlsplit

from django.conf import settings

from knowledge.errors import Unreadable
from knowledge.web.fetch import allowed_url, look_up, port_of, reachable_addresses

COMMIT = re.compile(r"[0-9a-f]{40,64}")
BRANCH = re.compile(r"(?!-)[\w./+@-]{1,200}")
SSH = re.compile(r"ssh://|[\w.-]+@[\w.-]+:(?!//)")
FILE, SPECIAL = "100644", {"100755": "100644"}
ULIMIT_BLOCK = 1024  # bytes, of dash and bash
# Where a file of a repository is shown, by host: repository, branch, path.
PAGES = {
    "github.com": "{0}/blob/{1}/{2}",
    "gitlab.com": "{0}/-/blob/{1}/{2}",
    "codeberg.org": "{0}/src/branch/{1}/{2}",
    "bitbucket.org": "{0}/src/{1}/{2}",
}


@dataclass(frozen=True)
class Repository:
    """Where a repository lies, and what of it is wanted."""

    address: str
    branch: str = ""
    folder: str = ""
    is_local: bool = False  # named at the command line: may be a path or lie behind ssh

    @property
    def name(self) -> str:
        """Its own name: the last part of the address."""
        path = re.split(r"[/:]", self.address.rstrip("/"))[-1]
        return path.removesuffix(".git") or "repository"

    @property
    def root(self) -> str:
        """What its files are known by: host and path, and the branch where one is named."""
        place = re.sub(r"^(?:\w+://)?(?:[\w.-]+@)?", "", self.address).strip("/").replace(":", "/")
        name = self.name if self.address.startswith(("/", ".", "file:")) else place
        return name.removesuffix(".git") + (f"@{self.branch}" if self.branch else "") or "git"

    def page(self, path: str, branch: str) -> str:
        """Return the address at which a reader finds a file; nothing where that is not known."""
        form = PAGES.get(urlsplit(self.address).hostname or "")
        base = self.address.rstrip("/").removesuffix(".git")
        return form.format(base, quote(branch), quote(path)) if form and branch else ""


def check_address(address: str, *, is_local: bool) -> None:
    """Raise Unreadable unless a repository may be read from there.

    Over the web that is https://, and http:// for hosts that FETCH_PRIVATE_HOSTS names; paths,
    file:// and ssh only where somebody names them at the command line.
    """
    if SSH.match(address) or "://" not in address or address.startswith("file://"):
        if not is_local:
            raise Unreadable(
                "repositories are read over https://; others can only be named at the command line"
            )
        if address.startswith("-"):
            raise Unreadable("it is no address of a repository")
        return
    if allowed_url(address).scheme != "https" and not is_local:
        named = allowed_url(address).netloc.decode()
        if named not in settings.FETCH_PRIVATE_HOSTS:
            raise Unreadable("repositories are read over https://")


@dataclass
class Commit:
    """One commit of a repository, as long as its copy is there."""

    repository: Repository
    sha: str
    branch: str
    home: Path  # of the copy
    blobs: dict[str, tuple[str, int]] = field(default_factory=dict)  # path → object, bytes

    def __post_init__(self) -> None:
        """Have the copy removed with the last who may read from it."""
        weakref.finalize(self, shutil.rmtree, self.home, ignore_errors=True)

    def read(self, path: str) -> bytes | None:
        """Return a file's content; None when there is no such file, or it is too large."""
        blob, size = self.blobs.get(path, ("", 0))
        if not blob or size > settings.MAX_UPLOAD_BYTES:
            return None
        return run(["cat-file", "blob", blob], cwd=self.home)


def head(repository: Repository) -> tuple[str, str]:
    """Return the commit that a branch is at now, and the branch's name. Raises Unreadable.

    Without a branch it is the one the repository calls its own. Nothing but names is fetched.
    """
    check_address(repository.address, is_local=repository.is_local)
    if repository.branch and not BRANCH.fullmatch(repository.branch):
        raise Unreadable(f"{repository.branch!r} is no name of a branch")
    wanted = f"refs/heads/{repository.branch}" if repository.branch else "HEAD"
    with TemporaryDirectory(prefix="docent-git-") as folder:
        words = ["ls-remote", "--symref", "--", repository.address, wanted]
        answer = remote(repository, words, Path(folder)).decode("utf-8", "replace")
    branch, sha = repository.branch, ""
    for line in answer.splitlines():
        value, _, name = line.partition("\t")
        if value.startswith("ref: refs/heads/"):
            branch = value.removeprefix("ref: refs/heads/")
        elif name == wanted and COMMIT.fullmatch(value):
            sha = value
    if not sha:
        raise Unreadable(f"it has no branch {repository.branch!r}" if branch else "it is empty")
    return sha, branch


def fetch_commit(repository: Repository, branch: str) -> Commit:
    """Return what a branch is at now, its files not yet read. Raises Unreadable."""
    commit = Commit(repository, "", branch, Path(mkdtemp(prefix="docent-git-")))
    run(["init", "--quiet", "--bare", "--template=", "."], cwd=commit.home)
    words = ["fetch", "--quiet", "--depth=1", "--no-tags", "--no-recurse-submodules"]
    wanted = f"refs/heads/{branch}" if branch else "HEAD"
    remote(repository, [*words, "--", repository.address, wanted], commit.home)
    commit.sha = run(["rev-parse", "FETCH_HEAD"], cwd=commit.home).decode().strip()
    tree = run(["ls-tree", "-r", "-z", "-l", "--full-tree", commit.sha], cwd=commit.home)
    commit.blobs |= blobs_of(tree)
    return commit


def blobs_of(tree: bytes) -> Iterator[tuple[str, tuple[str, int]]]:
    """Yield (path, (object, bytes)) of the files in what `git ls-tree -z -l` prints."""
    for entry in tree.split(b"\0"):
        about, _, path = entry.partition(b"\t")
        mode, kind, blob, size = (*about.decode().split(), "", "", "", "")[:4]
        name = path.decode("utf-8", "replace")
        if kind == "blob" and SPECIAL.get(mode, mode) == FILE and size.isdigit():
            yield name, (blob, int(size))


def remote(repository: Repository, words: Sequence[str], folder: Path) -> bytes:
    """Run a command that talks to the repository's server. Raises Unreadable.

    The connection goes to an address that was checked, whatever the name leads to later, and
    follows no redirect.
    """
    options = ["http.followRedirects=false"]
    secrets: dict[str, str] = {}
    if "://" in repository.address and not repository.address.startswith(("file:", "ssh:")):
        url = allowed_url(repository.address)
        first = reachable_addresses(url, look_up)[0]
        options.append(f"http.curloptResolve={url.host}:{port_of(url)}:{first}")
        if token := settings.GIT_TOKENS.get(url.host):
            code = base64.b64encode(f"x-access-token:{token}".encode()).decode()
            secrets = {
                "GIT_CONFIG_COUNT": "1",
                "GIT_CONFIG_KEY_0": f"http.{url.scheme}://{url.netloc.decode()}/.extraHeader",
                "GIT_CONFIG_VALUE_0": f"Authorization: Basic {code}",
            }
    given = [word for option in options for word in ("-c", option)]
    protocols = "https:http:ssh:file" if repository.is_local else "https:http"
    return run([*given, *words], cwd=folder, protocols=protocols, secrets=secrets)


def run(
    words: Sequence[str], *, cwd: Path, protocols: str = "", secrets: dict[str, str] | None = None
) -> bytes:
    """Run git within its limits and return what it printed. Raises Unreadable with its reason.

    Of the environment it sees what ssh needs and no setting of anybody; no file it writes may
    become larger than GIT_MAX_BYTES, and it has GIT_SECONDS.
    """
    kept = {
        name: os.environ[name] for name in ("PATH", "HOME", "SSH_AUTH_SOCK") if name in os.environ
    }
    environment = kept | {
        "GIT_ALLOW_PROTOCOL": protocols,
        "GIT_ASKPASS": "true",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_SSH_COMMAND": "ssh -oBatchMode=yes",
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C.UTF-8",
        **(secrets or {}),
    }
    blocks = str(settings.GIT_MAX_BYTES // ULIMIT_BLOCK)
    command = ["sh", "-c", 'ulimit -f "$0"; exec "$@"', blocks, "git", *words]
    try:
        process = subprocess.Popen(
            command, cwd=cwd, env=environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True,
        )  # fmt: skip
    except OSError as error:
        raise Unreadable(f"git cannot be started: {error.strerror}") from error
    try:
        out, problem = process.communicate(timeout=settings.GIT_SECONDS)
    except subprocess.TimeoutExpired as error:
        raise Unreadable(
            f"it did not arrive within {settings.GIT_SECONDS} seconds (GIT_SECONDS)"
        ) from error
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
    if process.returncode:
        raise Unreadable(reason(problem.decode("utf-8", "replace"), process.returncode))
    return out


def reason(problem: str, code: int) -> str:
    """Return why git failed, in a line."""
    if code in {-signal.SIGXFSZ, 128 + signal.SIGXFSZ} or "signal 25" in problem:
        return f"it is larger than {settings.GIT_MAX_BYTES:,} bytes (GIT_MAX_BYTES)"
    if "not found" in problem and code == 127:
        return "git is not installed here"
    lines = [line.strip() for line in problem.splitlines() if line.strip()]
    said = next((line for line in lines if line.startswith(("fatal:", "error:"))), "")
    if "could not read Username" in problem or "Authentication failed" in problem:
        return "it asks for a password: set a token for its host in GIT_TOKENS"
    return f"git failed: {said[:300] or code}"
