"""The checks of arguments: each returns the value as it will be used, or says in one line what to pass instead.

Every refusal is a `BadInput` that reads ``name=value: pass ...``. A truth value is no number, and numbers of NumPy are.
`hint` ends the line, such as ``"such as 999"`` or ``"or None to choose it"``.
"""

from __future__ import annotations

import inspect
import math
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from functools import cache, partial, wraps
from itertools import pairwise
from numbers import Integral, Real
from reprlib import Repr
from typing import (
    Annotated,
    Any,
    Literal,
    NoReturn,
    ParamSpec,
    TypedDict,
    TypeGuard,
    TypeVar,
    Unpack,
    get_args,
    get_origin,
    get_type_hints,
)

from calibrant.errors import BadInput
from calibrant.sanitize import HALF, has_half_characters

LARGEST_SEED = 2**63 - 1  # so that a seed fits the signed 64 bits of every kernel
Missing = Literal["level", "drop", "keep", "refuse"]
MISSING_WAYS: tuple[Missing, ...] = get_args(Missing)
Unit = Literal["month", "quarter", "year", "decade"]
ORDERS = ("day-first", "month-first")  # of dates such as 01/02/2019
UNITS: tuple[Unit, ...] = get_args(Unit)  # in which dates are groups, finest first
COSTS = "in place of --threshold: costs of acting on a non-event, and of not acting on an event; 1,4 acts from 0.2 on"
Judge = Literal["auto", "error", "gap"]  # what a limit is about
By = Literal["error", "gap"]  # what is judged of some people
STEPS = 100  # whole percent: what people are shown most often
MASK = 20  # people under whom a count is not shown: of fewer, others can tell who is meant
OTHERS = 1_000  # label values next to the case up to which each is counted
TAB = "\\t"  # how a tab between columns is typed, in any shell

Choice = TypeVar("Choice", bound=str | int)
P = ParamSpec("P")
R = TypeVar("R")


def judged_by(judge: str, part: str) -> By:
    """What a part is judged by: unless somebody asks, everyone by the calibration error, groups by their gap.

    `part`: "everyone", "group" or "groups", "subgroup" or "subgroups", which are always judged by their gap.
    """
    if part.startswith("subgroup") or judge == "gap":
        return "gap"
    return "error" if judge == "error" or part == "everyone" else "gap"


@dataclass(frozen=True)
class Caller:
    """Who gave the arguments, and so what a refusal calls them: ``limit=`` in Python, ``--limit`` on a command line."""

    command: bool = False
    lacks: tuple[str, ...] = ()  # arguments that others take, and this one does not
    calls: tuple[tuple[str, str], ...] = ()  # arguments of which this one has another name, and that name

    def name(self, argument: str) -> str:
        """What a check takes as the name of an argument: ``limit`` or ``--limit``."""
        argument = dict(self.calls).get(argument, argument)
        return f"--{OPTIONS.get(argument, argument.replace('_', '-'))}" if self.command else argument

    def says(self, *arguments: str) -> str:
        """Arguments as a sentence names them: ``label=, score= and by=`` or ``--label, --score and --by``."""
        words = [self.name(a) if self.command else f"{self.name(a)}=" for a in arguments]
        return " and ".join(w for w in (", ".join(words[:-1]), *words[-1:]) if w)

    def turns_on(self, argument: str) -> str:
        """How a flag is set: ``percent=True`` or ``--percent``."""
        return self.name(argument) if self.command else f"{self.name(argument)}=True"

    def typed(self, argument: str, value: str) -> str:
        """An argument with its value: ``way='weights'`` or ``--way weights``."""
        return f"{self.name(argument)} {shlex.quote(value)}" if self.command else f"{self.name(argument)}={value!r}"


# Where the two differ in more than the hyphen.
OPTIONS = {"spec": "like", "drop_missing": "missing drop", "odds": "missing-odds"}
PYTHON, COMMAND = Caller(), Caller(command=True)


_SHORT = Repr()
_SHORT.maxstring, _SHORT.maxother = 100, 60  # characters: names of columns and dates are shown whole, arrays are not


def shown(value: object) -> str:
    """A value as a refusal shows it: on one line, and short."""
    return " ".join(_SHORT.repr(value).split())


