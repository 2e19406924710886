"""When has a simulation refuted a claimed error rate?"""

from collections.abc import Callable

from scipy.stats import binom

LEAST = 1e-6  # a suite of a thousand true claims fails by chance less than once in a thousand runs
SETS = 1000  # of which 8.7 % misses refute 5 %; of 60 it takes 25 %, which enumeration sees too


def refuted(misses: int, runs: int, rate: float) -> bool:
    """Tell whether so many misses have probability below 1e-6 if each run misses with probability `rate`."""
    return bool(binom.sf(misses - 1, runs, rate) < LEAST)


def count(miss: Callable[[int], bool], runs: int) -> int:
    """Count the misses over replicates 0, 1, ..."""
    return sum(bool(miss(replicate)) for replicate in range(runs))


def check(miss: Callable[[int], bool], runs: int, rate: float) -> None:
    """Fail if the replicates refute the claim that a miss has probability at most `rate`."""
    misses = count(miss, runs)
    assert not refuted(misses, runs, rate), f"{misses} misses in {runs} runs refute an error rate of {rate}"
