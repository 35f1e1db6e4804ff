"""Linear recurrences with a matrix as state, in chunks whose positions are computed at once.

    S_i = diag(exp g_i) S_{i-1} + b_i (S_{i-1}ᵀ a_i)ᵀ + k_i v_iᵀ,    o_i = S_iᵀ q_i

Inside a chunk that begins with the state S, let γ_i = g_1 + … + g_i, and `later` mean j < i (`own` j ≤ i):

    u_i = S_{i-1}ᵀ a_i = (a_i exp γ_{i-1})ᵀ S + Σ_{j < i} (a_i · exp(γ_{i-1} - γ_j) b_j) u_j + (…k_j) v_j
    o_i = (q_i exp γ_i)ᵀ S + Σ_{j ≤ i} (q_i · exp(γ_i - γ_j) b_j) u_j + (q_i · exp(γ_i - γ_j) k_j) v_j

The first line is a triangular system, solved for U = W S + Y. The state after the chunk is then P S + X, and only these
products run from chunk to chunk; everything else is computed for all chunks together. exp γ alone could underflow and
its inverse overflow, so the sums of g between two positions are summed directly unless they are small.

Plain operations of torch: autograd gives derivatives of any order. Yang et al., "Parallelizing linear transformers with
the delta rule over sequence length", 2024; Yang et al., "Gated linear attention transformers", 2024, section 4."""

from collections.abc import Sequence
from functools import cached_property

import torch
import torch.nn.functional as F
from jaxtyping import Bool, Float
from torch import Tensor
from torch._compile import _disable_dynamo

from archlang.backend.kernels.flash_recurrence import flash_recurrence, is_asked_for
from archlang.backend.runtime.graph_loops import is_exporting, scan_steps
from archlang.backend.runtime.stacking import holds, in_one_batch, needs_plain_form

CHUNK = 64
"""positions of a chunk"""
SMALL_CHUNK = 16
"""positions of a chunk whose decays differ between features and are strong: it stores a number for each two positions
and feature"""
LARGEST_EXPONENT = 20.0
"""exp of it and of its negative are far from the limits of float32, and rounding changes them by less than 1e-6"""


Terms = tuple[Tensor, Tensor, Tensor, Tensor | None, Tensor | None, Tensor | None]
"""q, k, v, g, a and b"""


def linear_recurrence(
    q: Float[Tensor, "b h n k"],
    k: Float[Tensor, "b h n k"],
    v: Float[Tensor, "b h n v"],
    log_decay: Float[Tensor, "b h n _g"] | None = None,
    a: Float[Tensor, "b h n k"] | None = None,
    b: Float[Tensor, "b h n _k"] | None = None,
    *,
    state: Float[Tensor, "b h k v"] | None = None,
    mask: Bool[Tensor, "b n"] | None = None,
) -> tuple[Float[Tensor, "b h n v"], Float[Tensor, "b h k v"]]:
    """Returns o and the state after the last position.

    Args:
        log_decay: g ≤ 0, for each feature of the keys or one for all of them, by default 0
        a, b: both or none; a `b` with one feature is a multiple of k
        state: the state before the first position, by default 0
        mask: true at real positions; padding leaves the state as it is, and its results are 0

    Results have the dtype of v; half precision is computed in float32."""
    if is_asked_for(v):
        return flash_recurrence((q, k, v, log_decay, a, b), state, mask)
    compute = _untraced if torch.compiler.is_compiling() and not is_exporting() else _of_samples
    return compute((q, k, v, log_decay, a, b), state, mask)


def _of_samples(terms: Terms, state: Tensor | None, mask: Tensor | None) -> tuple[Tensor, Tensor]:
    _, k, v, *_ = terms
    dtype = v.dtype
    if state is None:
        state = v.new_zeros(*v.shape[:2], k.shape[-1], v.shape[-1])

    def of_batch(state: Tensor, *values: Tensor) -> tuple[Tensor, Tensor]:
        wide = torch.float64 if dtype == torch.float64 else torch.float32
        remaining = iter(values)
        terms: list[Tensor | None] = []
        for is_present in present:
            terms.append(next(remaining).to(wide) if is_present else None)
        for real in remaining:  # the mask, if there is one
            padding = ~real[:, None, :, None]
            terms = [None if term is None else term.masked_fill(padding, 0.0) for term in terms]
        q, k, v, g, a, b = terms
        assert q is not None
        assert k is not None
        assert v is not None
        if is_exporting():
            return _position_by_position((q, k, v, g, a, b), state.to(wide))
        with torch.autocast(v.device.type, enabled=False):
            results: tuple[Tensor, Tensor] = _in_chunks((q, k, v, g, a, b), state.to(wide))
        return results

    present = [term is not None for term in terms]
    values = [value for value in (*terms, mask) if value is not None]
    o, last = in_one_batch(of_batch, state, *values)
    return o.to(dtype), last.to(dtype)


