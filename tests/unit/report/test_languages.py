"""A report in German: no English sentence is left, names stay, and numbers are written as German writes them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from functools import cache
from html.parser import HTMLParser
from importlib.resources import files
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import calibrant as cal
from calibrant.apps.guidelines import tripod
from calibrant.cli import main
from calibrant.errors import BadInput
from calibrant.report import document as doc
from calibrant.report import html, markdown, terminal
from calibrant.report.brief import brief
from calibrant.report.languages.catalogue import HOLE, LANGUAGES, NUMBER, catalogue, numbers
from calibrant.report.languages.translator import Translator, in_language, names_of
from calibrant.report.outline import document
from calibrant.report.outputs import monitored
from calibrant.report.spans import Span, say
from frozen import freeze

GERMAN = catalogue("de")
QUICK = ("audit-over", "audit-small-groups", "audit-within")
UNREAD = ("script", "style", "pre", "code", "bdi")
# Words that every longer English sentence has, and that no German one has.
ENGLISH_WORDS = re.compile(
    r"(?<![-\w])(the|of|is|are|rows?|at (?:least|most)|not|and|with|for|by|from|points|which|that|each|over)\b"
)


@cache
def kept(case: str) -> tuple[cal.AuditRecord, ...]:
    texts = (content.decode() for name, content in freeze.kept()[case].items() if name.endswith(".json"))
    return tuple(cal.AuditRecord.from_json(text) for text in texts if '"calibrant/4"' in text)


def audits() -> Iterator[str]:
    yield from (case for case in freeze.kept() if case.startswith(("audit-", "example")))


class Words(HTMLParser):
    """What a page says: its text and the words of its attributes, without code and names of the data."""

    def __init__(self) -> None:
        super().__init__()
        self.said: list[str] = []
        self.inside: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in UNREAD:
            self.inside.append(tag)
        self.said += [
            v for k, v in attrs if k in ("aria-label", "title", "alt", "placeholder", "data-f", "data-l") and v
        ]

    def handle_endtag(self, tag: str) -> None:
        if tag in UNREAD:
            self.inside.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self.inside and data.strip():
            self.said.append(data)


def english(texts: list[str], names: set[str]) -> list[str]:
    """Texts that hold an English word outside of the words of the data."""
    known = sorted((n for n in names if len(n) > 2), key=len, reverse=True)
    of_data = re.compile("|".join(rf"(?<!\w){re.escape(n)}(?!\w)" for n in known) or "$^")
    return [
        t
        for t in texts
        if "…" not in t and ENGLISH_WORDS.search(of_data.sub("", t).replace("calibration-in-the-large", ""))
    ]


def unsaid(record: cal.AuditRecord) -> list[str]:
    """Sentences of a report, and of its first screen, that the catalogue lacks."""
    said = Translator(GERMAN, names_of(record))
    for of in (document(record), brief(record)):
        said.document(of)
    return [m for m in said.missing if "VERSION" not in m]


def holds_no_english(record: cal.AuditRecord) -> None:
    assert not unsaid(record)
    words = Words()
    words.feed(html.render(record, "de"))
    assert len(words.said) > 100
    assert not english(words.said, names_of(record))
    assert "Was zu tun ist: " in terminal.render(record, "de") or "Was zu tun ist" not in html.render(record, "de")
    for text in card_and_items(record):
        assert not english(text.splitlines(), names_of(record))


def card_and_items(record: cal.AuditRecord) -> tuple[str, str]:
    """What people read of a model card, and the items of TRIPOD+AI, without code and names of the data."""
    card = cal.tracking.model_card(record, language="de").split("---\n", 2)[2]
    texts = [re.sub(r"(?s)(`+).+?\1", "", text) for text in (card, tripod.markdown(record, "de"))]
    assert not any("auf Englisch." in text for text in texts)
    return texts[0], texts[1]


@pytest.mark.parametrize("case", QUICK)
def test_no_english_sentence_is_left_in_a_german_report(case: str) -> None:
    assert kept(case)
    for record in kept(case):
        holds_no_english(record)


@pytest.mark.slow(turns=6)
@pytest.mark.parametrize("case", [c for c in audits() if c not in QUICK])
def test_no_english_sentence_is_left_in_any_frozen_report(case: str) -> None:
    for record in kept(case):
        holds_no_english(record)


def written(folder: Path) -> None:
    """Files of outcomes by a horizon, with rows that are lost or come too late, and of three classes in two forms."""
    rng = np.random.default_rng(4)
    n, m = 1200, 1500
    entered = np.datetime64("2024-01-01") + rng.integers(0, 900, n)
    ward, rate = rng.choice(["A", "B"], n), rng.gamma(1.5, 0.0006, n)
    death = np.ceil(rng.exponential(1 / np.where(ward == "B", 2.5 * rate, rate)))
    followed = (np.datetime64("2026-06-30") - entered).astype(int)
    days, died = np.minimum(death, followed).astype(int), (death <= followed).astype(int)
    risks = {f"p{h}": 1 - np.exp(-h * rate) for h in (90, 365)}
    stays = {"entered": entered, "ward": ward, "days": days, "died": died, **risks}
    pq.write_table(pa.table(stays), folder / "stays.parquet")
    churn = {"tenure": days, "churn": died, "p365": risks["p365"], "ward": ward}
    pq.write_table(pa.table(churn), folder / "churn.parquet")
    branch, monthly = rng.choice(["x", "y"], m), rng.gamma(2.0, 0.004, m)
    moved = np.where(branch == "x", 0.06, 0.01)
    times = np.array([rng.exponential(1 / r, m) for r in (monthly, 0.01 + 0 * monthly, moved)])
    end = np.array(["default", "repaid", "moved"])[times.argmin(axis=0)]
    loans = {"pd": 1 - np.exp(-12 * monthly), "months": times.min(axis=0), "end": end, "branch": branch}
    pq.write_table(pa.table(loans), folder / "loans.parquet")
    names, p = np.array(["ant", "bee", "cow"]), rng.dirichlet([0.6] * 3, m)
    truth = p**0.5 / (p**0.5).sum(axis=1, keepdims=True)
    label = names[(rng.uniform(size=(m, 1)) > truth.cumsum(axis=1)).sum(axis=1)]
    classes = {f"p_{k}": p[:, i] for i, k in enumerate(names)} | {"label": label, "site": rng.choice(["N", "S"], m)}
    first = np.argsort(-p, axis=1)[:, :2]
    for j in range(2):
        classes |= {f"class_{j + 1}": names[first[:, j]], f"prob_{j + 1}": np.take_along_axis(p, first, 1)[:, j]}
    pq.write_table(pa.table(classes), folder / "classes.parquet")


STAYS = "stays.parquet --time days --event died --by ward --limit 0.03"
LATE = "--entered entered --closed 2026-06-30"
LOANS = (
    "loans.parquet --time months --event end --positive default --competing repaid --horizon 12 --score pd --by branch"
)
CLASSES = "classes.parquet --label label --by site"
KINDS = {
    "classes": f"{CLASSES} --score p_* --limit 0.05 --variables none",
    "classes in order": f"{CLASSES} --score p_* --ordered ant,bee,cow --limit 0.05 --limit-classes 0.1 --quick",
    "classes without a limit": f"{CLASSES} --score p_* --quick",
    "classes listed": f"{CLASSES} --score prob_* --listed class_* --limit 0.2 --quick",
    "followed long enough": f"{STAYS} --horizon 365 --score p365 {LATE} --quick",
    "several horizons": f"{STAYS} --horizon 90,365 --score p90,p365 {LATE} --quick",
    "several horizons, lost": f"{STAYS} --horizon 90,365 --score p90,p365 --way weights --quick",
    "by weights": f"{LOANS} --way weights --limit 0.05 --quick",
    "within levels": f"{LOANS} --way weights --within branch --limit 0.05 --quick",
    "nothing assumed": f"{LOANS} --way unknown --limit 0.3 --quick",
    "an event seen": "churn.parquet --label churn --score p365 --by ward --quick",
}


def kind(folder: Path, of: str, name: str) -> cal.AuditRecord:
    """The record of an audit of one of those files."""
    record = folder / f"{name}.json"
    assert main(["audit", *of.split(), "-o", str(record)]) in (0, 1, 3)
    return cal.AuditRecord.load(record)


@pytest.mark.slow(turns=8)
@pytest.mark.parametrize("name", KINDS)
def test_no_english_sentence_is_left_in_reports_of_classes_and_by_a_horizon(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    holds_no_english(kind(tmp_path, KINDS[name], "now"))


@pytest.mark.slow(turns=4)
def test_no_english_sentence_is_left_in_what_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    kind(tmp_path, KINDS["followed long enough"], "earlier")
    of = kind(tmp_path, f"{KINDS['followed long enough']} --against earlier.json", "now")
    assert of.curve("change").columns
    holds_no_english(of)


def test_a_sentence_without_an_entry_stays_english_and_is_counted() -> None:
    record = kept("audit-over")[0]
    of = document(record)
    new = doc.Paragraph(say("The moon is made of green cheese."))
    spoilt = replace(of, sections=(replace(of.sections[0], nodes=(new, *of.sections[0].nodes)), *of.sections[1:]))
    made = in_language(spoilt, record, "de")
    assert made.sections[0].nodes[0] == new
    last = made.sections[-1].nodes[-1]
    assert isinstance(last, doc.Paragraph)
    assert "auf Englisch" in last.text[0].text
    assert english(["The moon is made of green cheese."], set())


def test_english_is_untouched() -> None:
    record = kept("audit-over")[0]
    of = document(record)
    assert in_language(of, record, "en") is of
    assert html.render(record) == html.render(record, "en") == record.to_html()


def test_the_record_inside_a_german_page_is_the_same(tmp_path: Path) -> None:
    record = kept("audit-over")[0]
    page = tmp_path / "a.html"
    record.save(page, language="de")
    assert '<html lang="de">' in page.read_text(encoding="utf-8")
    assert cal.AuditRecord.load(page).to_json() == record.to_json()
    assert record.to_html(language="de") == page.read_text(encoding="utf-8")


def test_the_command_writes_and_prints_german(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    record, page, text = tmp_path / "r.json", tmp_path / "r.html", tmp_path / "r.md"
    record.write_text(kept("audit-over")[0].to_json(), encoding="utf-8")
    assert main(["report", str(record), "--language", "de", "-o", str(page), "-o", str(text)]) == 0
    assert "Was zu tun ist:" in capsys.readouterr().out
    assert "**Was zu tun ist.**" in text.read_text(encoding="utf-8")
    assert '<html lang="de">' in page.read_text(encoding="utf-8")


def test_an_unknown_language_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(BadInput, match="language='fr': a report is written in en or de"):
        kept("audit-over")[0].to_html(language="fr")
    assert main(["report", "r.json", "--language", "fr"]) == 2
    assert "--language" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("english", "german"),
    [
        ("1,234.5", "1\u202f234,5"),
        ("+0.9 (-0.7 to +1.0)", "+0,9 (-0,7 bis +1,0)"),
        ("95%", "95\u202f%"),
        ("2026-01-05", "05.01.2026"),
        ("1 group", "1 Gruppe"),
        ("2 groups", "2 Gruppen"),
        ("Two groups are undecided.", "Zwei Gruppen sind nicht entschieden."),
        ("One group is undecided.", "Eine Gruppe ist nicht entschieden."),
        ("North and one more are over it.", "North und eine weitere sind darüber."),
        ("One class and two groups are over it.", "Eine Klasse und zwei Gruppen sind darüber."),
        ("Predicted 8.4%, estimated 8.3%.", "Vorhergesagt 8,4\u202f%, geschätzt 8,3\u202f%."),
        ("site = the rows", "site = the rows"),
        ("home and away over 3", "home and away über 3"),
        ('site = "this or that" or west', 'site = "this or that" oder west'),
        ("site = West and age over 62.5", "site = West und age über 62,5"),
    ],
)
def test_numbers_plurals_and_names(english: str, german: str) -> None:
    said = Translator(GERMAN, {"site", "age", "home and away", "North"})
    assert said.string(english) == german
    assert not said.missing


def test_a_name_of_the_data_stays_inside_a_sentence() -> None:
    said = Translator(GERMAN, {"site"})
    text = said.text(say("Error is shown along ", Span("over the limit", "code"), "."))
    assert text == (Span("Fehler nachgewiesen entlang "), Span("over the limit", "code"), Span("."))


def entries() -> Iterator[tuple[str, str]]:
    for file in (files("calibrant.report.languages") / "de").iterdir():
        yield from tomllib.loads(file.read_text(encoding="utf-8")).get("sentences", {}).items()


def test_every_entry_fills_each_of_its_holes_and_stands_once() -> None:
    keys = [key for key, _ in entries()]
    assert len(keys) == len(set(keys)) > 1000
    for key, said in entries():
        order = iter(range(1, 99))
        used = [int(hole[1]) if hole[1] else next(order) for hole in HOLE.finditer(said)]
        assert sorted(used) == list(range(1, len(HOLE.findall(key)) + 1)), key


def test_what_the_script_says_is_there_to_be_replaced() -> None:
    script = html.asset("script.js")
    assert GERMAN.script
    for piece, said in GERMAN.script.items():
        assert piece in script, piece
        assert piece != said
    for word in ("Download", "Filter ${", "Show all", "this figure"):
        assert word not in html.scripted(script, "de")


def test_numbers_are_found_and_versions_are_not() -> None:
    assert NUMBER.findall("1,234 of 5.5 at 0.1.0 and v2 or 3%") == ["1,234", "5.5", "3"]
    assert numbers("0.1.0") == "0.1.0"
    assert "de" in LANGUAGES


def test_markdown_is_german_and_keeps_its_commands() -> None:
    record = kept("audit-over")[0]
    text = markdown.render(record, "de")
    assert text.startswith("# Kalibrierungsaudit von `log`")
    assert "calibrant repair" in text


# ---- a model card, and the items of TRIPOD+AI ----


def of_rows(n: int, *, sites: int = 1, off: float = 0.0, **settings: object) -> cal.AuditRecord:
    rng = np.random.default_rng(n)
    p, sex, site = rng.beta(2, 3, n), rng.choice(["f", "m"], n), np.arange(n) % sites
    y = rng.uniform(size=n) < np.clip(p + off * (sex == "f"), 0, 1)
    columns = {"sex": sex, "age": np.where(np.arange(n) % 9, rng.normal(50, 9, n), np.nan)}
    data = cal.predictions(y, p, columns, cluster=site.astype(str) if sites > 1 else None)
    return cal.audit(data, by="sex", **settings)


ABOUT = {"model": "risk 3", "intended_use": "triage", "population": "adults", "period": "2024", "set_by": "the board"}
RECORDS: dict[str, tuple[Callable[[], cal.AuditRecord], str]] = {
    "groups and repairs": (lambda: of_rows(1500, off=0.25, limit=0.02, threshold=[0.3]), "Empfohlen: "),
    "clusters": (lambda: of_rows(1200, sites=8, limit=0.3, about=ABOUT), "ein neuer Cluster hat "),
    "undecided": (lambda: of_rows(200, limit=0.05, quick=True), "Nicht entschieden: 2 von 2 Gruppen"),
}


@pytest.mark.parametrize("name", RECORDS)
def test_no_english_sentence_is_left_in_a_model_card_and_the_items_of_tripod(name: str) -> None:
    make, said = RECORDS[name]
    record = make()
    card, items = card_and_items(record)
    assert not english([*card.splitlines(), *items.splitlines()], names_of(record))
    assert card.startswith("\n## Kalibrierung\n")
    assert "Ein Punkt ist eins von hundert." in card
    assert said in items
    assert "### 23a Güte mit Intervallen, nach Untergruppen" in items
    assert "`alle`: Kalibrierungsfehler mindestens " in tripod.markdown(record, "de")


def test_a_sentence_of_a_card_without_an_entry_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    record = kept("audit-over")[0]
    monkeypatch.setitem(tripod.ABSENT, "3b", "the moon is made of green cheese")
    assert tripod.markdown(record, "de").endswith("\n\nEin Satz dieses Berichts steht auf Englisch.\n")
    assert "auf Englisch." not in tripod.markdown(record)


def test_the_command_writes_card_and_items_in_german_and_tables_in_english(tmp_path: Path) -> None:
    record = kept("audit-over")[0]
    path, card, items, table = (tmp_path / name for name in ("r.json", "card.md", "items.md", "items.csv"))
    record.save(path)
    outputs = (f"model-card:{card}", f"tripod:{items}", f"tripod:{table}", f"{tmp_path / 'all'}/")
    assert main(["report", str(path), "--language", "de", *(word for out in outputs for word in ("-o", out))]) == 0
    read = cal.AuditRecord.load(path)
    german, english_card = cal.tracking.model_card(read, language="de"), cal.tracking.model_card(read)
    assert card.read_text(encoding="utf-8") == german != english_card
    assert german.split("---\n")[1] == english_card.split("---\n")[1], "the front matter is for programs"
    assert items.read_text(encoding="utf-8") == tripod.markdown(read, "de") != tripod.markdown(read)
    assert (tmp_path / "all" / "tripod.md").read_text(encoding="utf-8") == tripod.markdown(read, "de")
    assert table.read_text(encoding="utf-8") == tripod.as_csv(read)
    with pytest.raises(BadInput, match="language='fr'"):
        cal.tracking.model_card(read, language="fr")


# ---- a monitor ----


def day_of_rows(seed: int, n: int = 500, shift: float = 0.0, icu: float = 0.2, few: int = 0) -> pa.Table:
    """A day's rows; `shift` of ward A, and `few` rows of a ward with less than 20."""
    rng = np.random.default_rng(seed)
    p, ward = rng.beta(2, 4, n).round(3), rng.choice(["ICU", "A", "B"], n, p=[icu, 0.5, 0.5 - icu])
    ward[:few] = "rare"
    y = (rng.uniform(size=n) < np.clip(p + shift * (ward == "A"), 0, 1)).astype(int)
    sex, person = rng.choice(["f", "m"], n), np.arange(n) // 2
    return pa.table({"y": y, "p": p, "ward": ward, "sex": sex, "age": rng.normal(50, 9, n).round(1), "person": person})


