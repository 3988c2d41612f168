"""Archive: a collection as one file, with its vectors, and back."""

from knowledge.archive.exporting import export
from knowledge.archive.importing import Restored, restore

__all__ = ["Restored", "export", "restore"]