def refuse(name: str, value: object, fix: str, hint: str = "") -> NoReturn:
    """Raise the one line of a refusal."""
    raise BadInput(f"{name}={shown(value)}: pass {fix}" + (f", {hint}" if hint else ""), argument=name)


def check_int(name: str, value: object, low: int, high: int | None = None, *, of: str = "", hint: str = "") -> int:
    """A whole number from `low` to `high`, both allowed; `of` says what it counts, such as ``"bins"``."""
    if not _counts(value) or value < low or (high is not None and value > high):
        span = f"from {low:,} up" if high is None else f"from {low:,} to {high:,}"
        refuse(name, value, " ".join(("a whole number", *((f"of {of}",) if of else ()), span)), hint)
    return int(value)


class Ends(TypedDict, total=False):
    """Where a number may lie: from `least` or above `above`, to `most` or below `below`."""

    least: float
    above: float
    most: float
    below: float


def number(name: str, value: object, *, what: str = "a number", hint: str = "", **ends: Unpack[Ends]) -> float:
    """A finite number that lies between its ends; `what` names it."""
    if not _finite(value) or not (
        ends.get("least", -math.inf) <= value <= ends.get("most", math.inf)
        and ends.get("above", -math.inf) < value < ends.get("below", math.inf)
    ):
        refuse(name, value, f"{what}{_span(ends)}", hint)
    return float(value)


def _finite(value: object) -> TypeGuard[float]:
    try:
        return not isinstance(value, bool) and isinstance(value, Real) and math.isfinite(value)
    except OverflowError:  # a whole number that no real number reaches
        return False


def _counts(value: object) -> TypeGuard[int]:
    return not isinstance(value, bool) and isinstance(value, Integral)


def _span(ends: Ends) -> str:
    """Say where a number may lie: "from 0 to below 1", "between 0 and 1", "above 0", "from 0 up"."""
    if "above" in ends and "below" in ends:
        return f" between {ends['above']:g} and {ends['below']:g}"
    low = f" from {ends['least']:g}" if "least" in ends else f" above {ends['above']:g}" if "above" in ends else ""
    if "most" in ends:
        to = " to" if "least" in ends else " and at most" if low else " of at most"
        return f"{low}{to} {ends['most']:g}"
    if "below" in ends:
        return f"{low} to below {ends['below']:g}" if low else f" below {ends['below']:g}"
    return f"{low} up" if "least" in ends else low


def share(name: str, value: object, *, hint: str = "") -> float:
    """A number strictly between 0 and 1."""
    return number(name, value, above=0, below=1, hint=hint)


def thresholds(name: str, value: object) -> tuple[float, ...]:
    """Numbers strictly between 0 and 1, given one or several in any order: increasing, each once."""
    values = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    if not values:
        refuse(name, value, "a number between 0 and 1, or several", "such as 0.2")
    return tuple(sorted({share(name, t, hint="such as 0.2") for t in values}))


def acting(
    threshold: object, costs: object, caller: Caller = PYTHON, most: int | None = None
) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """The thresholds from which on people are acted on, increasing, and the costs that set one; `most` of them.

    Acting on somebody with a share t of events costs ``(1 - t) c_FP``, not acting ``t c_FN``: they are the same at ``t
    = c_FP / (c_FP + c_FN)``.
    """
    named, priced = caller.name("threshold"), caller.name("costs")
    if threshold is not None and costs is not None:
        raise BadInput(f"{named} and {priced} both say where people are acted on: drop one of the two")
    if costs is not None:
        values = tuple(costs) if isinstance(costs, Iterable) and not isinstance(costs, str) else ()
        if len(values) != 2:
            refuse(priced, costs, "two costs, of a false positive and of a false negative", "such as 1,4")
        low, high = (positive(priced, c, what="two positive costs", hint="such as 1,4") for c in values)
        return (low / (low + high),), (low, high)
    if threshold is None:
        return (), ()
    result = thresholds(named, threshold)
    if most is not None and len(result) > most:
        raise BadInput(f"{named} has {len(result)} thresholds: pass {most} at most")
    return result, ()


def positive(name: str, value: object, *, what: str = "a positive number", hint: str = "") -> float:
    """A finite number above 0."""
    if not _finite(value) or not value > 0:
        refuse(name, value, what, hint)
    return float(value)


