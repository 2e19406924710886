"""Array kernels that numba compiles when they are first called; their slow, obviously right oracles live in the tests.

`draws`: numbers keyed by a row's identity; `tally`: rows counted into cells; `strata`: sums in cells along a variable;
`trees`: small trees and shifts in cells; `smooth`: smoothers; `features`: features in whole steps; `notch`: the peak of
a binomial's notch; `roots`, `isotonic`: what scipy's optimisers give, without their import; `runtime`: how kernels are
compiled and run.
"""
