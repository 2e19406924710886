"""The frozen outputs: made anew into the archive, or made again and compared with it.

python tests/frozen/freeze.py                      make the archive
python tests/frozen/freeze.py --compare [ARCHIVE]  say which words differ; exit 1 if any do
python tests/frozen/freeze.py --only NAME,NAME     of these cases alone (with --compare)
"""

from __future__ import annotations

import argparse
import functools
import io
import lzma
import os
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

HERE = Path(__file__).parent
if str(HERE.parent) not in sys.path:
    sys.path.insert(0, str(HERE.parent))
for library in ("OMP", "OPENBLAS", "MKL"):  # as tests/conftest.py has it; before NumPy is loaded
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")

from frozen.bench import Outputs, bench, versions  # noqa: E402
from frozen.cases import CASES, NAMES  # noqa: E402
from frozen.compared import NUMBERS, Differences, compared  # noqa: E402

ARCHIVE, VERSIONS = HERE / "outputs.tar.xz", "versions.txt"
FILTERS = [{"id": lzma.FILTER_LZMA2, "preset": 9 | lzma.PRESET_EXTREME, "dict_size": 1 << 26}]


def made(name: str) -> Outputs:
    """The outputs of a case, made now."""
    with bench(NAMES) as at:
        CASES[name](at)
        return at.outputs


def packed(outputs: Mapping[str, Outputs]) -> bytes:
    """Outputs as an archive; the same outputs are the same bytes."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as tar:
        files = {f"{case}/{name}": content for case, of in outputs.items() for name, content in of.items()}
        files[VERSIONS] = "".join(f"{k} {v}\n" for k, v in versions().items()).encode()
        for name in sorted(files, key=lambda n: (n.rpartition(".")[2], n)):  # like beside like, for the compressor
            entry = tarfile.TarInfo(name)
            entry.size = len(files[name])
            tar.addfile(entry, io.BytesIO(files[name]))
    return lzma.compress(whole.getvalue(), lzma.FORMAT_XZ, filters=FILTERS)


@functools.cache
def kept(archive: Path = ARCHIVE) -> dict[str, Outputs]:
    """The outputs that an archive holds, by case."""
    out: dict[str, Outputs] = {}
    with tarfile.open(archive, "r:xz") as tar:
        for entry in tar:
            case, _, name = entry.name.partition("/")
            content = tar.extractfile(entry)
            if name:
                out.setdefault(case, {})[name] = content.read() if content else b""
    return out


@functools.cache
def kept_versions(archive: Path = ARCHIVE) -> dict[str, str]:
    """The versions that an archive was made with."""
    with tarfile.open(archive, "r:xz") as tar:
        content = tar.extractfile(VERSIONS)
        lines = content.read().decode().splitlines() if content else []
    return dict(line.split() for line in lines)


def every(names: Iterable[str]) -> dict[str, Outputs]:
    """The outputs of cases, made now, with the CPU seconds of each on standard error."""
    out = {}
    for name in names:
        start = time.process_time()
        out[name] = made(name)
        size = sum(map(len, out[name].values()))
        print(f"{time.process_time() - start:6.1f} CPU-s {size:9,} bytes {name}", file=sys.stderr, flush=True)
    print(f"{time.process_time():6.1f} CPU-s of {len(out)} cases", file=sys.stderr)
    return out


def told(found: Mapping[str, Differences]) -> str:
    """The differences: each file of each case, then each pair of words once, with how often over all cases."""
    lines, words, places = [], Counter[tuple[str, str]](), dict[tuple[str, str], str]()
    for case, differences in found.items():
        lines.append(f"{case}: {len(differences.files)} files differ")
        lines += [f"  {name}: {what}" for name, what in differences.files]
        words.update(differences.words)
        for pair, name in differences.places.items():
            places.setdefault(pair, f"{case}/{name}")
    lines.append("")
    for pair, count in words.most_common():
        old, new = pair if pair == NUMBERS else map(repr, pair)
        lines.append(f"{count:6d} x {old} -> {new}   (first in {places[pair]})")
    return "\n".join(lines)


def main() -> int:
    """Make the archive, or compare with it."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--compare", nargs="?", type=Path, const=ARCHIVE, metavar="ARCHIVE")
    p.add_argument("--only", metavar="NAMES", help="of these cases, separated by commas; goes with --compare")
    p.add_argument(
        "--out", type=Path, default=ARCHIVE, help=f"where to write (default {ARCHIVE.name} beside this file)"
    )
    a = p.parse_args()
    if a.only and a.compare is None and a.out == ARCHIVE:
        p.error("--only goes with --compare, or with --out: the archive holds every case")
    chosen = a.only.split(",") if a.only else list(CASES)
    new = every(chosen)
    if a.compare is None:
        a.out.write_bytes(packed(new))
        print(f"{a.out}: {len(new)} cases, {sum(map(len, new.values()))} files, {a.out.stat().st_size:,} bytes")
        return 0
    old = {case: of for case, of in kept(a.compare).items() if case in chosen or not a.only}
    found = compared(old, new)
    print(told(found) if found else f"{len(new)} cases: nothing differs")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
