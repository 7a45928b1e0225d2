"""Functions of scipy.special, which loads OpenBLAS: that hangs if it cannot allocate its buffers."""

from mmap import mmap

mmap(-1, 96 << 20).close()  # raises an OSError if this address space is not left; loading takes 81 MiB of it

from scipy.special import bdtr, bdtrc, betaincinv, chdtrc, gammainc, gammaincc, ndtr, ndtri, stdtr, stdtrit  # noqa: E402

__all__ = ["bdtr", "bdtrc", "betaincinv", "chdtrc", "gammainc", "gammaincc", "ndtr", "ndtri", "stdtr", "stdtrit"]