USUAL: dict[str, object] = {"label": "y", "score": "p", "by": "ward", "variables": ["sex", "age"], "limit": 0.1}


def watched(days: int = 4, *, dated: bool = True, rows: int = 500, **settings: object) -> cal.Monitor:
    """A monitor after some days, of which ward A is off from the third on if `shift` says so."""
    shift, icu = float(settings.pop("shift", 0.0)), float(settings.pop("icu", 0.2))
    watch = cal.Monitor(settings.pop("reference", None), **(USUAL | settings))
    for day in range(1, days + 1):
        late = day > 2
        some = day_of_rows(day, rows, shift * late, icu if late else 0.2, few=3)
        watch.update(some, at=f"2026-01-{day:02}" if dated else day)
    return watch


def two_alarms() -> cal.Monitor:
    """Ward A is off, then the other way round ward B."""
    watch = cal.Monitor(**(USUAL | {"limit": 0.02}))
    for day in range(1, 11):
        of = day_of_rows(day, 1000, 0.3 * (3 < day < 6))
        if day > 7:
            b = np.array(of["ward"].to_pylist()) == "B"
            of = of.set_column(0, "y", pa.array(np.where(b, 0, of["y"].to_numpy())))
        watch.update(of, at=day)
    return watch


def early() -> cal.Monitor:
    """Before the first day is complete: drift alone."""
    watch = cal.Monitor(day_of_rows(99, 3000), **USUAL)
    for day in (1, 2):
        watch.predicted(watch.rows_of(day_of_rows(day, 600, icu=0.45)), day)
    return watch


