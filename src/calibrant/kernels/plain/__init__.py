"""Kernels in NumPy, for few rows: what compiling costs, and loading what was compiled, is more than they take.

Which way is taken depends on sizes alone (see `runtime.few`), so that results are the same cold and warm.
"""
