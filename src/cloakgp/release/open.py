"""Open a release file, whatever kind of release it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.release import MultiOutputRelease, Release, StatisticsRelease
from cloakgp.release.histogram import NoisyHistogram
from cloakgp.release.io.bundle import ReleaseFileError, kind_of, other_kind
from cloakgp.release.io.release_file import RELEASE

OpenedRelease = Release | MultiOutputRelease | StatisticsRelease | NoisyHistogram
Kernels = tuple[type[Kernel], ...]
# How to open a file of each kind.
OPENERS: dict[str, Callable[[str | Path, Kernels], OpenedRelease]] = {
    RELEASE: lambda path, kernels: Release.load(path, kernels=kernels),
    "regression of several outputs": lambda path, kernels: MultiOutputRelease.load(
        path, kernels=kernels
    ),
    "statistics": lambda path, kernels: StatisticsRelease.load(path, kernels=kernels),
    "histogram": lambda path, _: NoisyHistogram.load(path),
}


def load(path: str | Path, *, kernels: Iterable[type[Kernel]] = ()) -> OpenedRelease:
    """Read a release from a file, of whatever kind, checking it.

    Parameters
    ----------
    path : str or Path
    kernels : iterable of kernel classes
        Kernels beyond scikit-learn's that the release may use.

    Returns
    -------
    Release, MultiOutputRelease, StatisticsRelease or NoisyHistogram

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ReleaseFileError
        If the file is not a release, truncated, edited, or newer than this package.

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
    kind = kind_of(path)
    if kind not in OPENERS:
        raise ReleaseFileError(f"{path}: {other_kind(kind)}")
    return OPENERS[kind](path, tuple(kernels))
