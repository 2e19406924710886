"""No file makes `Sketch.from_bytes` crash, hang, take much memory or run code; what it accepts can be used.

Random bytes rarely get past a checksum, so most changes here are made to the header, the counts and the parts of a
sound file, which is then packed again under a checksum that fits.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import resource
import struct
import subprocess
import sys
import time
import tracemalloc
import zlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pytest

import calibrant as cal
from calibrant.cli import main
from calibrant.data.sketches.sketch import Sketch
from calibrant.data.specs.sketch_file import BEGIN, FORMAT, MAGIC, stored_sketch
from calibrant.views.boxes import tables_of
from calibrant.views.rules import text_of

ODD = (
    None,
    True,
    False,
    -1,
    0,
    1,
    2,
    3,
    7,
    9,
    2**31,
    2**40,
    2**62,
    2**63 - 1,
    2**63,
    -(2**63),
    2**64,
    10**400,
    0.5,
    -0.0,
    1e308,
    math.nan,
    math.inf,
    "",
    "x",
    "other",
    "\ud800",
    "a" * 5000,
    [],
    {},
    [[]],
    [0],
    [1, 2],
    ["a", "a"],
    {"a": 1},
    [None],
)
SHARES = (0.22, 0.22, 0.22, 0.22, 0.06, 0.06)  # of the sound sketches: the last two are large
NUMBERS = (
    -1,
    0,
    1,
    2,
    255,
    65535,
    65536,
    2**20,
    2**30,
    2**31,
    2**32,
    2**40,
    2**53,
    2**62,
    2**63 - 1,
    -(2**63),
    0x7FF8 << 48,
)


@cache
def sound() -> tuple[bytes, ...]:
    """Sketches with and without groups, covariates and tests, small so that every byte of them is reached."""
    rng = np.random.default_rng([0x5F11E, 1])
    n = 24
    p = np.round(rng.uniform(size=n), 2)
    columns = {
        "y": (rng.uniform(size=n) < p).astype(np.int8),
        "p": p,
        "g": pa.array(["a", "b", None] * 8),
        "x": pa.array([*range(5), None] * 4, pa.float64()),
        "day": pa.array([18_000, 18_001, 18_010] * 8, pa.date32()),
    }
    asked: tuple[dict[str, Any], ...] = (
        {},
        {"by": ["g"]},
        {"by": ["g", "x"], "intersections": True},
        {"variables": "*"},
        {"by": "g", "variables": ["g", "x"], "tests": True},
        {"variables": ["x", "day"], "tests": True},
    )
    return tuple(cal.sketch(pa.table(columns), label="y", score="p", **more).to_bytes() for more in asked)


def opened(raw: bytes) -> tuple[dict[str, Any], bytearray]:
    head, _ = struct.unpack_from("<QQ", raw, BEGIN - 16)
    return json.loads(raw[BEGIN : BEGIN + head]), bytearray(zlib.decompress(raw[BEGIN + head :]))


def written(header: Any) -> bytes:
    try:
        plain = json.dumps(header, allow_nan=False)
        return msgspec.json.encode(msgspec.json.decode(plain))
    except (ValueError, TypeError, UnicodeError, msgspec.MsgspecError):
        return json.dumps(header).encode()


def packed(header: Any, body: bytes, small: bytes | None = None) -> bytes:
    """Pack with lengths and a checksum that fit, the header as it is written wherever that can be."""
    head = header if isinstance(header, bytes) else written(header)
    small = zlib.compress(body, 1) if small is None else small
    content = struct.pack("<QQ", len(head), len(small)) + head + small
    return MAGIC + hashlib.sha256(content).digest() + content


def signed(content: bytes) -> bytes:
    return MAGIC + hashlib.sha256(content).digest() + content


def places(node: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    """Every place of a header, as its container and key."""
    items = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, inner in items:
        found.append((node, key))
        places(inner, found)
    return found


def flipped(raw: bytes, rng: Any) -> bytes:
    out = bytearray(raw)
    for at in rng.integers(0, len(out), int(rng.integers(1, 9))):
        out[at] ^= 1 << int(rng.integers(0, 8))
    return bytes(out)


def cut(raw: bytes, rng: Any) -> bytes:
    return raw[: int(rng.integers(0, len(raw)))]


def spliced(raw: bytes, rng: Any) -> bytes:
    other = sound()[int(rng.integers(0, len(sound())))]
    a, b = int(rng.integers(0, len(raw))), int(rng.integers(0, len(other)))
    return raw[:a] + other[b:]


def flipped_and_signed(raw: bytes, rng: Any) -> bytes:
    return signed(flipped(raw[len(MAGIC) + 32 :], rng))


def header_changed(raw: bytes, rng: Any) -> bytes:
    header, body = opened(raw)
    for _ in range(int(rng.integers(1, 3))):
        found = places(header, [])
        near = [
            place for place in found if place[0] is header or place[0] is header.get("spec")
        ]  # else numbers drown names
        found = near if near and rng.random() < 0.4 else found
        node, key = found[int(rng.integers(0, len(found)))]
        edit = rng.random()
        if edit < 0.6:
            node[key] = copy.deepcopy(ODD[int(rng.integers(0, len(ODD)))])
        elif edit < 0.7 and isinstance(node[key], (int, float)) and not isinstance(node[key], bool):
            node[key] += [1, -1, 0.5][int(rng.integers(0, 3))]
        elif edit < 0.8:
            del node[key]
        elif edit < 0.9 and isinstance(node, list):
            node.append(copy.deepcopy(node[key]))
        elif isinstance(node, dict):
            node["more"] = 1
    return packed(header, bytes(body))


def counts_changed(raw: bytes, rng: Any) -> bytes:
    header, body = opened(raw)
    numbers = np.frombuffer(bytes(body), dtype="<i8").copy()
    some = np.flatnonzero(numbers) if rng.random() < 0.7 else np.arange(len(numbers))
    for at in some[rng.integers(0, len(some), int(rng.integers(1, 4)))]:
        step = rng.random()
        if step < 0.5:
            numbers[at] = NUMBERS[int(rng.integers(0, len(NUMBERS)))]
        else:
            with np.errstate(over="ignore"):
                numbers[at] += int(rng.integers(-2, 3))
    return packed(header, numbers.tobytes())


def moved(raw: bytes, rng: Any) -> bytes:
    """Pieces of the body cut out, doubled or exchanged; lengths sometimes along with them."""
    header, body = opened(raw)
    a, b = sorted(int(v) * 8 for v in rng.integers(0, len(body) // 8 + 1, 2))
    kind = int(rng.integers(0, 4))
    body = [body[:a] + body[b:], body[:b] + body[a:], body[:a] + body[a:b][::-1] + body[b:], body[: b + 3]][kind]
    if rng.random() < 0.5:
        i = int(rng.integers(0, 4))
        header["lengths"][i] += (b - a) // 16 * (-1 if kind == 0 else 1)
    return packed(header, bytes(body))


def two_way(raw: bytes, rng: Any) -> bytes:
    """The header of one sketch with the body of another, or one's spec in the other."""
    other, body = opened(sound()[int(rng.integers(0, len(sound())))])
    header, own = opened(raw)
    if rng.random() < 0.5:
        return packed(header, bytes(body))
    header[("spec", "parts", "lengths")[int(rng.integers(0, 3))]] = other["spec"]
    return packed(header, bytes(own))


