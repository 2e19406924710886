"""The types of the curves of a record: what is in their columns, and their settings."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from calibrant.audit.record import Verdict
from calibrant.audit.schema.kinds import (
    By,
    Condition,
    Count,
    Gap,
    Joint,
    Judge,
    Level,
    Odds,
    Order,
    Positive,
    RateName,
    Several,
    Share,
    Size,
    Some,
    Target,
    Yes,
    curve,
    many,
    named,
    noted,
    part,
)

FIXED_ABOUT = part(
    "FixedAbout",
    {"now": str, "after": str | None},
    "Which score ranges are about (of errors from above), in words.",
)
FIXED_CANDIDATE = part(
    "FixedCandidate",
    {"name command": str, "over undecided within": Count, "low high": float | None},
    "As audited, or a repair: for how many of those reported it is over the limit, undecided and within it; the range "
    "of everyone.",
)
FIXED_TEST = part("FixedTest", {"now after": float | None}, "The p-value of a test as audited and after the repair.")
AXIS = part("Axis", {"name": str, "kind": Literal["number", "date", "category"], "labels": list[str | None]})
NOT_RUN = "Absent where the test was not run."
TESTED = {  # settings of what rests on the strong test
    "alpha": Level,
    "alternative": str,
    "detector": str,
    "model": str,
    "null": str,
    "rows_tested": Some,
    "seed": Count,
    "statistic": Size,
    "tolerance": Share,
}
MAP_AXIS = part(
    "MapAxis",
    {"name": str, "kind": str, "scaling": str, "places": list[float | str | None]},
    "Of a map of bias: a variable, and the places along it.",
)
REPAIR_VERDICT = part(
    "RepairVerdict",
    {"better worse": list[str], "line": str},
    "What is better and worse after a repair than before.",
)

CURVES = {
    "bins": curve(
        "reliability",
        "Observed against predicted in ranges of the score, with limits of the gap that hold together, one entry a "
        "range. Absent where not applicable.",
        {"x x_low x_high predicted observed": Share, "gap low high": Gap, "rows": Some},
        {"level?": Level, "simultaneous?": Yes, "target?": Target},
    ),
    "reliability": curve(
        "diagnose.reliability_curve",
        "The smoothed curve on cells of at least `mask` people; no columns, and the reason, if not computable.",
        {
            "x? predicted? observed?": Share,
            "gap? low? high? low_point? high_point?": Gap,
            "rows?": Positive,
            "density_events? density_nonevents?": Size,
            "stretch?": Count,
        },
        {
            "reason?": Annotated[str, Meta(min_length=1)],
            "alpha?": Level,
            "axis?": Literal["probability", "logit"],
            "band? null?": str,
            "bandwidth? critical? effective_clusters?": Positive,
            "draws? clusters?": Some,
            "masked?": Count,
            "method?": Literal["smooth", "isotonic"],
            "p_value?": Annotated[float, Meta(gt=0, le=1)],
            "seed?": int,
            "smallest?": Some,
            "statistic?": Size,
            "trim?": tuple[Share, Share],
        },
    ),
    "ranking": curve(
        "diagnose.rank_variables",
        "Every covariate, the one the error follows most first. Absent where none was audited.",
        {
            "variable": str,
            "kind": Literal["number", "date", "category", "pair"],
            "vece vece_plain beyond_gap beyond_gap_plain": Size,
            "p_value p_adjusted": Share,
            "low high beyond_low beyond_high": Size | None,
            "gain worst_gap worst_beyond_gap worst_predicted worst_observed": float | None,
            "worst": str | None,
            "worst_rows": Count | None,
            "bins bins_collapsed": Count,
        },
        {
            "alpha": Level,
            "bins draws n variables_tried": Some,
            "gap": Gap,
            "left_out": named(str),
            "not_certified pairs_null": str | None,
            "null": str,
            "pairs pairs_tried seed": Count,
            "view": Literal["probability", "logit"],
        },
    ),
    "variable_curve/": curve(
        "diagnose.variable_curve",
        "Curves of the covariates that the report draws.",
        {
            "group label": str,
            "x": float | None,
            "predicted observed gap low high low_point high_point": float,
            "rows density": Size,
            "stretch": int,
        },
        {
            "alpha": Level,
            "band null": str,
            "by consistent consistent_how worst_group worst_label": str | None,
            "critical gap statistic": float,
            "worst_at worst_gap worst_high worst_low": float | None,
            "date": bool,
            "degree masked seed": Count,
            "draws n": Some,
            "kind": Literal["curve", "levels", "pair"],
            "p_value": Share,
            "span": Positive,
            "variable": str | list[str],
            "view": Literal["probability", "logit"],
        },
    ),
    "local_bias/": curve(
        "diagnose.local_bias",
        "Maps of the group variables.",
        {
            "gap high low observed predicted": float,
            "label": str,
            "p_adjusted share": Share,
            "people": Count,
            "rows": Size,
            "x": float | str | None,
        },
        {
            "alpha": Level,
            "axes": many(MAP_AXIS),
            "band kernel law": str,
            "bandwidths": named(named(float)),
            "by groups_left_out": list,
            "clusters weights": bool,
            "contradicted masked seed": Count,
            "critical statistic": float,
            "draws n": Some,
            "p_value": Share,
        },
    ),
    "control_chart": curve(
        "diagnose.control_chart",
        f"Cumulative evidence of error, the most suspicious people first. {NOT_RUN}",
        {
            "x": Share,
            "evidence": float,
            "line": float | None,
            " ".join(f"null_{k}?" for k in range(1, 9)): float,
        },
        {
            **TESTED,
            "statistic": float,
            "p_models?": Share | None,
            "draws": Some,
            "impossible peak_rows rows_beyond": Count,
            "law": str,
            "line": float | None,
            "peak_observed peak_predicted": Share | None,
            "peak_share": Share,
            "peak_score": float,
            "p_value": Share,
            "side": str,
            "threshold": float,
        },
    ),
    "importance": curve(
        "diagnose.importance",
        f"What the strong test's finding rests on. {NOT_RUN}",
        {"variable": str, "drop high low share": float},
        {**TESTED, "folds": Count, "repeats rows_read": Some},
    ),
    "searched_subgroups": curve(
        "diagnose.subgroups.searched",
        f"Rules for the people the error was found among. {NOT_RUN}",
        {
            "rule side": str,
            "excess gap high low observed observed_high observed_low predicted": float,
            "p_adjusted p_value share stability": Share,
            "rows": Some,
            "finding": bool,
        },
        {
            **{key: TESTED[key] for key in ("alpha", "alternative", "model", "seed", "tolerance")},
            "conditions": many(many(Condition)),
            "depth fewest rows_grown rows_judged": Some,
            "min_share": Share,
        },
    ),
    "change": curve(
        "audit.change",
        "By how much the gaps of everyone and the groups changed since an earlier audit: before and now, the change "
        "with its ordinary interval, and low and high, its certified ends. Worse, better: surely farther from 0, or "
        "nearer, than before. Absent where no earlier audit was named.",
        {
            "id group": str,
            "rows_before rows": Count,
            "before now change low high": float,
            "interval_low interval_high": float | None,
            "level": Joint,
            "state": Literal["worse", "better", "changed", "none"],
        },
        {
            "name": str,
            "fingerprint": str | None,
            "guarantee": str,
            "level_of_all": Joint,
            "only_now only_before": Count,
        },
    ),
    "inference": curve(
        "measure.inferred_mean",
        "What the events would look like if probabilities stood in for labels, the least likely by chance first: "
        "variable, level (null for the mean of a number or date), inferred, observed, bias, and low and high, its "
        "limits, which hold simultaneously. Without columns where nothing can be said: the settings say why.",
        {"variable?": str, "level?": str | None, "inferred? observed? bias? low? high?": float},
        {"alpha?": Level, "dates?": list[str], "lines?": Count, "reason? simultaneous?": str},
    ),
    "task_trust": curve(
        "audit.task_trust",
        "The same of the covariates that were to be inferred, in that order: low and high are guaranteed, of these "
        "rows, all together. Absent where none was named.",
        {"variable": str, "level": str | None, "inferred observed bias low high": float},
        {"alpha": Level, "dates": list[str], "lines": Some, "guarantee of simultaneous": str},
    ),
    "repairs": curve(
        "repair.evaluate",
        "Repairs fitted on one half of the rows held and judged on the other, as audited first. Absent where none was "
        "compared.",
        {
            "probability recipe order": str,
            "scale": str | None,
            "accuracy auroc brier log_loss error_low error_high": float | None,
            "brier_change brier_change_low brier_change_high": noted(
                float | None, "The paired change from as audited, with its ordinary 95% interval (or that of `alpha`)."
            ),
            "log_loss_change log_loss_change_low log_loss_change_high": float | None,
            "largest_rise": noted(
                float | None, "By how much the size of the gap of a group grows at most, as estimated."
            ),
            "largest_rise_group": str | None,
            "error_by_variable largest_gap local_p": float | None,
            "largest_gap_group": str | None,
            "groups_better groups_worse groups_shown_better groups_shown_worse impossible": Count | None,
        },
        {
            "alpha": Level,
            "by_variable how recommended": str,
            "basis": noted(
                Literal["guaranteed", "estimated", ""],
                "What the recommendation rests on: a guarantee, ordinary intervals alone, or nothing.",
            ),
            "draws events_judged groups steps test_rows": Count,
            "rows_fit rows_judged": Some,
            "way?": noted(
                Literal["weights"], "Rows were lost before a horizon, and weights of censoring stand for them."
            ),
            "pilots?": noted(Some, "Rows that give the law of censoring, none of which is judged."),
            "left_out": list,
            "tests": list[str],
            "verdicts": named(REPAIR_VERDICT),
        },
    ),
    "repair_decisions": curve(
        "repair.evaluate.decisions",
        "With thresholds: for each repair and population, on rows that no repair was fitted on, how many change side "
        "of the threshold, and the certified gain in net benefit, true positives a row: probability, threshold, "
        "population, rows, to_act, to_leave, gain, gain_low, gain_high, shown; null where fewer people than are shown "
        "change side. Absent without thresholds, and where no repairs were compared.",
        {
            "probability population": str,
            "threshold": Level,
            "rows": Count,
            "to_act to_leave": Count | None,
            "gain gain_low gain_high": float | None,
            "shown": str | None,
        },
    ),
    "fixed": curve(
        "repair.evaluate.fixed",
        "Is it fixed? Everyone, the groups over the limit and the subgroups certified to be, on rows that no repair "
        "was fitted on: certified ranges and verdicts now and after the repair recommended. Of a gap with its sign. "
        "Absent where no repair was compared.",
        {
            "id who variable value": str,
            "kind": Literal["everyone", "group", "subgroup"],
            "rows": Some,
            "measure": By,
            "now_low now_high": float,
            "now": Verdict,
            "after_low after_high": float | None,
            "after": Verdict | None,
            "now_gap": noted(float, "Observed minus predicted on the rows judged, as estimated."),
            "after_gap": noted(float | None, "The same after the repair."),
        },
        {
            "candidate": noted(str, "The repair recommended; empty where none is."),
            "command": noted(str, "What `calibrant repair --method` calls it."),
            "rows_fit rows_judged test_rows": int,
            "alpha": float,
            "limit": float | None,
            "judge": Judge,
            "target?": noted(Target, "Of gaps: of the rows judged, or of all rows like these."),
            "about": FIXED_ABOUT,
            "groups": noted(int, "Groups that share alpha."),
            "candidates": many(FIXED_CANDIDATE),
            "tests": named(FIXED_TEST),
        },
    ),
    "subgroups": curve(
        "diagnose.subgroups",
        "A few distinct subgroups, one entry each: rule, people, what the model says and what happened, the gap with "
        "limits that hold simultaneously for all subgroups, what is left of it without the people of those before, and "
        "in settings.besides what else its people differ by (attribute, level or range, share inside, share "
        "outside). Empty columns: none has people enough to be shown. Absent where not run.",
        {
            "rule": str,
            "rows": Some,
            "share predicted observed floor stability": Share,
            "gap low high": Gap,
            "evidence": Size,
            "gap_left": Gap | None,
            "rows_left": Some | None,
            "side": Literal["underpredicts", "overpredicts"],
            "over": bool,
        },
        {
            "alpha": Level,
            "besides": list[list[tuple[str, str, Share, Share]]],
            "subgroups halves n": Some,
            "conditions": many(many(Condition)),
            "limit": Level | None,
            "min_size": Share,
            "order": Order,
            "seed": Count,
        },
    ),
    "subgroup_map": curve(
        "diagnose.subgroup_map",
        "The gap in the cells of the two attributes of a subgroup: numbers of cells along settings.axes, from 0. Cells "
        "of few people are left out, and others, so that none follows from totals. Absent where no subgroup of two "
        "attributes is reported.",
        {"first second": Count, "rows": Some, "predicted observed": Share, "gap": Gap},
        {
            "axes": noted(many(AXIS), "Of the map.", min_length=2, max_length=2),
            "n": Some,
            "subgroups": list,
            "rules": list[str],
            "seed": Count,
        },
    ),
    "dependence": curve(
        "audit.dependence",
        "Columns, alone or up to three together, whose rows of one value are correlated beyond chance, where no "
        "cluster was named: design effect of residuals, and of those without the twentieth of the values that add most "
        "(trimmed); share of values whose label never changes; whether many values make it (cluster) or a few (group); "
        "and whether nothing that takes rows as independent is decided. Absent where a cluster was named.",
        {
            "columns": Annotated[list[str], Meta(min_length=1, max_length=3)],
            "clusters rows": Some,
            "design_effect": Odds,
            "trimmed": float,
            "p_adjusted one_outcome": Share,
            "kind": Literal["cluster", "group"],
            "refutes": bool,
        },
        {"level": Level, "columns joint": Count, "identifiers": bool},
    ),
    "class_matrix": curve(
        "audit.class_matrix",
        "Of several classes: of rows whose top label is predicted_class, those of true_class, where rows enough are "
        "expected; ranges hold simultaneously. Absent of two classes, and with clusters or weights.",
        {"predicted_class true_class": str, "rows": Some, "events": Count, "expected": Size, "gap low high": Gap},
        {"classes of": Some, "least": Size, "alpha": Level},
    ),
    "class_repairs": curve(
        "audit.class_repairs",
        "Of several classes: repairs of all of them at once, fitted on half of the rows and judged on the others; low "
        "and high certify the class-wise error, changes are paired with ordinary intervals that hold for all repairs.",
        {
            "repair": str,
            "low high": Size,
            "log_loss brier": Size,
            **{f"{m}_change{e}": float for m in ("log_loss", "brier") for e in ("", "_low", "_high")},
        },
        {
            "recommended command": str,
            "by": noted(Literal["log_loss", "brier"], "Which score decides."),
            "impossible": noted(Count, "Rows judged whose class had a probability of 0; it counts as clip."),
            "rows_fitted rows_judged": Some,
            "alpha clip": Level,
        },
    ),
    "sites": curve(
        "audit.sites",
        "How far calibration differs between the clusters, where five or more have rows enough: calibration "
        "intercepts in logits, and as events for each that was expected (ratio); new: of a new cluster. A line for "
        "each cluster with rows enough, at most 60, the lowest first, without name and counts and in steps of a "
        "twentieth. Absent otherwise.",
        {"rank": Some, "estimate low high": float},
        {
            "alpha clip error p_value mean mean_low mean_high new_low new_high tau tau_low tau_high": float,
            "ratio ratio_low ratio_high ratio_new_low ratio_new_high": float,
            "site method": str,
            "sites": Annotated[int, Meta(ge=5)],
            "unshown": Count,
            "degrees new_degrees": Some,
            "measure": Literal["intercept"],
        },
    ),
    "missing_labels": curve(
        "certify.missing_labels",
        "Everyone, then each group, with the people whose label is missing: a line for each assumption about them; "
        "stands_to is the ratio of odds up to which the verdict at random stands. Of groups, counts are multiples of "
        "five, ends moved outward, with settings.publish. Only with missing=keep and mask people without a label.",
        {
            "people": str,
            "assumption": Literal["labelled", "at random", "odds", "any"],
            "odds": Odds | None,
            "rows unlabelled": Count,
            "low high": Gap,
            "verdict": Verdict,
            "stands_to": Size | str,
        },
        {
            "alpha": Level,
            "assumes": str,
            "judge": Judge,
            "limit": float | None,
            "odds": Odds,
            "steps": Several,
            "clusters?": Some,
            "clusters_unlabelled?": Count,
        },
    ),
    "horizons": curve(
        "audit.horizons",
        "Of several horizons, which share alpha: everyone, then each group, by each. The record is that of the worst, "
        "at its share; its verdicts, error_shown and exit status are the worst of all. Observed is estimated where "
        "outcomes are unknown, and null where nobody was followed so long. Absent of one horizon.",
        {
            "horizon": Positive,
            "score people": str,
            "rows": Some,
            "predicted": Share,
            "observed": Share | None,
            "gap": Gap | None,
            "low high": Gap,
            "verdict": Verdict,
        },
        {
            "alpha": Level,
            "horizons": list[Positive],
            "scores": list[str],
            "exit_statuses?": list[Literal[0, 1, 3]],
            "ways?": list[Literal["followed", "weights", "unknown"]],
            "unknown?": list[Count],
            "judged?": list[Literal["error", "gap"]],
            "judge?": Judge,
        },
    ),
    "without_label": curve(
        "diagnose.missing_labels",
        "Who is without a label: the share in each range of the score and each group shown, its standardised "
        "difference from those with one, and a test by variable. Counts are exact unless settings.publish.",
        {
            "about": Literal["score", "group"],
            "variable level": str,
            "rows unlabelled": Count,
            "share": Share,
            "difference": float | None,
            "p_value p_adjusted": Share | None,
        },
        {"rows unlabelled": Some},
    ),
    "fewer_groups": curve(
        "certify.by_fewer",
        "How many groups would be within their limit at these rows if every score is right, judged by fewer columns, "
        "from outcomes drawn from the scores. Only where most groups of several columns are undecided by their gaps.",
        {"by": list[str], "groups": Some, "decided": Size},
        {"groups": Some},
    ),
    "decisions": curve(
        "audit.decisions",
        "What it means to act from a threshold on: everyone and each group by threshold. Counts and ends are exact "
        "unless settings.publish; who has few people on a side is absent. Ranges of rates (wrong: no event, of those "
        "acted on; missed: an event, of those not), of net benefit, of what it is over acting on everyone and of "
        "regret are certified; all hold together, with an alpha of their own. Only with a threshold or costs.",
        {
            "group": str,
            "threshold": Level,
            "acts_from": Share,
            "rows acted events_acted left events_left": Count,
            "wrong wrong_low wrong_high missed missed_low missed_high": Share | None,
            "net_benefit net_benefit_low net_benefit_high over_all over_all_low over_all_high": float,
            "regret regret_low regret_high": Size,
        },
        {"alpha": Level, "thresholds": list[Level], "costs": list[Positive], "groups": Count, "assumes": str},
    ),
    "rates": curve(
        "audit.rates",
        "Selection rate, true and false positive rate and precision of everyone and each group at each threshold, each "
        "an estimate with its ordinary interval and a certified range (guaranteed_low, guaranteed_high). Intervals of "
        "one rate hold together over groups; certified ranges all together, with an alpha of their own. Null where "
        "nobody is counted, or fewer than 200 in a record to publish. Of those of whom decisions reports.",
        {
            "variable group": str,
            "threshold": Level,
            "rate": RateName,
            "value low high guaranteed_low guaranteed_high": Share | None,
        },
        {"alpha": Level, "groups": Count, "assumes": str},
    ),
    "rate_differences": curve(
        "audit.rate_differences",
        "How far the groups of each variable are apart in each rate: the largest less the smallest, and the smallest "
        "over the largest, with ranges that follow from those of the rates, whichever groups are the farthest apart.",
        {
            "variable": str,
            "threshold": Level,
            "rate": RateName,
            "groups": Several,
            "highest lowest": str,
            "highest_rate lowest_rate difference": Share,
            "low high": Share | None,
            "guaranteed_low guaranteed_high": Share,
            "ratio ratio_low ratio_high guaranteed_ratio_low guaranteed_ratio_high": Share | None,
        },
        {"alpha": Level, "groups": Count, "assumes": str},
    ),
    "decision_curve": curve(
        "diagnose.decision_curve",
        "Net benefit of everyone against the threshold, with acting on everyone, with bands that hold at all "
        "thresholds at once: asymptotic, or certified where there are few clusters, as the guarantee says; in steps of "
        "a few people, without counts. Only where decisions is.",
        {"threshold net_benefit low high treat_all over_all over_all_low over_all_high": float},
        {"alpha": Level, "level": float, "least_rows": int, "guarantee?": Literal["asymptotic", "finite-sample"]},
    ),
}
