"""Codec of kernels: plain JSON trees, no pickle, and only classes that are known to be kernels."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from sklearn.gaussian_process import kernels as sklearn_kernels
from sklearn.gaussian_process.kernels import Kernel

from cloakgp.models.kernels.blocks import BlockMatern
from cloakgp.models.kernels.coregion import CoregionKernel
from cloakgp.models.kernels.forgetting import ForgettingKernel
from cloakgp.models.kernels.gibbs import GibbsKernel
from cloakgp.models.kernels.integral import IntegralRBF
from cloakgp.models.kernels.linear import LinearKernel

KNOWN_KERNELS: dict[str, type[Kernel]] = {
    name: kernel
    for name, kernel in vars(sklearn_kernels).items()
    if isinstance(kernel, type) and issubclass(kernel, Kernel)
}
KNOWN_KERNELS |= {
    kernel.__name__: kernel
    for kernel in (
        BlockMatern,
        CoregionKernel,
        ForgettingKernel,
        GibbsKernel,
        IntegralRBF,
        LinearKernel,
    )
}

# How deep kernels may be nested, as a sum of so many terms is, and how many there may be.
MOST_NESTED, MOST_KERNELS = 100, 1000


def kernel_to_tree(kernel: Kernel) -> dict[str, Any]:
    """Return a JSON-ready tree of a kernel's class and parameters.

    Raises
    ------
    ValueError
        If a parameter is not a number, string, array of numbers, or kernel, or there are too many
        kernels, or nested too deep, to be read again.

    Examples
    --------
    >>> tree = kernel_to_tree(sklearn_kernels.RBF(2.0, length_scale_bounds="fixed"))
    >>> tree["kernel"], tree["parameters"]["length_scale"]
    ('RBF', 2.0)
    """
    tree = _kernel_to_tree(kernel)
    _check_extent(tree)
    return tree


def _kernel_to_tree(kernel: Kernel) -> dict[str, Any]:
    return {
        "kernel": type(kernel).__name__,
        "parameters": {
            name: _value_to_tree(value, parameter=name)
            for name, value in kernel.get_params(deep=False).items()
        },
    }


def kernel_from_tree(tree: Any, *, classes: Iterable[type[Kernel]] = ()) -> Kernel:
    """Rebuild a kernel.

    Parameters
    ----------
    tree : dict
        From `kernel_to_tree`.
    classes : iterable of kernel classes
        Kernels beyond scikit-learn's that the tree may name.

    Raises
    ------
    ValueError
        If the tree is not of that form, is too large or too deep, or names an unknown class.

    Examples
    --------
    >>> kernel_from_tree(kernel_to_tree(sklearn_kernels.RBF(2.0) + sklearn_kernels.DotProduct()))
    RBF(length_scale=2) + DotProduct(sigma_0=1)
    """
    _check_extent(tree)
    return _kernel_from_tree(
        tree, known={**KNOWN_KERNELS, **{kernel.__name__: kernel for kernel in classes}}
    )


def _check_extent(tree: Any) -> None:
    """Refuse trees of very many kernels, or nested very deep, before any is made."""
    level, count = [tree], 0
    for _ in range(MOST_NESTED):
        count += len(level)
        if count > MOST_KERNELS:
            raise ValueError(f"there are more than {MOST_KERNELS} kernels in its kernel")
        level = [inner for outer in level for inner in _kernels_in(outer)]
        if not level:
            return
    raise ValueError(f"its kernels are nested more than {MOST_NESTED} deep")


def _kernels_in(tree: Any) -> list[Any]:
    """Return the descriptions among a kernel's parameters."""
    parameters = tree.get("parameters") if isinstance(tree, dict) else None
    inner = parameters.values() if isinstance(parameters, dict) else ()
    return [value for value in inner if isinstance(value, dict) and set(value) != {"array"}]


def _kernel_from_tree(tree: Any, *, known: Mapping[str, type[Kernel]]) -> Kernel:
    if not isinstance(tree, dict) or set(tree) != {"kernel", "parameters"}:
        raise ValueError("the kernel's description is damaged")
    if not isinstance(tree["kernel"], str) or tree["kernel"] not in known:
        raise ValueError(
            f"unknown kernel {tree['kernel']!r}: when loading, pass its class as kernels=(...,)"
        )
    if not isinstance(tree["parameters"], dict):
        raise ValueError("the kernel's parameters are damaged")
    parameters = {
        name: _value_from_tree(value, known=known) for name, value in tree["parameters"].items()
    }
    try:
        kernel = known[tree["kernel"]](**parameters)
    except TypeError as error:
        raise ValueError(f"the kernel's parameters do not fit {tree['kernel']}") from error
    _check_parameters(kernel)
    return kernel


def _check_parameters(kernel: Kernel) -> None:
    """Refuse parts that are no kernels and hyperparameters that are no numbers."""
    parameters = kernel.get_params(deep=False)
    for name, value in parameters.items():
        if name in {"k1", "k2", "kernel"} and not isinstance(value, Kernel):
            raise ValueError("the kernel's parts are damaged")
    if any(isinstance(value, Kernel) for value in parameters.values()):
        # What they have of their own is theirs, and checked.
        return
    for hyperparameter in kernel.hyperparameters:
        values = np.asarray(getattr(kernel, hyperparameter.name, 1.0), dtype=np.float64)
        if values.ndim > 1 or np.isnan(values).any():
            raise ValueError("the kernel's hyperparameters are damaged")


def _value_to_tree(value: Any, *, parameter: str) -> Any:
    if isinstance(value, Kernel):
        return _kernel_to_tree(value)
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray | tuple | list):
        array = np.asarray(value)
        if array.dtype.kind in "fiu":
            return {"array": array.tolist()}
    raise ValueError(
        f"kernel parameter {parameter!r} cannot be written to a file: it is neither a number, a "
        "string, an array of numbers nor a kernel"
    )


def _value_from_tree(value: Any, *, known: Mapping[str, type[Kernel]]) -> Any:
    if isinstance(value, dict) and set(value) == {"array"}:
        array = np.asarray(value["array"], dtype=np.float64)
        # scikit-learn takes bounds as tuples and compares them as such.
        return tuple(array.tolist()) if array.shape == (2,) else array
    if isinstance(value, dict):
        return _kernel_from_tree(value, known=known)
    return value
