"""Statistics over arrays: arrays in, numbers or arrays out; nothing here meets a file, a frame or a sketch.

Certificates: `evidence`, `cells`, `betting`, `bounds`, `jitter`, `variable`. Tests: `nulls`, `classical`, `cusum`,
`local`. Measures, curves and fits: `measures`, `strata`, `smoothing`, `logistic`. Sections of the theory that
comments name are those of the project's theory notes; theorems have their names there (1, 2, U, L, 3, and the notch).
"""
