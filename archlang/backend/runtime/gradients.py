"""The gradient of a loss with respect to a value, at run time."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._pytree import tree_map

from archlang.backend.runtime.loops import Loop
from archlang.backend.runtime.stacking import is_transformed


@dataclass(eq=False, kw_only=True)
class GradientLoop(Loop):
    """Returns the gradient of the loss that the body returns, with respect to the first value."""

    def __call__(
        self,
        value: Float[Tensor, "b *n d"],
        *captured: Any,  # Any: as in `Body`
        mask: Bool[Tensor, "b n"] | None = None,
    ) -> Float[Tensor, "b *n d"]:
        return differentiated(self.body, self.owner, value, captured, mask)


def differentiated(
    body: Callable[..., Any],  # Any: a tuple of the loss, which is a number of each sample or position
    owner: nn.Module,
    value: Tensor,
    captured: Sequence[Any],
    mask: Tensor | None,
) -> Tensor:
    """Returns the gradient of the loss of a body with respect to a value, zeros if the body stops it. Where gradients
    are enabled, it can be differentiated again."""

    def total(of: Tensor) -> Tensor:
        losses: Tensor = body(owner, of, *captured)[0]
        # A loss at padding may read real positions.
        return losses.sum() if mask is None else torch.where(mask.unsqueeze(-1), losses, 0).sum()

    if torch.is_inference_mode_enabled():
        # Autograd takes no tensors of this mode.
        with torch.inference_mode(False), torch.no_grad():
            value, captured, mask = tree_map(_copied, (value, captured, mask))
            return differentiated(body, owner, value, captured, mask)
    # Fused attention has no second derivative.
    with sdpa_kernel(SDPBackend.MATH):
        if torch.compiler.is_compiling() or is_transformed():
            transformed: Tensor = torch.func.grad(total)(value)
            return transformed
        again = torch.is_grad_enabled()
        # In a computation that is repeated in backward, each gradient would repeat it, so its own values are kept.
        with torch.enable_grad(), saved_tensors_hooks(lambda own: own, lambda own: own):
            # A view is cut from the history of the value, which the result has all the same.
            own = value.view_as(value) if again and value.requires_grad else value.detach().requires_grad_()
            loss = total(own)
            if not loss.requires_grad:
                return torch.zeros_like(value)
            (gradient,) = torch.autograd.grad(loss, own, create_graph=again, allow_unused=True, materialize_grads=True)
    return gradient if again else gradient.detach()


def _copied(value: Any) -> Any:  # Any: as in `Body`
    return value.clone() if isinstance(value, Tensor) else value
