"""Archive: a collection as one file, with its vectors, and back."""

from knowledge.archive.export import export
from knowledge.archive.restore import Restored, restore

__all__ = ["Restored", "export", "restore"]
