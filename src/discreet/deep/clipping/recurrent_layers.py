"""Recurrent layers: a matrix for what comes in, which sees all times at once, and one for the state before.

At time t the gates are W x_t + b and U h_(t-1) + c, added up before they are bent. So the gradient that arrives at the
first of them gives both matrices' gradients; for the last gate of a GRU, whose second part is multiplied by another
gate r_t, after multiplication by r_t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from discreet.deep.clipping.joined_layers import JoinedRule, MatrixUse, Watch
from discreet.deep.clipping.layer_rule import LayerCall, refuse, rule_for

State = tuple[Tensor, ...]
"""What a cell hands to the next time: first what it gives, then what it remembers besides."""

Cell = Callable[[Tensor, Tensor, State], tuple[State, Tensor | None]]
"""Takes the gates' parts from the input and from the state before, and that state; returns the next one, and r_t."""


def _lstm(outer: Tensor, inner: Tensor, state: State) -> tuple[State, None]:
    enter, forget, fresh, leave = (outer + inner).chunk(4, 1)
    kept = forget.sigmoid() * state[1] + enter.sigmoid() * fresh.tanh()
    return (leave.sigmoid() * kept.tanh(), kept), None


def _gru(outer: Tensor, inner: Tensor, state: State) -> tuple[State, Tensor]:
    (reset, update, fresh), (resets, updates, past) = outer.chunk(3, 1), inner.chunk(3, 1)
    chosen, stays = (reset + resets).sigmoid(), (update + updates).sigmoid()
    found = (fresh + chosen * past).tanh()
    return ((1 - stays) * found + stays * state[0],), chosen


def _tanh(outer: Tensor, inner: Tensor, state: State) -> tuple[State, None]:  # noqa: ARG001 - the gates are all
    return ((outer + inner).tanh(),), None


def _relu(outer: Tensor, inner: Tensor, state: State) -> tuple[State, None]:  # noqa: ARG001 - the gates are all
    return ((outer + inner).relu(),), None


_CELLS: dict[str, Cell] = {"LSTM": _lstm, "GRU": _gru, "RNN_TANH": _tanh, "RNN_RELU": _relu}


@rule_for(nn.LSTM, nn.GRU, nn.RNN)
class RecurrentRule(JoinedRule):
    """Two linear layers for each layer and direction, and cells without parameters, which autograd goes through.

    States that are projected (`proj_size`) are left to the rule for any layer.
    """

    def fits(self, layer: nn.Module, names: tuple[str, ...]) -> bool:
        """Returns whether the layer is computed here."""
        own: Any = layer
        return own.batch_first and not own.proj_size and set(names) <= set(own._flat_weights_names)

    def forward(self, layer: nn.Module, watch: Watch, *inputs: Any, **keywords: Any) -> Any:
        """Returns what the layer gives; see `torch.nn.LSTM.forward` and its relatives for what it is called with."""
        return _recur(layer, watch, *inputs, **keywords)

    def parts(self, call: LayerCall) -> list[MatrixUse]:
        """Returns both matrices of each layer and direction."""
        layer: Any = call.layer
        several = len(call.inputs) // len(call.gradients)
        found = []
        for place, (suffix, e) in enumerate(zip(_suffixes(layer), call.gradients, strict=True)):
            if e is not None:
                x, h, *chosen = call.inputs[several * place : several * (place + 1)]
                found.append(MatrixUse(x, e, _rows("ih", suffix, layer.bias)))
                found.append(MatrixUse(h, _reset(e, chosen[0]) if chosen else e, _rows("hh", suffix, layer.bias)))
        return found


def _suffixes(layer: Any) -> list[str]:
    """Returns the ends of the names of parameters, in the order of states."""
    ends = ("", "_reverse") if layer.bidirectional else ("",)
    return [f"l{place}{end}" for place in range(layer.num_layers) for end in ends]


def _rows(kind: str, suffix: str, bias: bool) -> dict[str, tuple[str, int]]:
    found = {"weight": (f"weight_{kind}_{suffix}", 0)}
    return found | ({"bias": (f"bias_{kind}_{suffix}", 0)} if bias else {})


def _reset(e: Tensor, chosen: Tensor) -> Tensor:
    """Returns the gradient at the state's part of the gates of a GRU."""
    gates = e.unflatten(-1, (3, -1))
    return torch.cat([gates[..., :2, :].flatten(-2), gates[..., 2, :] * chosen], -1)


@dataclass(frozen=True, slots=True)
class _Direction:
    """One layer in one direction."""

    layer: Any
    suffix: str
    watch: Watch

    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """Returns what it gives at all times, and its last state."""
        cell = _CELLS[self.layer.mode]
        outer = self.watch((x,), functional.linear(x, *self._matrix("ih"))).unbind(1)
        inner = self._matrix("hh")
        given, before, resets = [], [], []
        backwards = self.suffix.endswith("_reverse")
        for gates in reversed(outer) if backwards else outer:
            before.append(state[0])
            state, chosen = cell(gates, functional.linear(state[0], *inner), state)
            given.append(state[0])
            resets += [] if chosen is None else [chosen]
        kept = [several[::-1] if backwards else several for several in (before, resets) if several]
        self.watch(tuple(torch.stack(several, 1) for several in kept), None)
        return torch.stack(given[::-1] if backwards else given, 1), state

    def _matrix(self, kind: str) -> list[Any]:
        names = [name for name, _ in _rows(kind, self.suffix, self.layer.bias).values()]
        return [getattr(self.layer, name) for name in names]


def _recur(layer: Any, watch: Watch, input: Any, hx: Any = None) -> Any:  # noqa: A002 - the names of PyTorch
    if not isinstance(input, Tensor) or input.dim() != 3:
        raise refuse(layer, "of batches of one length", "Give it a first dimension of examples, and pad them.")
    suffixes, remembers = _suffixes(layer), layer.mode == "LSTM"
    if hx is None:
        zeros = input.new_zeros(len(suffixes), len(input), layer.hidden_size)
        states = [zeros, zeros] if remembers else [zeros]
    else:
        states = list(hx) if remembers else [hx]
    x, last = input, []
    directions = 2 if layer.bidirectional else 1
    for start in range(0, len(suffixes), directions):
        if start and layer.dropout:
            x = functional.dropout(x, layer.dropout, layer.training)
        places = range(start, start + directions)
        runs = [_Direction(layer, suffixes[p], watch).run(x, tuple(each[p] for each in states)) for p in places]
        x = torch.cat([given for given, _ in runs], -1)
        last += [state for _, state in runs]
    ends = tuple(torch.stack(several) for several in zip(*last, strict=True))
    return x, ends if remembers else ends[0]