def repacked(raw: bytes, rng: Any) -> bytes:
    """A body that is no zlib stream, ends early, goes on, or unpacks to very much more."""
    header, body = opened(raw)
    small = zlib.compress(bytes(body), 1)
    kinds = (
        lambda: small[: int(rng.integers(0, len(small)))],
        lambda: small + b"more",
        lambda: rng.bytes(40),
        lambda: zlib.compress(bytes(body) + bytes(1 << 22), 1),
        lambda: b"",
        lambda: flipped(small, rng),
    )
    if rng.random() < 0.3:
        header["lengths"] = [int(v) for v in rng.choice([0, 1, 2**20, 6 * 2**17, 2**40, 2**62], 4)]
    return packed(header, b"", kinds[int(rng.integers(0, len(kinds)))]())


def sizes_changed(raw: bytes, rng: Any) -> bytes:
    content = bytearray(raw[len(MAGIC) + 32 :])
    odd = (0, 1, 15, len(content), len(content) + 1, 2**31, 2**32, 2**63, 2**64 - 1)
    struct.pack_into("<Q", content, 8 * int(rng.integers(0, 2)), odd[int(rng.integers(0, len(odd)))])
    return signed(bytes(content))


CHANGES: tuple[Callable[[bytes, Any], bytes], ...] = (
    flipped,
    cut,
    spliced,
    flipped_and_signed,
    header_changed,
    header_changed,
    counts_changed,
    counts_changed,
    moved,
    two_way,
    repacked,
    sizes_changed,
)