def increasing(name: str, value: object, *, hint: str = "") -> tuple[float, ...]:
    """Finite numbers above 0, one or several in increasing order."""
    values = tuple(value) if isinstance(value, Iterable) and not isinstance(value, str) else (value,)
    result = tuple(positive(name, v, hint=hint) for v in values)
    if not result or any(b <= a for a, b in pairwise(result)):
        refuse(name, value, "positive numbers in increasing order", hint)
    return result


def finite(name: str, value: object) -> float:
    """A number that is neither infinite nor NaN."""
    if not _finite(value):
        refuse(name, value, "a finite number")
    return float(value)


def flag(name: str, value: object) -> bool:
    """True or False, and nothing that only counts as one."""
    if not isinstance(value, bool) and type(value).__name__ not in ("bool_", "bool"):  # NumPy's
        refuse(name, value, "True or False")
    return bool(value)


def text(name: str, value: object, *, hint: str = "") -> str:
    """Words as they were given."""
    if not isinstance(value, str):
        refuse(name, value, "text", hint)
    if has_half_characters(value):
        refuse(name, value, "whole characters", f"for {HALF}")
    return value


def choice(name: str, value: object, options: Sequence[Choice], *, hint: str = "") -> Choice:
    """The option that was named: words, or whole numbers."""
    plain = isinstance(value, str) or _counts(value)
    result = next((o for o in options if plain and value == o), None)
    if result is None:
        words = [repr(o) for o in options]
        listed = " or ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
        refuse(name, value, listed, hint)
    return result


def names(
    name: str, value: object, *, what: str = "a column", least: int = 0, distinct: bool = False
) -> tuple[str, ...]:
    """Names as a tuple, given one, several or None; `what` says of what: ``"a column"``, ``"a covariate"``."""
    result = () if value is None else (value,) if isinstance(value, str) else _listed(value)
    if result is None or len(result) < least:
        refuse(name, value, f"the name of {what}, or a list of names")
    twice = next((v for i, v in enumerate(result) if distinct and v in result[:i]), None)
    if twice is not None:
        raise BadInput(f"{name}={shown(value)} names {twice!r} twice: name each once")
    return result


def _listed(value: object) -> tuple[str, ...] | None:
    """Strings of a sequence or another iterable, or None if it holds anything else."""
    result = tuple(value) if isinstance(value, Iterable) and not isinstance(value, bytes) else None
    return result if result is not None and all(isinstance(v, str) for v in result) else None


# ---- names that others use for the same arguments ----

SYNONYMS = {  # of scikit-learn, and what they are called here
    "n_bins": "bins",
    "pos_label": "positive",
    "random_state": "seed",
    "sample_weight": "weights",
    "y_prob": "score",  # these two as names of columns
    "y_true": "label",
}
INSTEAD = {  # names that have no meaning here, and what to write
    "groups": "write by= for people to compare, cluster= for rows that are clusters",
    "n_bins": "leave it out, there are no bins",
    "random_state": "leave it out, nothing is drawn at random",
    **dict.fromkeys(("prob", "proba", "probability", "y_pred", "y_score", "scores"), "write score="),
    **dict.fromkeys(("labels", "y", "outcome_column"), "write label="),
}


