"""Array kernels that numba compiles when they are first called; their slow, obviously right oracles live in the tests.

`draws`: numbers keyed by a row's identity; `tally`: rows counted into cells, and by the score; `contents`: rows that
are equal; `strata`: sums in cells along a variable; `boxes`: sums and peaks in boxes; `trees`: small trees and shifts
in cells; `smooth`: smoothers, isotonic regression; `features`: features in whole steps; `quadratic_penalty`: the peak
of a binomial's notch; `roots`: what scipy's optimisers give, without their import; `runtime`: how kernels are
compiled and run, and which few rows NumPy takes.
"""