def use(sketch: Sketch) -> None:
    """What is accepted must be whole: it can be written, merged and read, without a warning, to finite numbers."""
    again = Sketch.from_bytes(sketch.to_bytes())
    assert again.to_bytes() == sketch.to_bytes()
    assert 0 <= sketch.events <= sketch.n <= sketch.rows_read
    twice = sketch.copy().merge(again, allow_same=True)
    assert twice.n == 2 * sketch.n
    for question in (
        lambda: cal.certify.rounded(sketch, side="upper").interval.high,
        lambda: cal.measure.brier(sketch).value,
        lambda: cal.measure.vece(sketch, sketch.spec.codings[0].name).value if sketch.spec.codings else 0.0,
        lambda: cal.detect.local_calibration_test(sketch).p_value if sketch.spec.local else 0.0,
        lambda: len(sketch.parts["sample"].predictions().p) if "sample" in sketch.parts else 0,
        lambda: boxes_of(sketch) if "boxes" in sketch.parts else 0,
    ):
        with contextlib.suppress(cal.BadInput, cal.NotComputable):
            assert math.isfinite(question())


def boxes_of(sketch: Sketch) -> float:
    """Add up the gaps of all boxes, each of which can be named."""
    tables = tables_of(sketch, None, 2, 0)
    family = tables.family(0.0, 1)
    assert all(text_of(tables.rule(family, b)) for b in range(0, family.size, 97))
    return float(family.gap.sum())


def refused(raw: bytes) -> bool:
    """Tell whether the bytes are refused as they should be; use them if they are not."""
    start, sketch, why = time.process_time(), None, ""
    try:
        sketch = Sketch.from_bytes(raw)
    except cal.BadInput as e:
        why = str(e)
    assert time.process_time() - start < 15.0
    if sketch is None:
        assert "sketch" in why
        assert "\n" not in why
        assert len(why) < 400
        return True
    use(sketch)
    return False


def fuzz(seed: int, events: int) -> dict[str, list[int]]:
    """Try so many changed files; return how many of each kind were refused and accepted."""
    rng = np.random.default_rng([0xF022, seed])
    tally = {change.__name__: [0, 0] for change in CHANGES}
    for k in range(events):
        change = CHANGES[k % len(CHANGES)]
        raw = sound()[int(rng.choice(len(sound()), p=SHARES))]
        tally[change.__name__][0 if refused(change(raw, rng)) else 1] += 1
    return tally


@pytest.mark.slow
def test_sound_files_are_accepted() -> None:
    assert not any(refused(raw) for raw in sound())
    header, body = opened(sound()[4])
    assert not refused(packed(header, bytes(body)))


