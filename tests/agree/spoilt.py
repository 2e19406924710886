"""For each rule a report that breaks it: a true one with a sentence, a number, a mark or a fact changed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agree.records import Audited
from calibrant.audit.record import Groups

Spoil = Callable[[Audited], Audited]


def _says(text: str) -> Spoil:
    """With another sentence in the report."""
    return lambda of: replace(of, markdown=f"{of.markdown}\n\n{text}\n")


def _shows(markup: str) -> Spoil:
    """With another piece on the page."""
    return lambda of: replace(of, page=of.page.replace("</main>", f"{markup}</main>"))


def _changed(old: str, new: str) -> Spoil:
    """With other words in the place of the first that match."""

    def changed(of: Audited) -> Audited:
        text, times = re.subn(old, new, of.markdown, count=1)
        assert times == 1, f"no {old!r} to change: {of.command}"
        return replace(of, markdown=text)

    return changed


def _with(spoil: Spoil, data: dict[str, Any] | None = None, **settings: Any) -> Spoil:
    """The same of a record whose data or settings are others."""

    def of_another(of: Audited) -> Audited:
        record = replace(
            of.record, data={**of.record.data, **(data or {})}, settings={**of.record.settings, **settings}
        )
        return spoil(replace(of, record=record))

    return of_another


def _everyone(spoil: Spoil, **changes: Any) -> Spoil:
    return lambda of: spoil(replace(of, record=replace(of.record, everyone=replace(of.record.everyone, **changes))))


def _table(heads: str, *rows: str) -> str:
    lines = (heads, " | ".join("---" for _ in heads.split("|")), *rows)
    return "## A section\n\n" + "\n".join(f"| {line} |" for line in lines)


def _planned(of: Audited) -> Audited:
    """Everyone beyond the limit by the estimate, and planned to be within it."""
    one = of.record.everyone
    far = replace(one, by="gap", gap=replace(one.gap, value=0.9), rows_needed=9_000, rows_at_least=True)
    return replace(of, record=replace(of.record, everyone=far))


def _withheld(of: Audited) -> Audited:
    one = replace(of.record.everyone, withheld="rows are copies", verdict="not_checked")
    said = _says(_table("Check | Finding", "Everyone: gap | Measured"))(of)
    return replace(said, record=replace(of.record, everyone=one))


def _too_few(of: Audited) -> Audited:
    """Rows where clusters count, in the words of a record of clusters."""
    record = replace(of.record, data={**of.record.data, "cluster": "patient"})
    return _says(f"Too few {record.settings['about']['noun']} to say what no subgroup exceeds.")(
        replace(of, record=record)
    )


def _beyond_the_worst(of: Audited) -> Audited:
    """A group whose range goes beyond what none exceeds, and no word of why."""
    text, times = re.subn(r"(of any group shown, at most \| )[\d.]+", r"\g<1>0.5", of.markdown)
    assert times == 1
    return replace(of, markdown=text.replace("separate", ""))


def _ratio_on_the_plot(of: Audited) -> Audited:
    return replace(of, page=of.page.replace("</small></th>", " · O/E 1.20</small></th>", 1))


def _small_headline(of: Audited) -> Audited:
    return replace(of, page=of.page.replace('<h1 id="summary-h">', '<h1 id="summary-h">Undecided overall. site ', 1))


def _two_ranges(of: Audited) -> Audited:
    """The range of everyone's gap in the table of groups, wider than in the plot."""
    head, middle, rest = of.markdown.partition("## For whom are they off?")
    text, times = re.subn(r"(\| Everyone \|.*?) to (\+|−)([\d.]+)\)", r"\1 to \g<2>9\3)", rest, count=1)
    assert times == 1
    return replace(of, markdown=head + middle + text)


def _off_and_not_shown(of: Audited) -> Audited:
    """A group whose gap is guaranteed to be upward, of which no error is shown."""
    first, *rest = of.record.groups
    assert first.gap.guaranteed is not None
    up = replace(first.gap, guaranteed=replace(first.gap.guaranteed, low=0.01, high=0.2))
    return replace(of, record=replace(of.record, groups=Groups([replace(first, gap=up, error_shown=False), *rest])))


SPOILT: dict[str, Spoil] = {
    "a_range_holds_its_value": _says("A gap of +5.0 (+6.0 to +7.0)."),
    "nobody_plans_for_within_where_the_estimate_says_over": _planned,
    "rates_differ_by_the_gap": _changed(r"(\| Everyone \| \d+ \| )[\d.]+", r"\g<1>1.2"),
    "every_group_is_counted_once": _changed(r"(\| Every group: .*?)(\d+) undecided", r"\1 99 undecided"),
    "what_is_withheld_is_not_measured": _withheld,
    "a_rule_is_off_only_where_its_range_is": _says(
        _table(
            "Subgroup | The model says | Gap and its range, points", "age over 60 | underpredicts | +1.0 (-1.0 to +3.0)"
        )
    ),
    "nothing_along_a_column_means_nothing": _says(
        "Yes: what happens still depends on `age`.\n\n"
        "None of the two is shown: no error beyond the overall gap was found."
    ),
    "clusters_are_what_is_too_few": _too_few,
    "a_relative_limit_is_stated_as_such": _with(_says("- Limit: 5.0 points."), limit_relative=0.1),
    "rows_that_weigh_are_no_clusters": _with(_says("- Clusters: 300."), {"cluster": None}),
    "one_minus_sign": _says(_table("Group | Gap", "a | -1.0")),
    "one_of_a_kind_is_singular": _says("There are 1 rows."),
    "every_check_says_what_it_measured": _says(_table("Check | Numbers", "Error by age | ")),
    "no_table_stands_twice": lambda of: replace(of, markdown=f"{of.markdown}\n\n{of.markdown}"),
    "the_terminal_says_what_the_report_says": lambda of: replace(of, terminal=f"{of.terminal}\n98.76543"),
    "a_group_beyond_what_none_exceeds_is_explained": _beyond_the_worst,
    "no_column_is_advised_where_none_is_wanted": _with(
        _says("No covariates were given: add columns that describe the people."), {"covariates": []}, variables=[]
    ),
    "a_key_is_named_only_where_one_was_given": _says("```sh\ncalibrant audit a.csv --key visit_id\n```"),
    "every_mark_lies_on_its_chart": _shows('<svg class="t"><line class="span" x1="90%" x2="104%"/></svg>'),
    "what_a_phone_adds_does_not_say_what_is_counted": _shows(
        '<style>td.need::before { content: "rows that would decide: " }</style>'
    ),
    "one_gap_has_one_range": _two_ranges,
    "a_chart_is_about_one_quantity": _ratio_on_the_plot,
    "no_name_gets_a_second_stop": _says("Rows share Personal-Nr.."),
    "a_headline_begins_its_sentences_with_a_capital": _small_headline,
    "a_range_without_0_shows_error": _off_and_not_shown,
}
PATHS = {  # marks that stand outside in units of their own
    "a line": '<svg class="plot" viewBox="0 0 100 24"><path d="M0 3L120 4"/></svg>',
    "a bar": '<svg class="t"><rect class="sure" x="60%" width="50%"/></svg>',
    "a point": '<svg class="t"><svg x="-7%" y="50%"></svg></svg>',
}