def nothing_to_watch() -> cal.Monitor:
    """A reference whose scores are all 0, and a column that a fifth of it does not show."""
    zero = day_of_rows(0, 600).set_column(1, "p", pa.array(np.zeros(600)))
    rare = np.concatenate([np.zeros(580), np.arange(1.0, 21.0)])
    watch = cal.Monitor(zero.set_column(4, "age", pa.array(rare)), **USUAL)
    watch.update(day_of_rows(1, 600).set_column(4, "age", pa.array(np.ones(600))), at=1)
    return watch


def unlabelled() -> cal.Monitor:
    """Rows without a label when their day closed."""
    watch = cal.Monitor(**USUAL)
    for day in (1, 2):
        watch.entered(watch.rows_of(day_of_rows(day)), f"2026-02-0{day}", unlabelled=12)
    return watch


WAITING = ((736_000, 300, 120), (736_001, 310, 0))
MONITORS: dict[str, Callable[[], cal.Monitor]] = {
    "within": lambda: watched(6, rows=3000, limit=0.2),
    "within, groups too small": lambda: watched(6, rows=3000, limit=0.2, variables=None, window=2),
    "undecided": lambda: watched(1, rows=150, limit=0.03),
    "undecided, everyone within": lambda: watched(3, limit=0.12),
    "alarm": lambda: watched(6, shift=0.3),
    "two alarms": two_alarms,
    "no limit": lambda: watched(3, limit=None),
    "gap": lambda: watched(3, judge="gap", dated=False),
    "over by the gap": lambda: watched(8, rows=2000, shift=0.4, judge="gap"),
    "drift": lambda: watched(6, reference=day_of_rows(99, 3000), icu=0.45),
    "drift of a few": lambda: watched(3, reference=day_of_rows(99, 3000)),
    "before the first day": early,
    "what is not watched": nothing_to_watch,
    "clusters": lambda: watched(3, cluster="person", reference=day_of_rows(99, 3000)),
    "shocks": lambda: watched(3, shared_shocks=True),
    "late labels": unlabelled,
}


