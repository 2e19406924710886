"""At build time: the README with links that work where it is shown alone, and the project's addresses.

Both come from one setting, the repository's address (``https://HOST/OWNER/NAME``): ``CALIBRANT_REPOSITORY`` in the
environment of the build, else ``repository`` of ``[tool.hatch.metadata.hooks.custom]``. Without one links stay
relative, and no address is given.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE = re.compile(r"(!?)(\[[^\]]*\])\((?![a-z]+:|#)([^)\s]+)\)")  # a link or a picture that names a file


def absolute(readme: str, repository: str, ref: str) -> str:
    """Return Markdown whose links to files of the repository are those to the same files at a tag."""
    base = repository.rstrip("/")

    def link(found: re.Match[str]) -> str:
        picture, words, path = found.groups()
        return f"{picture}{words}({base}/{'raw' if picture else 'blob'}/{ref}/{path})"

    return RELATIVE.sub(link, readme)


def addresses(repository: str) -> dict[str, str]:
    """Return the addresses that an index shows beside the project."""
    base = repository.rstrip("/")
    return {
        "Source": base,
        "Documentation": f"{base}/blob/main/docs/index.md",
        "Changelog": f"{base}/blob/main/CHANGELOG.md",
        "Issues": f"{base}/issues",
    }


class Addresses(MetadataHookInterface):  # type: ignore[misc]  # hatchling has no types where mypy runs without it
    """Fill in the readme and, where the repository's address is known, the project's URLs."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set what `pyproject.toml` lists as dynamic."""
        repository = os.environ.get("CALIBRANT_REPOSITORY") or self.config.get("repository", "")
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        if repository:
            version = re.search(
                r'^__version__ = "([^"]+)"',
                Path(self.root, "src/calibrant/__init__.py").read_text(encoding="utf-8"),
                re.M,
            )
            text = absolute(text, repository, f"v{version[1]}" if version else "main")
            metadata["urls"] = addresses(repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