@dataclass(frozen=True)
class Call:
    """How a public function may be called."""

    name: str
    places: tuple[str, ...]  # arguments that may be passed by position
    keywords: tuple[str, ...]  # and by name alone
    of_rows: tuple[str, ...]  # and by name where labels and probabilities stand in place of the data
    open: bool  # it takes any other name, too

    @classmethod
    def of(cls, function: Callable[..., object], of_rows: tuple[str, ...] = ()) -> Call:
        """What the signature of a function says."""
        parameters = inspect.signature(function).parameters.values()
        return cls(
            name=function.__name__,
            places=tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)),
            keywords=tuple(p.name for p in parameters if p.kind is p.KEYWORD_ONLY),
            of_rows=of_rows,
            open=any(p.kind is p.VAR_KEYWORD for p in parameters),
        )

    @property
    def own(self) -> tuple[str, ...]:
        """The arguments by name."""
        return (*self.places, *self.keywords)

    def renamed(self, kwargs: Mapping[str, object]) -> dict[str, object]:
        """The arguments of a call under the names that they have here; ``None`` of scikit-learn is the default."""
        result = dict(kwargs)
        for name in [n for n in kwargs if n in SYNONYMS and n not in self.own]:
            ours, value = SYNONYMS[name], kwargs[name]
            column = ours not in ("label", "score") or isinstance(value, str)
            if not column or ours not in (*self.own, *self.of_rows):
                continue
            if ours in kwargs:
                raise BadInput(f"{name}= and {ours}= are one argument: pass {ours}= alone")
            del result[name]
            if value is not None:
                result[ours] = value
        if "alpha" in self.own and "alpha" not in kwargs and "confidence" in result:
            level = number("confidence", result.pop("confidence"), least=0.5, below=1, hint="such as 0.95")
            result["alpha"] = round(1.0 - level, 12)
        return result

    def check(self, args: Sequence[object], kwargs: Mapping[str, object]) -> None:
        """Refuse a name that is not declared, and a value that needs a name, with what to write."""
        unknown = next((n for n in kwargs if n not in self.own and not self.open), None)
        if unknown is not None:
            stated = f"{self.name}() got an unexpected keyword argument {unknown!r}"
            raise TypeError(f"{stated}: {self._instead(unknown)}")
        if len(args) > len(self.places) and self.keywords:
            first = next((n for n in self.keywords if n not in kwargs), self.keywords[0])
            count = f"{len(self.places)} positional argument{'' if len(self.places) == 1 else 's'}"
            raise TypeError(
                f"{self.name}() takes {count} but {len(args)} were given: name the others, such as "
                f"{first}={shown(args[len(self.places)])}"
            )

    def _instead(self, name: str) -> str:
        """What to write in place of an argument that is not declared."""
        ours = SYNONYMS.get(name, name)
        if ours in self.of_rows:
            return f"it belongs to the rows, so write calibrant.predictions(y_true, y_prob, {ours}=...)"
        instead = INSTEAD.get(name, "")
        if instead and ("=" not in instead or instead[len("write ") : instead.index("=")] in self.own):
            return instead
        near = get_close_matches(name, self.own, 1)
        return f"did you mean {near[0]}=?" if near else f"write one of {', '.join(f'{n}=' for n in self.own)}"


def takes_names(function: Callable[P, R]) -> Callable[P, R]:
    """Let a public function take the names of scikit-learn, and say what to write for names that it lacks."""
    call = Call.of(function)

    @wraps(function)
    def called(*args: P.args, **kwargs: P.kwargs) -> R:
        named = call.renamed(kwargs)
        call.check(args, named)
        return function(*args, **named)  # type: ignore[arg-type]

    return called


# ---- arguments declared once ----


@dataclass(frozen=True)
class Place:
    """Under which heading the help of the command lists an option, and whether the short help does."""

    heading: str = ""
    short: bool = True

    @property
    def first(self) -> Place:
        """The same, for what the short help has too."""
        return replace(self, short=True)


HEADINGS = "Input", "Horizon", "Groups", "Bounds", "Tests", "Decisions", "Wording", "Output"  # in the order of the help
INPUT, HORIZON, GROUPS, BOUNDS, TESTS, DECISIONS, WORDING, OUTPUT = (
    Place(heading, short=False) for heading in HEADINGS
)


@dataclass(frozen=True)
class Option:
    """An argument of functions and of the command, declared in the annotation of its type in a `TypedDict`.

    ``limit: Annotated[float | None, "words of the help", Option("L", None, check)]``: what `checked` refuses, the
    signature and the parser follow from it. Without words it is an argument in Python only; of a flag, and of the
    values of a `Literal`, the check need not be declared.
    """

    value: str | None = None  # how the help writes its value
    default: object = None
    check: Callable[..., object] | None = None  # called with its name and value, returns what is used
    choices: tuple[str, ...] = ()  # of the command
    seldom: bool = False  # a record holds it only where it is not the default
    words: str = ""
    place: Place = Place()


@cache
def declared(options: type) -> Mapping[str, tuple[type, Option]]:
    """The type and the declaration of each argument of a `TypedDict`."""
    result = {}
    for name, hint in get_type_hints(options, include_extras=True).items():
        kind, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
        stated = {type(m): m for m in more}
        it = stated.get(Option, Option(default=False, check=flag) if kind is bool else Option())
        if get_origin(kind) is Literal:
            it = replace(it, check=partial(choice, options=get_args(kind)))
        result[name] = (kind, replace(it, words=stated.get(str, ""), place=stated.get(Place, Place())))
    return result


