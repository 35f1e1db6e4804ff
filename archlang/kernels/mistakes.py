"""The mistakes that kernels report."""

from archlang.diagnostics import ErrorWithRemedy


class DerivativeError(ErrorWithRemedy):
    """A derivative that a fast form does not have, nor its plain form."""


def dropout_drawn_again() -> DerivativeError:
    return DerivativeError(
        "a second derivative of attention needs the numbers that its dropout drew, and the fused kernel does not keep "
        "them",
        "Put the call of the model into `with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):`, or "
        "set the dropout of the attention to 0.",
    )
