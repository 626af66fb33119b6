"""Networks that an estimator trains: a small one of ours, a function's, a module, or one registered by name.

A name is all that a saved model or a ledger keeps of code: nothing that is read from a text can be executed, and who
reads it registers the same function first.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from discreet import check
from discreet.errors import InvalidParameter

Build = Callable[[Any, int], nn.Module]
"""Makes a network of the number of features, or of their shape where the estimator has one, and of the outputs."""

WIDEST, DEEPEST = 1 << 12, 16  # of hidden layers
LONGEST_NAME = 100
_NAMED: dict[str, Build] = {}
_HINT = (
    "Pass None for a small network, a registered name, a module, or a function that returns a module. The function "
    "gets the number of features (or their shape) and the number of outputs."
)


def register_model(name: str, build: Build) -> None:
    """Gives a function that makes networks a name, for `model=` of estimators; what is saved keeps the name alone.

    A curator trains networks by name only, so that a ledger never holds code. A name keeps its meaning: to read a saved
    model, register the same function first.

    Args:
        name: a Python identifier.
        build: of the number of features, or of their shape if the estimator has one, and of the number of outputs.

    Raises:
        InvalidParameter: if the name is none, or is another function's.

    >>> register_model("one_layer", torch.nn.Linear)
    >>> register_model("cnn", torch.nn.Linear)
    Traceback (most recent call last):
    ...
    discreet.errors.InvalidParameter: Expected name='cnn' to be free. Models saved under this name would ...
    """
    if not check.label(name=name).isidentifier() or len(name) > LONGEST_NAME:
        raise InvalidParameter("name", name, "to be an identifier", "Use letters, digits and underscores.")
    if not callable(build):
        raise InvalidParameter("build", type(build).__name__, "to be a function", _HINT)
    if _NAMED.get(name, build) is not build:
        raise InvalidParameter("name", name, "to be free", "Models saved under this name would mean another one.")
    _NAMED[name] = build


def network(model: Any, hidden: Any, features: Any, outputs: int) -> nn.Module:
    """Returns a new network; a module that was given is copied. Random numbers of PyTorch go on as they were.

    Args:
        model: what an estimator has.
        hidden: the widths of hidden layers of our own network.
        features: their number, or their shape.
        outputs: how many numbers the network gives for each example.

    Raises:
        InvalidParameter: if it cannot be made, or gives something else for a public example.
    """
    with own_numbers():
        made = _make_network(model, hidden, features, outputs)
        if not isinstance(made, nn.Module):
            raise InvalidParameter("model", type(made).__name__, "to make a torch.nn.Module", _HINT)
        _check_outputs(made, features, outputs)
    return made


@contextmanager
def own_numbers(seed: int | None = None) -> Iterator[None]:
    """Lets a block draw random numbers of PyTorch, from a seed if one is given, and leaves others' as they were."""
    before = torch.get_rng_state()
    if seed is not None:
        torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(before)


def _make_network(model: Any, hidden: Any, features: Any, outputs: int) -> Any:
    if isinstance(model, nn.Module):
        return copy.deepcopy(model)
    build = _perceptron(hidden) if model is None else _NAMED.get(model) if isinstance(model, str) else model
    if not callable(build):
        known = f"Registered: {', '.join(_NAMED)}."
        raise InvalidParameter("model", model, "to make a network", f"{_HINT} {known}")
    return _try_call("to make a network", build, features, outputs)


def _check_outputs(made: nn.Module, features: Any, outputs: int) -> None:
    """Runs a network on two public examples, as it predicts."""
    size = features if isinstance(features, tuple) else (features,)
    was = made.training
    made.eval()
    with torch.no_grad():
        found = _try_call(f"to take examples of shape {size}", made, torch.zeros(2, *size))
    made.train(was)
    shape = tuple(getattr(found, "shape", ()))
    if shape != (2, outputs):
        told = f"to give {outputs} numbers for each example"
        raise InvalidParameter("model", f"outputs of shape {shape} for 2 examples", told, _HINT)


def _try_call(condition: str, run: Callable[..., Any], *given: Any) -> Any:
    """Returns a caller function's result for public values; its error may be shown, since nothing private was read."""
    try:
        return run(*given)
    except Exception as error:
        found = f"{type(error).__name__}: {error}"[:400]
        raise InvalidParameter("model", found, condition, _HINT) from error


def _perceptron(hidden: Any) -> Build:
    """Returns full layers with tanh between them: bounded outputs lose less to clipping (Papernot et al. 2021)."""
    widths = tuple(hidden) if isinstance(hidden, list | tuple) else (hidden,)
    if len(widths) > DEEPEST:
        raise InvalidParameter("hidden", hidden, f"to have at most {DEEPEST} layers", "Pass a model for more layers.")
    sizes = [check.integer(hidden=width, at_least=1, at_most=WIDEST) for width in widths]

    def build(features: Any, outputs: int) -> nn.Module:
        first = math.prod(features) if isinstance(features, tuple) else features
        layers: list[nn.Module] = [nn.Flatten()]
        for before, after in zip([first, *sizes], sizes, strict=False):
            layers += [nn.Linear(before, after), nn.Tanh()]
        return nn.Sequential(*layers, nn.Linear(sizes[-1] if sizes else first, outputs))

    return build


def _small_cnn(shape: Any, outputs: int) -> nn.Module:
    """Returns two convolutions of stride 2 and a full layer, for images of a shape (channels, height, width)."""
    if not isinstance(shape, tuple) or len(shape) != 3:
        raise InvalidParameter("shape", shape, "to be (channels, height, width)", "A convolution needs images.")
    channels, height, width = shape
    layers = [nn.Conv2d(channels, 16, 5, stride=2, padding=2), nn.Tanh()]
    layers += [nn.Conv2d(16, 32, 3, stride=2, padding=1), nn.Tanh(), nn.AdaptiveAvgPool2d(4), nn.Flatten()]
    del height, width  # the pooling makes all sizes one
    return nn.Sequential(*layers, nn.Linear(32 * 16, outputs))


register_model("cnn", _small_cnn)


def public_state(made: nn.Module) -> dict[str, Any]:
    """Returns all of a network that no noisy step changes, as arrays by name: buffers, and parameters that are frozen.

    Copied before a run, it takes the place of what a network itself has written there while it saw rows.
    """
    trained = {name for name, parameter in made.named_parameters() if parameter.requires_grad}
    return {name: array for name, array in weights_of(made).items() if name not in trained}


def weights_of(made: nn.Module) -> dict[str, Any]:
    """Returns the state of a network, as arrays by name."""
    return {name: tensor.detach().cpu().numpy().copy() for name, tensor in made.state_dict().items()}


def with_weights(made: nn.Module, weights: Mapping[str, Any]) -> nn.Module:
    """Returns a network in 64 bits for prediction, with weights that were kept; its own are forgotten.

    Raises:
        InvalidParameter: if they are another network's.
    """
    try:
        made.load_state_dict({name: torch.as_tensor(array) for name, array in weights.items()})
    except RuntimeError:
        hint = "The model of this name, or its shape, differs from the trained one."
        raise InvalidParameter("weights", ", ".join(weights)[:200], "to be those of the network", hint) from None
    return made.double().eval()
