"""Files of releases: written from the fields of a release, and checked when they are read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, ClassVar, Self

from sklearn.gaussian_process.kernels import Kernel

from cloakgp.release.io.bundle import COEFFICIENTS, Store, bundle_bytes, read_bundle
from cloakgp.release.io.codec import Reader, to_tree
from cloakgp.utils.files import write_file


class SavedRelease:
    """A release that is written to a file and read from it.

    Attributes
    ----------
    kind : str
        What its file says that it holds; of every class another.
    """

    kind: ClassVar[str]

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release to one file, without pickle.

        Parameters
        ----------
        path : str or Path
        overwrite : bool
            Replace a file that exists.

        Raises
        ------
        FileExistsError
            If it exists and overwrite is False.
        ValueError
            If the kernel has parameters that are neither numbers, strings, arrays nor kernels.
        """
        write_file(path, self.to_bytes(), overwrite=overwrite)

    def to_bytes(self) -> bytes:
        """Return the file that `save` would write."""

        def tree(stored: Store) -> dict[str, Any]:
            entries: dict[str, Any] = to_tree(self, stored=stored)
            found = self.coefficients(stored=stored, beside=True)
            return entries if found is None else {**entries, COEFFICIENTS: found}

        return bundle_bytes(kind=self.kind, tree=tree)

    def coefficients(self, *, stored: Store, beside: bool = False) -> dict[str, Any] | None:
        """Return what programs in other languages predict by, if they can.

        Parameters
        ----------
        stored : callable
            What stands for an array.
        beside : bool
            Whether that is kept beside the release itself, where equal arrays are kept once.
        """
        del stored, beside
        return None

    @classmethod
    def load(
        cls,
        path: str | Path,
        *,
        kernels: Iterable[type[Kernel]] = (),
        max_bytes: int | None = None,
    ) -> Self:
        """Read a release from a file, and check it: its noise must keep the guarantee it states.

        Parameters
        ----------
        path : str or Path
        kernels : iterable of kernel classes
            Kernels beyond scikit-learn's that the release may use.
        max_bytes : int, optional
            The most that the file may unpack to. If not given, a hundred times its size, but at
            least 256 MiB and at most 8 GiB.

        Raises
        ------
        FileNotFoundError
            If there is no such file.
        ReleaseFileError
            If the file is not such a release, is truncated, edited, too large, or of another
            version of the format.
        """
        known = tuple(kernels)
        return read_bundle(
            path,
            kind=cls.kind,
            parse=lambda entries, loaded: Reader(loaded=loaded, kernels=known).read(entries, cls),
            max_bytes=max_bytes,
        )
