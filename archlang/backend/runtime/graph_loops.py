"""Loops whose number of steps is not known when a model is exported: then they are operations of torch.

While torch.export traces a model, lengths are symbols and Python cannot iterate over them: loops over positions, chunks
and halting steps become `scan` and `while_loop`, which ONNX has as `Scan` and `Loop`."""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

Tensors = Sequence[Tensor]


def is_exporting() -> bool:
    """Returns whether torch.export traces the call."""
    return torch.compiler.is_exporting()


def scan_steps(
    step: Callable[[Tensors, Tensors], tuple[Tensors, Tensors]], states: Tensors, inputs: Tensors
) -> tuple[list[Tensor], list[Tensor]]:
    """Runs `step(states, inputs)` for the slices of `inputs` along their first axis, which returns the next states and
    the step's results. Returns the last states, and the results of all steps, stacked along the first axis."""
    if is_exporting():
        return _scan(step, states, inputs)
    results: list[Tensors] = []
    for sliced in zip(*(value.unbind() for value in inputs), strict=True):
        states, own = step(states, sliced)
        results.append(own)
    if results:
        return list(states), [torch.stack(values) for values in zip(*results, strict=True)]
    # A step without effect shows the shapes.
    _, own = step(states, [value.new_zeros(value.shape[1:]) for value in inputs])
    return list(states), [value.new_zeros(0, *value.shape) for value in own]


def _scan(
    step: Callable[[Tensors, Tensors], tuple[Tensors, Tensors]], states: Tensors, inputs: Tensors
) -> tuple[list[Tensor], list[Tensor]]:
    from torch._higher_order_ops.scan import scan  # no public name yet

    def combine(carried: list[Tensor], sliced: list[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        next_states, results = step(carried, sliced)
        # torch requires results that share no memory.
        return [state.clone() for state in next_states], [result.clone() for result in results]

    own = torch.contiguous_format
    starts = [state.clone(memory_format=own) for state in states]
    carried, results = scan(combine, starts, [value.clone(memory_format=own) for value in inputs])
    return list(carried), list(results)


def while_steps(
    continues: Callable[[Tensors], Tensor], step: Callable[[Tensors], Tensors], states: Tensors
) -> list[Tensor]:
    """Runs `states = step(states)` while `continues(states)`, a bool tensor without axes. Returns the last states."""
    from torch._higher_order_ops.while_loop import while_loop  # no public name yet

    def condition(*carried: Tensor) -> Tensor:
        return continues(carried)

    def body(*carried: Tensor) -> tuple[Tensor, ...]:
        # As above.
        return tuple(state.clone() for state in step(carried))

    starts = tuple(state.clone() for state in states)
    return list(while_loop(condition, body, starts))  # type: ignore[no-untyped-call]  # torch's own
