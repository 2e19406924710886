"""Where sketches are made: one pass over a source (`reduce`), here or on a cluster (`spark`, `dask`), and what travels
there (`work`). Engines import the files of `data`; of those only `read` imports an engine."""
