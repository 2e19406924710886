"""What every two sentences of a report must agree on: small functions, each of which yields what contradicts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from agree.reading import Read, numbers, plain, ranges, read
from agree.records import Audited
from calibrant.report import findings as facts

Rule = Callable[[Audited, Read], Iterator[str]]
RULES: list[Rule] = []
ROUNDED = 0.16  # points, between a gap and the difference of two rates that are printed with one digit
ASCII_MINUS = re.compile(r"(?<![\w.-])-\d")
ONE = re.compile(r"(?<![\d.,])1 (rows|stays|clusters|groups|subgroups|variables|columns|outcomes)\b")


def rule(of: Rule) -> Rule:
    RULES.append(of)
    return of


def contradictions(of: Audited) -> list[str]:
    """Hold every sentence of a report against every other; return what contradicts, by the name of its rule."""
    seen = read(of.markdown)
    return [f"{r.__name__}: {said}" for r in RULES for said in r(of, seen)]


@rule
def a_range_holds_its_value(of: Audited, seen: Read) -> Iterator[str]:
    cells = [(str(row), cell) for t in seen.tables for row in t.rows for cell in row.values()]
    for where, text in (*cells, *seen.sentences):
        for value, low, high in ranges(text):
            if not low <= value <= high:
                yield f"{value:g} lies outside {low:g} to {high:g}: {where}"


@rule
def nobody_plans_for_within_where_the_estimate_says_over(of: Audited, seen: Read) -> Iterator[str]:
    for f in (of.record.everyone, *of.record.groups):
        limit = f.limit
        estimate = f.gap.value if f.by == "gap" else f.error.value
        if limit is not None and f.rows_at_least and facts.need_of(f) and abs(estimate) > limit:
            yield f"{f.id}: so many rows show it within {limit:g}, at an estimate of {estimate:g}"


@rule
def rates_differ_by_the_gap(of: Audited, seen: Read) -> Iterator[str]:
    for table in seen.with_heads("Model says", "Happened", "Gap"):
        says, happened, gap = (next(h for h in table.heads if k in h) for k in ("Model says", "Happened", "Gap"))
        for row in table.rows:
            rates = [numbers(row[says]), numbers(row[happened])]
            value = re.match(r"[+-]?\d+(\.\d+)?(?= \()", row[gap])
            if value and all(len(r) == 1 for r in rates):
                apart = rates[1][0] - rates[0][0]
                if abs(apart - float(value[0])) > ROUNDED and "Rates are of the rows" not in seen.text:
                    yield f"{row[says]} and {row[happened]}, but a gap of {row[gap]}: {row[table.heads[0]]}"


@rule
def every_group_is_counted_once(of: Audited, seen: Read) -> Iterator[str]:
    for table in seen.with_heads("Check", "Numbers"):
        for row in table.rows:
            if row["Check"].startswith("Every group:") and "undecided" in row["Numbers"]:
                counted = sum(int(n) for n in numbers(row["Numbers"]))
                if counted != len(of.record.groups):
                    yield f"{counted} of {len(of.record.groups)} groups are counted: {row['Numbers']}"


@rule
def what_is_withheld_is_not_measured(of: Audited, seen: Read) -> Iterator[str]:
    if facts.withheld(of.record) and facts.limit_of(of.record) is not None:
        for table in seen.with_heads("Check", "Finding"):
            for row in table.rows:
                if row["Check"].startswith(("Everyone:", "Every group:")) and row["Finding"] == "Measured":
                    yield f"the verdict is withheld: {row['Check']} {row['Finding']}"


@rule
def a_rule_is_off_only_where_its_range_is(of: Audited, seen: Read) -> Iterator[str]:
    for table in seen.with_heads("The model says", "Gap and its range, points"):
        for row in table.rows:
            said = row["The model says"]
            for low, high in re.findall(r"\(([+-]?[\d.]+) to ([+-]?[\d.]+)\)", row["Gap and its range, points"]):
                if (said == "underpredicts" and float(low) <= 0) or (said == "overpredicts" and float(high) >= 0):
                    yield f"{said} in a range of {low} to {high}: {row[table.heads[0]]}"


@rule
def nothing_along_a_column_means_nothing(of: Audited, seen: Read) -> Iterator[str]:
    depends = re.search(r"what happens still depends on (.*?)(?: \(|\.)", seen.text)
    if not depends:
        return
    names = set(re.findall(r"`([^`]+)`", depends[1]))
    for _, line in seen.sentences:
        without = set(re.findall(r"`([^`]+)`", line))
        none = line.startswith("None of the") and "no error beyond the overall gap" in line and not names <= without
        if none or (line.startswith("Not shown for") and names & without and "what happens depends" not in line):
            yield f"{line[:90]} / {depends[0]}"


@rule
def clusters_are_what_is_too_few(of: Audited, seen: Read) -> Iterator[str]:
    if of.record.data.get("cluster"):
        noun = facts.noun(of.record)
        for said in (seen.text, plain(of.terminal)):
            if re.search(rf"[Tt]oo few {noun} to ", " ".join(said.split())):
                yield f"too few {noun}, where clusters decide"


@rule
def a_relative_limit_is_stated_as_such(of: Audited, seen: Read) -> Iterator[str]:
    if of.record.settings.get("limit_relative") is not None:
        for _, line in seen.sentences:
            if line.startswith("- Limit:") and "mean score" not in line:
                yield line


@rule
def rows_that_weigh_are_no_clusters(of: Audited, seen: Read) -> Iterator[str]:
    if not of.record.data.get("cluster"):
        yield from (line for _, line in seen.sentences if line.startswith("- Clusters:"))


@rule
def one_minus_sign(of: Audited, seen: Read) -> Iterator[str]:
    for line in of.markdown.splitlines():
        if line.startswith("|") and (wrong := ASCII_MINUS.search(re.sub(r"`[^`]*`", "", line))):
            yield f"{wrong[0]} with a hyphen: {line[:80]}"


@rule
def one_of_a_kind_is_singular(of: Audited, seen: Read) -> Iterator[str]:
    for text in (plain(of.markdown), plain(of.terminal)):
        for wrong in ONE.finditer(text):
            yield f"{wrong[0]}: {text[max(0, wrong.start() - 30) : wrong.end() + 30]!r}"


@rule
def every_check_says_what_it_measured(of: Audited, seen: Read) -> Iterator[str]:
    for table in seen.with_heads("Check", "Numbers"):
        yield from (f"no numbers: {row['Check']}" for row in table.rows if not row["Numbers"])


@rule
def no_table_stands_twice(of: Audited, seen: Read) -> Iterator[str]:
    for i, one in enumerate(seen.tables):
        for two in seen.tables[:i]:
            if one.rows == two.rows and len(one.rows) > 1:
                yield f"{one.heads[0]}: {len(one.rows)} rows of {two.section} again in {one.section}"


@rule
def the_terminal_says_what_the_report_says(of: Audited, seen: Read) -> Iterator[str]:
    words = set(re.findall(r"\d+\.\d+", plain(of.terminal))) - set(re.findall(r"\d+\.\d+", plain(of.markdown)))
    unknown = sorted(w for w in words if w not in plain(of.page))
    if unknown:
        yield f"numbers of the terminal that no other text has: {', '.join(unknown)}"


@rule
def a_group_beyond_what_none_exceeds_is_explained(of: Audited, seen: Read) -> Iterator[str]:
    certified = (row for t in seen.with_heads("Certified", "Points") for row in t.rows)
    most = next((row for row in certified if re.match(r"(Gap|Calibration error) of any group", row["Certified"])), None)
    if most is None:
        return
    end = float(most["Points"])
    gap = facts.by_gap(of.record, "groups")
    for table in seen.with_heads("Group", "Calibration error"):
        head = next(h for h in table.heads if h.startswith("Gap" if gap else "Calibration error"))
        inside = re.compile(r"\((.+) to (.+)\)") if gap else re.compile(r"(.+)(?:–| to )(.+)")
        for row in table.rows[1:]:
            ends = inside.search(row[head])
            if ends and max(abs(float(e)) for e in ends.groups()) > end + 0.1 and "separate" not in seen.text:
                yield f"{row['Group']}: {row[head]}, but none exceeds {end:g}"


@rule
def no_column_is_advised_where_none_is_wanted(of: Audited, seen: Read) -> Iterator[str]:
    if tuple(of.record.settings.get("variables") or ()) == () and of.record.data.get("covariates") in (None, [], ()):
        for text in (seen.text, plain(of.terminal), of.page):
            for said in re.findall(r"[^.\n]*(?:[Aa]dd columns|with other --variables)[^.\n]*", text):
                yield f"--variables none, and {said.strip()[:80]!r}"


@rule
def a_key_is_named_only_where_one_was_given(of: Audited, seen: Read) -> Iterator[str]:
    if "--key" not in of.command:
        for text in (of.markdown, of.terminal, of.page):
            yield from re.findall(r"--key (?!COLUMN)\S+|[^.\n]*have the key of[^.\n]*", text)


PERCENTS = re.compile(r' (x|x1|x2|width)="(-?[\d.]+)(%?)"')
BOXED = re.compile(r'<svg[^>]*viewBox="0 0 ([\d.]+) [^>]*>(.*?)</svg>', re.DOTALL)
ACROSS = re.compile(r"[ML]\s*(-?[\d.]+)[ ,]+-?[\d.]+|H\s*(-?[\d.]+)")
NEAR = 0.05  # of what a coordinate is rounded to


@rule
def every_mark_lies_on_its_chart(of: Audited, seen: Read) -> Iterator[str]:
    for mark in re.findall(r"<(?:rect|line|svg|text|circle)[^>]*>", of.page):
        kept = {name: float(v) for name, v, percent in PERCENTS.findall(mark) if percent}
        ends = [kept[k] for k in ("x", "x1", "x2") if k in kept]
        ends += [kept["x"] + kept["width"]] if {"x", "width"} <= kept.keys() else []
        if ends and not -NEAR <= min(ends) <= max(ends) <= 100 + NEAR:
            yield f"from {min(ends):g} to {max(ends):g} of 100: {mark[:90]}"
    for wide, inside in BOXED.findall(of.page):
        for path in re.findall(r' d="([^"]*)"', inside):
            across = [float(a or b) for a, b in ACROSS.findall(path)]
            if across and not -NEAR <= min(across) <= max(across) <= float(wide) + NEAR:
                yield f"from {min(across):g} to {max(across):g} of {wide}: {path[:60]}"


@rule
def what_a_phone_adds_does_not_say_what_is_counted(of: Audited, seen: Read) -> Iterator[str]:
    for words in re.findall(r'content:\s*"([^"]*)"', of.page):
        if re.search(r"\b(rows|clusters|people|log)\b", words):
            yield f"the same words where rows, clusters or stays count: {words!r}"


@rule
def one_gap_has_one_range(of: Audited, seen: Read) -> Iterator[str]:
    known: dict[str, tuple[str, str]] = {}
    for table in (*seen.with_heads("Who", "Gap, guaranteed"), *seen.with_heads("Group", "Gap (certified range)")):
        head = next(h for h in table.heads if h.startswith("Gap"))
        for row in table.rows:
            ends = re.search(r"([+-]?[\d.]+) to ([+-]?[\d.]+)\)?$", row[head])
            if ends:
                who = row[table.heads[0]].strip("`")
                first = known.setdefault(who, (table.section, f"{ends[1]} to {ends[2]}"))
                if first[1] != f"{ends[1]} to {ends[2]}":
                    yield f"{who}: {first[1]} in {first[0][:30]}, {ends[1]} to {ends[2]} in {table.section}"
    said = re.search(r"Everyone: .*Guaranteed: gap (\S+ to [^.\s]+(?:\.\d+)?)", seen.text)
    if said and "Everyone" in known and said[1] != known["Everyone"][1]:
        yield f"Everyone: {said[1]} in the card, {known['Everyone'][1]} in {known['Everyone'][0]}"


@rule
def a_chart_is_about_one_quantity(of: Audited, seen: Read) -> Iterator[str]:
    summary = of.page.partition('class="fp"')[2].partition("</table>")[0]
    cards = of.page.partition('class="parts"')[2].partition("</ul>")[0]
    if "percentage points" in summary and re.search(r"\bO/E\b", summary + cards):
        yield "ratios on an axis of points, or in a card"


@rule
def no_name_gets_a_second_stop(of: Audited, seen: Read) -> Iterator[str]:
    for text in (seen.text, plain(of.terminal)):
        for wrong in re.finditer(r"[^.\s…]\.\.(?=\s|$)", text):
            yield f"two stops: {text[max(0, wrong.start() - 40) : wrong.end()]!r}"


@rule
def a_headline_begins_its_sentences_with_a_capital(of: Audited, seen: Read) -> Iterator[str]:
    title = re.search(r'<h1 id="summary-h">([^<]*)', of.page)
    for said in re.split(r"(?<=[.!?]) ", title[1]) if title else ():
        if said[:1].islower():
            yield said


@rule
def a_range_without_0_shows_error(of: Audited, seen: Read) -> Iterator[str]:
    record = of.record
    for f in (record.everyone, *record.groups):
        gap, error = f.gap.guaranteed, f.error.guaranteed
        off = (gap is not None and not gap.low <= 0.0 <= gap.high) or (error is not None and error.low > 0.0)
        if off and not f.error_shown and f.withheld is None:
            yield f"{f.id}: the guaranteed range is without 0, and no error is shown"
        if off and f.variables and f.withheld is None and "No group is shown to be miscalibrated" in seen.text:
            yield f"{f.id}: the guaranteed range is without 0, and the headline says that no group is off"
