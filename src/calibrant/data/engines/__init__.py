"""Where sketches are made: on local threads (`local`), or on a cluster (`spark`, `dask`) by what travels there (`work`)."""
