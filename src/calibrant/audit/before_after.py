"""Who is held against the limit before and after a repair, and what is reported of them.

These are everyone, every group that the audit found over the limit, and every subgroup certified to be. All groups that
may be shown, and all boxes, have their share of alpha: which of them are looked at was chosen with outcomes that are
judged here.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.audit import lost
from calibrant.audit.context import AuditContext
from calibrant.audit.pooling import Name, holds_levels
from calibrant.audit.record import Finding
from calibrant.audit.rounding import Sums, few, stepped
from calibrant.audit.subgroups import parts_of
from calibrant.data.predictions import Predictions
from calibrant.data.specs.attributes import cells_of
from calibrant.data.specs.coding import encode
from calibrant.repair.judge.evaluate import EVERYONE, everyone_of
from calibrant.repair.judge.rows import Ends, Fits, People
from calibrant.results import Curve
from calibrant.stats.subgroups.family import Family
from calibrant.views.boxes import MIN_SIZE, ORDER, Tables, tables_of
from calibrant.views.people import people_of
from calibrant.views.rules import Condition, Rule

Whole = NDArray[np.int64]


@dataclass(frozen=True)
class Populations:
    """Who is held against the limit."""

    context: AuditContext
    sample_rows: Predictions  # the rows that were dealt, with their levels as they are
    subgroups: Curve  # the subgroups reported
    # What is reported of each group and subgroup, once it was made.
    reported: dict[str, Sums] = field(default_factory=dict)

    def of(self, fits: Fits) -> list[People]:
        """Everyone, the groups and the subgroups certified off, those of people enough among the judged rows."""
        judged, mask = fits.judged.data, self.context.mask
        some = [one for one in self._some(fits) if len(one.rows)]
        some = [one for one in some if not few(people_of(judged).sides(np.isin(np.arange(judged.n), one.rows)), mask)]
        some = [one for one in some if fits.judged.reaches(one.rows)]
        events, p, sums = fits.judged.events_of, fits.judged.data.p, self.context.sums
        self.reported.update({x.id: sums.of(len(x.rows), events(x.rows), float(p[x.rows].sum())) for x in some})
        return [everyone_of(fits), *some]

    def _some(self, fits: Fits) -> Iterator[People]:
        """Yield every group, and the subgroups."""
        yield from self._groups(fits.at)
        yield from self._subgroups(fits.at)

    def ends(self, one: People, _name: str, ends: Ends) -> Ends:
        """The ends of a range as they are reported: of everyone as they are, of others moved outward."""
        reported, gap = self.reported.get(one.id), self.context.judging.by(one.kind) == "gap"
        if reported is None:
            return ends
        (low, high), least, rises = ends, -1.0 if gap else 0.0, gap or reported.error_rises
        return reported.end(low, -1, least, rises=rises), reported.end(high, 1, least, rises=rises)

    def shown(self, curve: Curve) -> Curve:
        """The table with numbers of people as they are reported; ranges and verdicts are reported already."""
        c = dict(curve.columns)
        c["rows"] = tuple(
            n if k == EVERYONE else self.reported[k].rows for k, n in zip(c["id"], c["rows"], strict=True)
        )
        for when in ("now_gap", "after_gap"):
            c[when] = tuple(
                v if k == EVERYONE or v is None else stepped(v, self.context.sums.step(self.reported[k].rows))
                for k, v in zip(c["id"], c[when], strict=True)
            )
        return replace(curve, columns=c)

    # ---- groups ----

    def _groups(self, at: Whole) -> Iterator[People]:
        """Yield every group; those over the limit, or with error shown, in the audit are reported in any case."""
        results = {f.variables: f for f in self.context.findings if f.variables}
        shown, numbers = self.context.shown_groups, self._numbers(at)
        for name, members, _ in shown:
            codes = next((own for first, last, own in numbers if first <= members[0] < last), None)
            if codes is None or name not in results:
                continue
            yield _group(results[name], np.flatnonzero(np.isin(codes, members)), 1.0 / len(shown))

    def _numbers(self, at: Whole) -> list[tuple[int, int, Whole]]:
        """For each grouping whose columns were kept, its first and last number and each judged row's."""
        spec, codes = self.context.sketch.spec, {}
        for v in spec.variables:
            if holds_levels(self.context.sketch, self.sample_rows, v):
                codes[v.name] = v.codes(self.sample_rows.covariates.column(v.name))[at].astype(np.int64)
        out, base = [], 0
        for names, size in zip(spec.groupings, spec.sizes, strict=True):
            if all(name in codes for name in names):
                own = codes[names[0]]
                for name in names[1:]:
                    own = own * len(spec.by_name[name].labels) + codes[name]
                out.append((base, base + size, base + own))
            base += size
        return out

    # ---- subgroups ----

    def _subgroups(self, at: Whole) -> Iterator[People]:
        """Yield the subgroups certified over the limit, without a limit those certified off."""
        c, limit = self.subgroups.columns, self.context.judging.limit
        chosen = [i for i, low in enumerate(c.get("floor", ())) if low > (limit or 0.0)]
        if not chosen:
            return
        whole = self.context.tested
        tables = tables_of(whole, None, ORDER, self.context.seed)
        family = tables.family(max(MIN_SIZE, self.context.mask / whole.n))
        cells = self._cells(tables, at)
        for number, i in enumerate(chosen, 1):
            rule = tuple(Condition.from_dict(d) for d in self.subgroups.settings["conditions"][i])
            box = box_of(tables, family, rule)
            yield People(
                id=f"subgroup-{number}",
                who=c["rule"][i],
                kind="subgroup",
                rows=np.flatnonzero(family.inside(box, cells)),
                share=float(family.weight[box]),
            )

    def _cells(self, tables: Tables, at: Whole) -> NDArray[np.uint8]:
        """The judged rows' cells in each attribute."""
        if self.context.screen is not None and tables.sample_rows is not None:  # the tables are of these very rows
            return tables.sample_rows.cells[:, at]
        how = self.context.sketch.spec.codings
        encoded = encode(self.sample_rows.covariates.take(at), how, len(at), scale=False)
        return cells_of(tables.attributes, self.sample_rows.p[at], encoded, how)