@cache
def bombs() -> dict[str, bytes]:
    """Small files that claim, or unpack to, very much."""
    header, body = opened(sound()[0])
    zeros = zlib.compress(bytes(1 << 26), 9)
    tested, _ = opened(sound()[4])
    deep = b'{"format": 6, "spec": ' + b"[" * 200_000 + b"]" * 200_000 + b"}"
    full = {**header, "lengths": [6 << 17, 3200, 0, 0]}
    names = [f"v{i}" for i in range(200)]
    wide = copy.deepcopy(opened(sound()[1])[0])
    wide["spec"]["variables"][0]["values"] = [str(i) for i in range(10**5)]
    crowd = copy.deepcopy(tested)
    crowd["spec"]["sample"], crowd["parts"]["sample"]["lines"][0] = 10**7, 10**7
    levels = copy.deepcopy(tested)
    levels["spec"]["local"]["levels"][0]["size"] = 2**60
    knots = copy.deepcopy(tested)
    knots["spec"]["local"]["lines"][0] |= {"knots": [j / 100 for j in range(600)], "whitening": [[0.5] * 600] * 600}
    edges = copy.deepcopy(opened(sound()[2])[0])
    edges["spec"]["variables"][1] |= {"values": [], "edges": list(range(10**6)), "kind": "number"}
    attributes = copy.deepcopy(opened(sound()[5])[0])
    attributes["spec"]["codings"] = [{**attributes["spec"]["codings"][0], "name": f"x{j}"} for j in range(3000)]
    attributes["spec"]["attributes"] = attributes["spec"]["attributes"][:1] + [
        {**attributes["spec"]["attributes"][1], "name": f"x{j}"} for j in range(3000)
    ]
    cells = copy.deepcopy(opened(sound()[5])[0])
    cells["spec"]["attributes"][1]["edges"] = list(range(10**6))
    draws = copy.deepcopy(tested)
    draws["spec"]["local"]["draws"] = 10**5
    shape = copy.deepcopy(tested)
    shape["parts"]["local"]["gram"] = [2, 2**31, 2**31]
    return {
        "more zeros than counts": packed(header, b"", zeros),
        "as many zeros as counts": packed(full, b"", zeros),
        "no end": packed(header, b"", zlib.compress(bytes(body)) + zeros),
        "deep": packed(deep, bytes(body)),
        "a long number": packed(json.dumps(header).replace("24", "9" * 100_000).encode(), bytes(body)),
        "levels": packed(levels, b"", zeros),
        "knots": packed(knots, b"", zeros),
        "edges": packed(edges, b"", zeros),
        "attributes": packed({**attributes, "spec": {**attributes["spec"], "local": None}}, b"", zeros),
        "cells of a trait": packed(cells, b"", zeros),
        "draws": packed(draws, b"", zeros),
        "header": signed(struct.pack("<QQ", 1 << 27, len(zeros)) + zeros),
        "groups": packed(wide, b"", zeros),
        "sample": packed(crowd, b"", zeros),
        "gram": packed(shape, b"", zeros),
        "groupings": packed({**header, "spec": {**header["spec"], "groupings": [names]}}, b""),
    }


@pytest.mark.slow
def test_small_files_do_not_take_much_memory() -> None:
    for name, raw in bombs().items():
        tracemalloc.start()
        try:
            assert refused(raw), name
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 60e6, name


@pytest.mark.parametrize("shape", [[], [0, 0, 0, 0], [1], [1, 1]], ids=str)
def test_every_array_of_another_shape_is_refused(shape: list[int]) -> None:
    for raw in sound():
        header, body = opened(raw)
        for part, arrays in header["parts"].items():
            for name in arrays:
                changed = copy.deepcopy(header)
                changed["parts"][part][name] = shape
                if arrays[name] != shape:
                    assert refused(packed(changed, bytes(body))), (part, name)