def of_declared(options: type, inputs: Mapping[str, object]) -> dict[str, Any]:
    """Those of some arguments that are declared, as they were given."""
    return {name: inputs[name] for name in declared(options) if name in inputs}


def checked(options: type, inputs: Mapping[str, object], caller: Caller) -> dict[str, Any]:
    """Every declared argument as it will be used: checked, or its default."""
    result = {}
    for name, (_, one) in declared(options).items():
        value = inputs.get(name, one.default)
        result[name] = value if one.check is None else one.check(caller.name(name), value)
    return result


def optional(check: Callable[..., R], **how: object) -> Callable[[str, object], R | None]:
    """The check of an argument that may be None."""
    return lambda name, value: None if value is None else check(name, value, **how)


def named(check: Callable[..., R]) -> Callable[[str, object], R]:
    """A check that takes the value first, as those are called that are declared."""
    return lambda name, value: check(value, name)


def takes(options: type, first: Sequence[str] = (), **defaults: object) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Give a function, which takes declared arguments as ``**options``, the signature that has each; `first` lead."""

    def taking(function: Callable[P, R]) -> Callable[P, R]:
        keyword = inspect.Parameter.KEYWORD_ONLY
        every = declared(options)
        new = [
            inspect.Parameter(n, keyword, default=defaults.get(n, every[n][1].default), annotation=every[n][0])
            for n in sorted(every, key=lambda n: first.index(n) if n in first else len(first))
        ]
        signature, empty = inspect.signature(function), inspect.Parameter.empty
        *own, _ = signature.parameters.values()
        places = [p for p in own if p.kind is not keyword]
        needed, others = ([p for p in own[len(places) :] if (p.default is empty) is is_so] for is_so in (True, False))
        signature = signature.replace(parameters=[*places, *needed, *new, *others])

        @wraps(function)
        def called(*args: P.args, **kwargs: P.kwargs) -> R:
            try:
                every = signature.bind(*args, **kwargs)
            except TypeError as e:
                raise TypeError(f"{function.__name__}(): {e}") from None
            every.apply_defaults()
            return function(*every.args, **every.kwargs)

        called.__signature__ = signature  # type: ignore[attr-defined]
        return called

    return taking


# ---- arguments that mean the same everywhere ----


def checked_seed(seed: object, name: str = "seed") -> int:
    """The seed: a whole number that fits 63 bits."""
    if not _counts(seed) or not 0 <= seed <= LARGEST_SEED:
        refuse(name, seed, "a whole number from 0 to 2**63 - 1")
    return int(seed)


def checked_alpha(alpha: object, name: str = "alpha") -> float:
    """The error probability: at most a half, for a level below that is no confidence."""
    return number(name, alpha, above=0, most=0.5, what="an error probability", hint="such as 0.05 for level 0.95")


def checked_beta(beta: object) -> tuple[float, float]:
    """The two parameters of a beta distribution of scores."""
    values = tuple(beta) if isinstance(beta, Sequence) and not isinstance(beta, str) else ()
    if len(values) != 2 or not all(_finite(v) and 0.0 < v <= 1e6 for v in values):
        what = "two numbers above 0, the parameters of a beta distribution"
        refuse("beta", beta, what, "such as 2,8 for a mean of 0.2")
    return float(values[0]), float(values[1])


def checked_steps(steps: object, name: str = "steps") -> int:
    """The number of steps in which probabilities are shown."""
    return check_int(name, steps, 2, 1024, of="steps", hint="such as 50 or 100")  # 1,024: the cells of a group


def checked_draws(draws: object, alpha: float, name: str = "draws") -> int:
    """The number of draws: enough that one p-value can be as small as `alpha`."""
    if not _counts(draws) or (draws + 1) * alpha < 1.0 - 1e-9:  # 1e-9: 1/alpha is rounded, as in 19 draws at 0.05
        raise BadInput(f"{name}={shown(draws)}: alpha={alpha:g} needs at least {math.ceil(1 / alpha) - 1} draws")
    return int(draws)


def lacking(cluster: object, weights: object) -> str:
    """What rows that are left out may lack, by whether there are clusters and weights."""
    first, last = ["label"], "score"
    for part, there in (("cluster", cluster), ("weight above 0", weights)):
        if there:
            first, last = [*first, last], part
    return f"{', '.join(first)} or {last}"
