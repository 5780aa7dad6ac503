"""Loading of release files of any kind."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.release import MultiOutputRelease, OneOutputRelease, Release, StatisticsRelease
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.io.bundle import MOST_SHOWN, ReleaseFileError, kind_of

OpenedRelease = OneOutputRelease | MultiOutputRelease | NoisyHistogram
CLASSES: tuple[type[OpenedRelease], ...] = (
    Release,
    MultiOutputRelease,
    StatisticsRelease,
    NoisyHistogram,
)
KINDS = {each.kind: each for each in CLASSES}


def load(
    path: str | Path, *, kernels: Iterable[type[Kernel]] = (), max_bytes: int | None = None
) -> OpenedRelease:
    """Read and check a release of any kind from a file.

    Parameters
    ----------
    path : str or Path
    kernels : iterable of kernel classes
        Kernels beyond scikit-learn's that the release may use.
    max_bytes : int, optional
        The most that the file may unpack to. If not given, a hundred times its size, but at least
        256 MiB and at most 8 GiB.

    Returns
    -------
    Release, MultiOutputRelease, StatisticsRelease or NoisyHistogram

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If the file is not a release, truncated, edited, too large, or newer than this package.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from cloakgp import DPGPClassifier
    >>> model = DPGPClassifier(classes=[0, 1], epsilon=1.0, delta=1e-3)
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder) / "illness.cloak"
    ...     model.fit([[0.0], [1.0], [2.0]], [0, 1, 1]).release_.save(path)
    ...     load(path).classes
    (0, 1)
    """
    kind = kind_of(path, max_bytes=max_bytes)
    if kind not in KINDS:
        raise ReleaseFileError(
            f"{path}: this is a release of {kind[:MOST_SHOWN]}, which this package does not know: "
            "install a newer one"
        )
    return KINDS[kind].load(path, kernels=kernels, max_bytes=max_bytes)