LITTLE = """
import resource, sys
import calibrant as cal
from calibrant.data.sketches.sketch import Sketch
small, large = (open(name, "rb").read() for name in sys.argv[1:])
assert Sketch.from_bytes(small).n == 24
taken = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (taken + (1 << 28), taken + (1 << 28)))
try:
    Sketch.from_bytes(large)
except cal.BadInput as e:
    print(e)
assert Sketch.from_bytes(small).n == 24
"""


@pytest.mark.slow
def test_a_sketch_that_finds_no_memory_is_refused_in_one_line(tmp_path: Path) -> None:
    large, body = opened(sound()[1])
    large["spec"]["variables"][0]["values"] = [str(i) for i in range(3900)]
    names = tmp_path / "small.sketch", tmp_path / "large.sketch"
    for name, raw in zip(names, (sound()[0], packed(large, bytes(body))), strict=True):
        name.write_bytes(raw)
    run = subprocess.run([sys.executable, "-c", LITTLE, *map(str, names)], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert run.stdout == "the sketch takes more memory than there is: audit it where there is more\n"


def test_files_that_are_no_sketch_are_refused_by_name(tmp_path: Path, capsys: Any) -> None:
    raw = sound()[0]
    newer = packed(*(lambda h, b: ({**h, "format": FORMAT + 1}, bytes(b)))(*opened(raw)))
    older = packed(*(lambda h, b: ({**h, "format": FORMAT - 1}, bytes(b)))(*opened(raw)))
    (tmp_path / "sound.sketch").write_bytes(raw)
    events = {
        "foreign": (b"PAR1" * 100, "not a calibrant sketch"),
        "empty": (b"", "not a calibrant sketch"),
        "cut": (raw[:-9], "truncated"),
        "begun": (raw[:30], "truncated"),
        "longer": (raw + b"x", "truncated"),
        "tampered": (raw.replace(b'"rows_read":24', b'"rows_read":25'), "truncated or was changed"),
        "newer": (newer, "newer calibrant: upgrade"),
        "older": (older, "older calibrant: make it again"),
    }
    for name, (content, message) in events.items():
        path = tmp_path / f"{name}.sketch"
        path.write_bytes(content)
        status = main(["merge", str(tmp_path / "sound.sketch"), str(path), "--out", str(tmp_path / "sum.sketch")])
        stated = capsys.readouterr().err
        assert status == 2
        assert f"{name}.sketch" in stated
        assert message in stated
        assert stated.count("\n") == 1
    assert not (tmp_path / "sum.sketch").exists()
    with (tmp_path / "vast.sketch").open("wb") as file:
        file.write(raw)
        file.truncate(1 << 36)
    for path in (tmp_path / "vast.sketch", tmp_path, tmp_path / "none.sketch"):
        with pytest.raises(cal.BadInput, match=r"truncated|cannot be read"):
            stored_sketch(path)


@pytest.mark.slow
def test_a_sketch_of_a_thousand_million_rows_is_sound() -> None:
    for raw in sound()[:4]:
        sketch = Sketch.from_bytes(raw)
        for _ in range(26):
            sketch.merge(sketch.copy(), allow_same=True)
        assert sketch.n == 24 << 26
        assert not refused(sketch.to_bytes())


@pytest.mark.slow
@pytest.mark.parametrize("events", [500, pytest.param(2000, marks=pytest.mark.slow)])
def test_changed_files_are_refused_or_whole(events: int) -> None:
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    tally = fuzz(1, events)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 400_000  # kB
    assert all(no > yes for no, yes in tally.values())
    assert tally["counts_changed"][0] >= 0.8 * sum(tally["counts_changed"])


@pytest.mark.nightly
@pytest.mark.parametrize("part", range(10))
def test_changed_files_are_refused_or_whole_100_000_times(part: int) -> None:
    tally = fuzz(100 + part, 10_000)
    print(part, tally)
    assert all(no > yes for no, yes in tally.values())
