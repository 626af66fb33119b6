"""Kernels for a GPU are tested by Triton's interpreter, which must be asked for before Triton is first imported."""

import os

os.environ["TRITON_INTERPRET"] = "1"