@dataclass(frozen=True, kw_only=True)
class PopulationsOfLost(Populations):
    """The same where rows were lost before a horizon: everyone and the groups, each with a law of censoring of its own.

    Groups of which the audit certifies nothing are not held against the limit here either.
    """

    groups: tuple[tuple[Name, list[int]], ...]  # those that are shown, each with the numbers of the sketch's groups

    def _some(self, fits: Fits) -> Iterator[People]:
        results = {f.variables: f for f in self.context.findings if f.variables}
        member, pilots = lost.members(self.context), fits.judged.pilots
        for name, members in self.groups:
            result, at = results[name], member.rows(members)
            if result.withheld is not None or pilots is None:
                continue
            group = _group(result, np.flatnonzero(at[fits.at]), 1.0 / len(self.groups))
            yield replace(group, pilots=np.flatnonzero(at[pilots]))


def _group(finding: Finding, rows: Whole, share: float) -> People:
    """A group of the audit: reported in any case where it is over the limit, or error is shown in it."""
    shown = finding.verdict == "over" or finding.error_shown
    return People.of_group(finding.variables, rows, share, id=finding.id, shown=shown)


def box_of(tables: Tables, family: Family, rule: Rule) -> int:
    """The number of a rule's box in a family."""
    parts = parts_of(tables, rule)
    table = family.combined.index(tuple(t for t, _ in parts))
    there = family.table == table
    for axis, (attribute, own) in enumerate(parts):
        there = there & (family.place[:, axis] == np.flatnonzero((family.sets[attribute] == own).all(axis=1))[0])
    return int(np.flatnonzero(there)[0])
