"""Convert anything array-like to NumPy arrays: lists, and tensors of any library on any device."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from boxscore._utils import checks
from boxscore.errors import InputError


def as_array(value: Any, name: str) -> NDArray[Any]:
    """Convert anything array-like to an array; messages call it ``name``. No library is imported."""
    if type(value) is np.ndarray:
        return value
    # PyTorch.
    if hasattr(value, "detach"):
        return _of_torch(value, name)
    # TensorFlow's ragged tensors.
    if hasattr(value, "to_tensor") and hasattr(value, "row_splits"):
        value = value.to_tensor(-1)
    if isinstance(value, (list, tuple)) and value and hasattr(value[0], "detach"):
        value = [as_array(item, name) for item in value]
    if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
        array = _of_dlpack(value, name)
    else:
        array = _of_numpy(value, name)
    # JAX and TensorFlow.
    if array.dtype.kind == "V" and array.dtype.name == "bfloat16":
        array = array.astype(np.float32)
    return array


def as_whole_numbers(value: Any, name: str, *, place: str) -> NDArray[Any]:
    """Convert whole class numbers [N] to integers, also floats; return anything else unchanged."""
    array = as_array(value, name).reshape(-1)
    if array.dtype.kind != "f":
        return array
    with np.errstate(invalid="ignore"):
        whole = array.astype(np.int64)
    wrong = np.flatnonzero(whole != array)
    if len(wrong):
        raise InputError(name, "be whole numbers", got=array[wrong[0]], place=place)
    return whole


def _of_torch(value: Any, name: str) -> NDArray[Any]:
    # Most tensors become arrays directly, without a copy on the host.
    try:
        return np.asarray(value.detach().cpu().numpy())
    # NumPy lacks the type, or the layout is not plain.
    except (NotImplementedError, RuntimeError, TypeError):
        pass
    # For the others, first remove features that NumPy lacks: sparse layouts, quantization, lazy conjugates,
    # short floats.
    try:
        plain = value.detach().cpu()
        if "strided" not in str(getattr(plain, "layout", "strided")):
            plain = plain.to_dense()
        if getattr(plain, "is_quantized", False):
            plain = plain.dequantize()
        if hasattr(plain, "resolve_neg"):
            plain = plain.resolve_conj().resolve_neg()
        return np.asarray(plain.numpy() if "float" not in str(plain.dtype) else plain.double().numpy())
    except (AttributeError, NotImplementedError, RuntimeError, TypeError) as error:
        words = str(error).split("\n", 1)[0].rstrip(".")
        got = f"a {type(value).__name__} on {getattr(value, 'device', 'a device')} that is not ({words})"
        cause = "x.detach().cpu().numpy() has to work"
        raise InputError(name, "be readable from the host", got=got, cause=cause) from None


def _of_numpy(value: Any, name: str) -> NDArray[Any]:
    try:
        return checks.any_array(value, name=name)
    except InputError:
        raise
    except (NotImplementedError, RuntimeError, TypeError, ValueError) as error:
        # CuPy.
        if hasattr(value, "get") and hasattr(value, "__dlpack__"):
            return np.asarray(value.get())
        words = str(error).split("\n", 1)[0].rstrip(".")
        raise InputError(name, "be an array", got=words) from None


def _of_dlpack(value: Any, name: str) -> NDArray[Any]:
    try:
        return np.from_dlpack(value)
    # On a device that NumPy cannot read.
    except (BufferError, RuntimeError, TypeError):
        pass
    try:
        return np.from_dlpack(value, device="cpu")
    except (BufferError, RuntimeError, TypeError, ValueError):
        cause = "copy it to the host first"
        raise InputError(name, "be on the host", got=f"a {type(value).__name__}", cause=cause) from None