def slower(names: Collection[str], quick: Collection[str]) -> list[object]:
    """Cases of which all but a few are slow."""
    return [n if n in quick else pytest.param(n, marks=pytest.mark.slow(turns=4)) for n in names]


@pytest.mark.parametrize("name", slower(MONITORS, ("alarm", "before the first day")))
def test_no_english_sentence_is_left_in_what_a_monitor_writes(name: str, tmp_path: Path) -> None:
    watch = MONITORS[name]()
    of_data = monitored.names(watch)
    said = Translator(GERMAN, of_data)
    if watch.last is None:
        assert watch.drift is not None
        said.document(monitored._early_document(watch, WAITING))
    else:
        said.document(monitored.document(watch, watch.state, WAITING))
    assert not said.missing
    for waiting in ((), WAITING[:1], WAITING):
        words = Words()
        words.feed(monitored.content(watch, "page.html", waiting, "de"))
        assert not english(words.said, of_data | {"calibration audit"})
        for text in (monitored.content(watch, "a.md", waiting, "de"), monitored.lines(watch, waiting, "de")):
            assert not english(text.splitlines(), of_data)
    page = watch.report(tmp_path / "page.html", language="de").read_text(encoding="utf-8")
    assert '<html lang="de">' in page
    assert "auf Englisch" not in page
    assert watch.report(tmp_path / "a.html").read_text() == watch.report(tmp_path / "b.html", language="en").read_text()


