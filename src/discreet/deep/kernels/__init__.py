"""Kernels for CUDA in Triton: norms of gradients without the gradients, and noise on the device.

Each computes what an eager function of `discreet.deep` computes too, which is what it is tested against. They are used
on tensors of a GPU where Triton is installed (PyTorch brings it along), and nowhere else.
"""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

import torch
from torch import Tensor


def usable(*values: Tensor) -> bool:
    """Returns whether the kernels can compute with these."""
    kinds = (torch.float32, torch.bfloat16)
    return all(value.is_cuda and value.dtype in kinds for value in values) and _has_triton()


@cache
def _has_triton() -> bool:
    return find_spec("triton") is not None


def product_precision(*, convolution: bool = False) -> str:
    """Returns how PyTorch is set to multiply numbers of 32 bits: "ieee", or "tf32" with fewer digits."""
    reduced = torch.backends.cudnn.allow_tf32 if convolution else torch.get_float32_matmul_precision() != "highest"
    return "tf32" if reduced else "ieee"


def rounds_products(values: Tensor) -> bool:
    """Returns whether products of 32 bits may be rounded to fewer digits where the values are."""
    return values.is_cuda and "tf32" in (product_precision(), product_precision(convolution=True))
