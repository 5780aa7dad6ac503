"""Memory of Dask's workers that is kept between tasks.

By default Dask has workers give memory back at once, and a fit, which takes and leaves the same
matrices all the time, needs a third more CPU time.
"""

# For `dask.config`, while workers are started; in bytes.
ALLOCATION = {
    "distributed.nanny.pre-spawn-environ.MALLOC_TRIM_THRESHOLD_": 2**27,
    "distributed.nanny.pre-spawn-environ.MALLOC_MMAP_THRESHOLD_": 2**26,
}
