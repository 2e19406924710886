"""Statistics over arrays: arrays in, numbers or arrays out; nothing here meets a file, a frame or a sketch.

Certificates: `evidence`, `cells`, `betting`, `bounds`, `jitter`, `variable`. Tests: `nulls`, `classical`, `cusum`,
`local`. Measures, curves and fits: `measures`, `strata`, `smoothing`, `logistic`. Theorems have the names of
docs/proofs.md and docs/proofs-clusters.md.
"""
