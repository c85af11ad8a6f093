"""What a file holds, against what the class that reads it declares: JSON by field, arrays by shape.

    FIELDS = {"kind": {"sparse", "full"}, "nodes": int, "names": [str], "scale": (float, None)}
    ARRAYS = {"Z": "float m d", "alpha": "float P m", "label": "text n"}

Files come from anyone. What is not as declared is an InputError that names it; who opened the file
adds which file it was.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gpal.errors import InputError, shown

__all__ = ["check_arrays", "check_fields", "check_keys", "is_number", "whole_number"]

# NumPy's codes of dtypes, in the byte order of every machine that gpal runs on.
KINDS = {"float": "f8", "single": "f4", "int": "i", "bool": "b1", "text": "U"}


def check_fields(data: Any, declared: Mapping[str, Any], what: str) -> None:
    """InputError unless the JSON object `data` has exactly the fields declared, of their types.

    A type is a class (float: any number; int: no truth value), a list of one type for a list of
    such, a set of what may stand there, or a tuple of several of these and None.
    """
    if not isinstance(data, Mapping):
        raise InputError(f"{what} is {shown(data)}, not an object with fields")
    check_keys(data, declared, what)
    for name, kind in declared.items():
        if not _is(data[name], kind):
            raise InputError(f"'{name}' of {what} is {shown(repr(data[name]))}, not {_named(kind)}")


def check_keys(found: Iterable[str], declared: Iterable[str], what: str) -> None:
    """InputError unless these are the same names."""
    found, declared = list(found), list(declared)
    for name in declared:
        if name not in found:
            raise InputError(f"{what} lacks '{name}'")
    for name in found:
        if name not in declared:
            raise InputError(f"{what} has '{shown(name)}', which is unknown")


def check_arrays(
    arrays: Mapping[str, np.ndarray],
    declared: Mapping[str, str],
    sizes: Mapping[str, int],
    may_be_nan: Iterable[str] = (),
) -> dict[str, int]:
    """The sizes by letter; InputError unless these are exactly the arrays declared, and finite.

    declared    name -> kind (of KINDS) and axes; axes of one letter have one length, digits are a
                length
    sizes       letters whose size is known already
    may_be_nan  names of arrays that may hold NaN or infinities
    """
    check_keys(arrays, declared, "the file")
    sizes = dict(sizes)
    for name, text in declared.items():
        array, (kind, *axes) = arrays[name], text.split()
        fits = array.ndim == len(axes) and array.dtype.str.lstrip("<|=").startswith(KINDS[kind])
        for length, axis in zip(array.shape, axes):
            wanted = int(axis) if axis.isdigit() else sizes.setdefault(axis, length)
            fits = fits and length == wanted
        if not fits:
            known = ", ".join(
                f"{axis} = {sizes[axis]}" for axis in dict.fromkeys(axes) if axis in sizes
            )
            raise InputError(
                f"the array '{name}' is {array.dtype} of shape {array.shape}, not {kind} of"
                f" ({', '.join(axes)})" + (f" with {known}" if known else "")
            )
        if kind in ("float", "single") and name not in may_be_nan and not np.isfinite(array).all():
            raise InputError(f"the array '{name}' holds a value that is not finite")
    return sizes


def whole_number(value: Any, name: str, least: int = 0, most: int = 1 << 20) -> int:
    """`value` as an int; InputError where it is none, or out of bounds."""
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise InputError(
            f"{name} must be a whole number from {least} to {most}, got {shown(value)}"
        )
    return int(value)


def is_number(value: Any) -> bool:
    """Whether it is one, of Python's or NumPy's."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _is(value: Any, kind: Any) -> bool:
    if isinstance(kind, tuple):
        return any(_is(value, one) for one in kind)
    if isinstance(kind, list):
        return isinstance(value, list) and all(_is(item, kind[0]) for item in value)
    if isinstance(kind, set | frozenset):
        return isinstance(value, str) and value in kind
    if kind is None:
        return value is None
    if kind is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if kind is int:
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, kind)


def _named(kind: Any) -> str:
    if isinstance(kind, tuple):
        return " or ".join(map(_named, kind))
    if isinstance(kind, list):
        return f"a list of {_named(kind[0])}"
    if isinstance(kind, set | frozenset):
        return f"one of {', '.join(sorted(kind))}"
    names = {None: "null", float: "a number", int: "a whole number", str: "a text"}
    return names.get(kind) or {dict: "an object", list: "a list", bool: "true or false"}[kind]