# torch.compile would retrace the steps for every number of chunks. `torch.compiler.disable` would import the compiler
# here, which takes more than a second; this imports it where it is called.
_untraced = _disable_dynamo(_of_samples)


def _position_by_position(terms: Terms, state: Tensor) -> tuple[Tensor, Tensor]:
    """Follows the equations, for an exported model, whose lengths are unknown."""
    q, k, v, g, a, b = terms
    inputs = [q, k, v, torch.zeros_like(k[..., :1]) if g is None else g]
    if a is not None and b is not None:
        inputs += [a, b if b.shape[-1] > 1 else b * k]

    def step(states: Sequence[Tensor], inputs: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        (before,), (q, k, v, g, *erased) = states, inputs
        after = before * g.exp()[..., None] + k[..., None] * v[..., None, :]
        if erased:
            a, b = erased
            after = after + b[..., None] * (a[..., None, :] @ before)
        return [after], [(q[..., None, :] @ after)[..., 0, :]]

    (last,), (o,) = scan_steps(step, [state], [value.movedim(2, 0) for value in inputs])
    return o.movedim(0, 2), last


def _in_chunks(terms: Terms, state: Tensor) -> tuple[Tensor, Tensor]:
    q, k, v, g, a, b = terms
    n = q.shape[2]
    if n == 0:
        return torch.zeros_like(v), state
    size, decay_class = _chunk_size_and_decay(n, g)
    q, k, v = (_cut(value, size) for value in (q, k, v))
    decay = decay_class(torch.zeros_like(k[..., :1]) if g is None else _cut(g, size))
    within = decay.products(q, k)
    from_start = decay.from_start(q)
    o = within @ v
    to_end = decay.to_end(k)
    transition = decay.across().expand(*k.shape[:3], k.shape[-1])
    update = to_end.transpose(-1, -2) @ v
    if a is None or b is None:
        states, last = _states(transition, update, state)
        return (o + from_start @ states).flatten(2, 3)[:, :, :n], last
    a, b = _cut(a, size), _cut(b, size)
    scores = decay.products_before(a, k)
    if b.shape[-1] == 1:
        scale = b.transpose(-1, -2)
        erased, erased_within, erased_to_end = scores * scale, within * scale, to_end * b
    else:
        erased, erased_within = decay.products_before(a, b), decay.products(q, b)
        erased_to_end = decay.to_end(b)
    sides = torch.cat((decay.from_start_before(a), scores @ v), -1)
    # The solver reads the diagonal as 1.
    solved = torch.linalg.solve_triangular(-erased, sides, upper=False, unitriangular=True)
    w, y = solved.split((k.shape[-1], v.shape[-1]), -1)
    erased_to_end = erased_to_end.transpose(-1, -2)
    states, last = _states(torch.diag_embed(transition) + erased_to_end @ w, update + erased_to_end @ y, state)
    o = o + erased_within @ (w @ states + y) + from_start @ states
    return o.flatten(2, 3)[:, :, :n], last


def _states(transition: Tensor, update: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
    """Returns the states before each chunk [b h c k v] and the last one: S ← P S + X, where P is [b h c k] for a
    diagonal, or [b h c k k]."""
    states = []
    is_diagonal = transition.dim() == update.dim() - 1
    for p, x in zip(transition.unbind(2), update.unbind(2), strict=True):
        states.append(state)
        state = (p[..., None] * state if is_diagonal else p @ state) + x
    return torch.stack(states, 2), state


def _cut(x: Tensor, size: int) -> Tensor:
    """Cuts the positions into chunks, [b h c size _]; zeros fill the last one."""
    padded = F.pad(x, (0, 0, 0, -x.shape[2] % size))
    return padded.reshape(*x.shape[:2], padded.shape[2] // size, size, x.shape[-1])


class _NoDecay:
    """g = 0"""

    def __init__(self, like: Float[Tensor, "b h c size _g"]) -> None:
        self.ones = torch.ones_like(like[..., -1, :])

    def products(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns Σ_f x_if y_jf exp(γ_if - γ_jf) for j ≤ i, and 0 for j > i."""
        return (x @ y.transpose(-1, -2)).tril()

    def products_before(self, x: Tensor, y: Tensor) -> Tensor:
        """Returns Σ_f x_if y_jf exp(γ_{i-1, f} - γ_jf) for j < i, and 0 for j ≥ i."""
        return (x @ y.transpose(-1, -2)).tril(-1)

    def from_start(self, x: Tensor) -> Tensor:
        """Returns x_i exp(γ_i)."""
        return x

    def from_start_before(self, x: Tensor) -> Tensor:
        """Returns x_i exp(γ_{i-1})."""
        return x

    def to_end(self, y: Tensor) -> Tensor:
        """Returns y_j exp(γ_last - γ_j)."""
        return y

    def across(self) -> Tensor:
        """Returns exp(γ_last)."""
        return self.ones


class _Decay(_NoDecay):
    """The decays of the positions of chunks, with one number for each feature: γ_i = g_1 + … + g_i."""

    def __init__(self, g: Float[Tensor, "b h c size _g"]) -> None:
        self.g = g
        self.inclusive = g.cumsum(-2)

    def products(self, x: Tensor, y: Tensor) -> Tensor:
        return torch.einsum("...if,...jf,...ijf->...ij", x, y, self.weights)

    def products_before(self, x: Tensor, y: Tensor) -> Tensor:
        next_x = F.pad(x[..., 1:, :], (0, 0, 0, 1))
        return F.pad(self.products(next_x, y)[..., :-1, :], (0, 0, 1, 0))

    def from_start(self, x: Tensor) -> Tensor:
        return x * self.inclusive.exp()

    def from_start_before(self, x: Tensor) -> Tensor:
        return x * F.pad(self.g[..., :-1, :], (0, 0, 1, 0)).cumsum(-2).exp()

    def to_end(self, y: Tensor) -> Tensor:
        return y * F.pad(self.g[..., 1:, :], (0, 0, 0, 1)).flip(-2).cumsum(-2).flip(-2).exp()

    def across(self) -> Tensor:
        return self.inclusive[..., -1, :].exp()

    @cached_property
    def weights(self) -> Float[Tensor, "b h c size size _g"]:
        """exp(γ_i - γ_j) for j ≤ i, and 0 for j > i."""
        size = self.g.shape[-2]
        ones = torch.ones(size, size, dtype=torch.bool, device=self.g.device)
        steps = self.g[..., :, None, :].masked_fill(~ones.tril(-1)[..., None], 0.0)
        return steps.cumsum(-3).masked_fill(ones.triu(1)[..., None], -torch.inf).exp()


class _EqualDecay(_Decay):
    """As `_Decay`, with one number for all features."""

    def products(self, x: Tensor, y: Tensor) -> Tensor:
        return x @ y.transpose(-1, -2) * self.weights[..., 0]


class _WeakDecay(_Decay):
    """As `_Decay`, where |g| sums to at most 2 `LARGEST_EXPONENT`: exp(γ_i - γ_j) is a product of finite factors."""

    def products(self, x: Tensor, y: Tensor) -> Tensor:
        above_middle = self.inclusive - self.inclusive[..., -1:, :] / 2
        return ((x * above_middle.exp()) @ (y * (-above_middle).exp()).transpose(-1, -2)).tril()


def _chunk_size_and_decay(n: int, g: Float[Tensor, "b h n _g"] | None) -> tuple[int, type[_NoDecay]]:
    if g is None or g.shape[-1] == 1:
        return min(CHUNK, n), _NoDecay if g is None else _EqualDecay
    # Under transforms, Python cannot read the values.
    if not needs_plain_form():
        for size in (min(CHUNK, n), min(CHUNK // 2, n)):
            if holds(_cut(g.detach(), size).abs().sum(-2) <= 2 * LARGEST_EXPONENT):
                return size, _WeakDecay
    return min(SMALL_CHUNK, n), _Decay