@pytest.mark.slow(turns=4)
def test_kinds_of_monitors_are_what_they_are_called() -> None:
    states = {name: make().state for name, make in MONITORS.items() if name in ("within", "alarm", "undecided")}
    assert states["within"].verdict == "within"
    assert states["undecided"].verdict == "undecided"
    assert states["alarm"].lasting is not None
    drift = MONITORS["drift"]().drift
    assert drift is not None
    assert drift.changes


def test_the_command_watches_in_german(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home, day = str(tmp_path / "m"), tmp_path / "day.parquet"
    columns = ("--label", "y", "--score", "p", "--by", "ward", "--key", "person", "--labels-within", "1")
    reference = tmp_path / "reference.parquet"
    pq.write_table(day_of_rows(99, 3000), reference)
    assert main(["watch", "start", home, *columns, "--reference", str(reference)]) == 0
    capsys.readouterr()
    some = day_of_rows(1, 600, icu=0.45).drop_columns(["person"]).append_column("person", pa.array(np.arange(600)))
    pq.write_table(some, day)
    german = ("--language", "de")
    assert main(["watch", "predictions", home, str(day), "--at", "2026-01-01", *german]) == 0
    out = capsys.readouterr().out
    assert out.startswith("01.01.2026: 600 Vorhersagen warten auf ihr Label\n")
    assert "Drift, die nichts über die Kalibrierung sagt: ward = " in out
    assert main(["watch", "labels", home, str(day), "--at", "2026-01-01", *german]) == 0
    assert main(["watch", "labels", home, "--at", "2026-01-03", *german]) == 0
    assert main(["watch", "report", home, *german]) == 0
    out += capsys.readouterr().out
    assert not english(out.splitlines(), set())
    whole = str(tmp_path / "n")
    assert main(["watch", "start", whole, *columns[:6], "--limit", "0.2"]) == 0
    capsys.readouterr()
    assert main(["watch", "update", whole, str(day), "--at", "3", *german]) == 0
    out = capsys.readouterr().out
    assert "Letzte 28 Tage" in out
    assert not english(out.splitlines(), set())
    page = tmp_path / "page.html"
    assert main(["watch", "report", whole, *german, "-o", str(page)]) == 0
    assert '<html lang="de">' in page.read_text(encoding="utf-8")
    assert main(["watch", "report", whole, "--language", "fr"]) == 2
