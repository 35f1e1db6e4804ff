"""Claims about scans with a backward pass of their own: only the time and the memory change."""

import copy
import random
from functools import partial
from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.autograd.graph import saved_tensors_hooks

from archlang.backend import Architecture
from archlang.backend.lower.text import print_torch
from archlang.backend.runtime import scan_gradients
from archlang.backend.runtime.recording import recording
from archlang.blocks.activations import Tanh
from archlang.blocks.feedforward import Linear
from tests.backend.lower.scan_forms import require_equal, with_and_without
from tests.closeness import close
from tests.conftest import Compiled

HEAD = """
model m[d = 8](x: tokens[n]) -> logits[n, classes] {
    let gates = linear[4 * d] let gate = linear[d] let key = linear[d, bias = false] let wide = linear[2 * d]
    let lifted = linear[d] let joined = linear[d, bias = false] let three = linear[d]
    h = norm(embed[d](x))
    s = mean(learned[1, d, init = normal]())
    u = mean(learned[1, d, init = normal]())
    w = tanh(mean(h))
    memory = learned[4, d, init = normal]()
"""
LSTM = """
    g = gates(concat(v, s))
    u <- sigmoid(slice_features[d, d](g)) * u + sigmoid(slice_features[0, d](g)) * tanh(slice_features[2 * d, d](g))
    s <- sigmoid(slice_features[3 * d, d](g)) * tanh(u)
    emit s
"""
STABLE = """
    g = gates(concat(s, v))
    m = slice_features[d, d](g) + w
    top = m + relu(slice_features[0, d](g) - m)
    u <- exp(m - top) * u + exp(slice_features[0, d](g) - top) * tanh(slice_features[2 * d, d](g))
    s <- sigmoid(slice_features[3 * d, d](g)) * u / (1 + exp(m - top) + abs(u))
    emit s - v
"""
# The states of a scan, and its body.
KNOWN = {
    "LSTM": ("u, s", LSTM),
    "GRU": (
        "s",
        "g = sigmoid(wide(concat(v, s))) c = tanh(gate(concat(v, slice_features[0, d](g) * s))) "
        "s <- c + slice_features[d, d](g) * (s - c) emit s",
    ),
    "a minimal gated unit": (
        "s", "f = sigmoid(gate(v) + key(s)) s <- (1 - f) * s + f * tanh(lifted(v) + joined(f * s)) emit s"
    ),
    "a stable exponential gate": ("u, s", STABLE),
    "maps of states alone": ("s, u", "s <- tanh(lifted(s) + v) u <- tanh(joined(u) - s) emit s * u"),
    "a map of two states": ("s, u", "s <- tanh(three(concat(s, v, u))) u <- 0.5 * u + tanh(s) emit key(s) + u"),
    "a map with two parts of no state": ("s", "s <- tanh(three(concat(v, w, s))) emit s"),
    "a concatenation that is read twice": (
        "s", "b = concat(v, s) s <- tanh(gate(b)) + 0.1 * slice_features[4, d](b * b) emit slice_features[d, d](b)"
    ),
    "parts that overlap": (
        "s", "g = wide(s) s <- tanh(slice_features[2, d](g) + slice_features[5, d](g) - v) emit s"
    ),
    "features that nothing takes": (
        "s", "g = gates(concat(v, s)) s <- tanh(slice_features[d, d](g) * slice_features[3 * d, d](g)) emit s"
    ),
    "elementwise blocks without a derivative of the result": (
        "s", "s <- silu(lifted(s)) + sin(v * s) - gelu(w - s) + softplus(s) / 8 + floor(s) / 9 emit cos(s)"
    ),
    "values from outside, and of the position alone": (
        "s", "s <- tanh(w * s + norm(v) * lifted(s)) emit w * s + softmax(v)"
    ),
    "products with itself and with numbers": ("s", "s <- -(s * s) / 4 + 0.5 * v - s / (2 + s * s) emit 3 - s"),
    "a state that forgets the others": ("s, u", "u <- v s <- tanh(lifted(s) + u) emit s"),
    "a state that nothing reads": ("s, u", "u <- tanh(u + s) s <- tanh(lifted(s) + v) emit s"),
    "no emission": ("s, u", "s <- tanh(lifted(s) + v) u <- tanh(u * s)"),
}  # fmt: skip
UNKNOWN = {
    "a norm of a state": ("s", "s <- tanh(norm(s) + v) emit s", "`norm(s)` depends on a state"),
    "a state that is a matrix": ("memory", "memory <- tanh(memory + v) emit mean(memory)", "is no vector"),
    "dropout": ("s", "s <- tanh(dropout[0.1](s) + v) emit s", "`dropout[0.1](s)` depends on a state"),
    "a narrow factor": ("s", "s <- tanh(slice_features[0, 1](s) * v) emit s", "depends on a state"),
}
LENGTHS = (1, 2, 9, 23)


def program(states: str, body: str) -> str:
    first = states.split(",")[0]
    result = "y = " if "emit" in body else ""
    y = "y" if result else f"h + {first}"
    return f"{HEAD}    {result}scan v in h carry {states} {{ {body} }}\n    return linear[classes]({y})\n}}\n"


def modules(tmp_path: Path, text: str) -> tuple[Architecture, Architecture]:
    return with_and_without(tmp_path, text, "scan_gradients", ("parallel_scans",))


@pytest.mark.parametrize("name", KNOWN)
def test_a_scan_with_its_own_backward_pass_equals_the_plain_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(scan_gradients, "_MOST_POSITIONS", 30)
    ours, plain = modules(tmp_path, program(*KNOWN[name]))
    (loop,) = ours.program.code.loops
    assert loop.gradient is not None, loop.gradient_obstacle
    assert "def scan_adjoint(" in print_torch(ours)
    assert "def scan_adjoint(" not in print_torch(plain)
    require_equal(ours, plain, LENGTHS)
    with torch.no_grad():
        tokens = torch.randint(11, (2, 23))
        close(ours(tokens), plain(tokens))


@pytest.mark.parametrize("name", UNKNOWN)
def test_a_scan_without_one_says_why(tmp_path: Path, name: str) -> None:
    states, body, reason = UNKNOWN[name]
    ours, plain = modules(tmp_path, program(states, body))
    (loop,) = ours.program.code.loops
    assert loop.gradient is None
    assert reason in loop.gradient_obstacle
    assert loop.gradient_obstacle in print_torch(ours)
    require_equal(ours.eval(), plain.eval(), (9,))


def test_second_derivatives_are_those_of_the_plain_form(tmp_path: Path) -> None:
    both = modules(tmp_path, program(*KNOWN["a stable exponential gate"]))
    tokens = torch.randint(11, (2, 8))
    seconds = []
    for module in both:
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        loss = module(tokens).square().mean()
        firsts = torch.autograd.grad(loss, weights, create_graph=True, allow_unused=True)
        total = torch.stack([first.square().sum() for first in firsts if first is not None]).sum()
        seconds.append(torch.autograd.grad(total, weights, allow_unused=True, materialize_grads=True))
    for ours, plain in zip(*seconds, strict=True):
        close(ours, plain)


def test_a_second_derivative_is_that_of_the_numbers_that_dropout_drew(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program("s", "s <- tanh(lifted(s) + dropout[0.5](v)) * gate(v) emit s"))
    tokens = torch.randint(11, (2, 8))
    firsts = []
    for module in (ours, plain):
        torch.manual_seed(1)
        y = module(tokens)
        weights = [weight for weight in module.parameters() if weight.requires_grad]
        of_graph, of_form = (
            torch.autograd.grad(y.square().sum(), weights, create_graph=again, retain_graph=True, allow_unused=True)
            for again in (True, False)
        )
        firsts.append([first for first in of_graph if first is not None])
        for first, expected in zip(firsts[-1], [each for each in of_form if each is not None], strict=True):
            close(first, expected)
    for first, expected in zip(*firsts, strict=True):
        close(first, expected)


def test_gradients_of_several_results_at_once_are_those_of_each(tmp_path: Path) -> None:
    ours, _ = modules(tmp_path, program(*KNOWN["a stable exponential gate"]))
    y, weight = ours(torch.randint(11, (2, 8))), ours.get_parameter("gates.weight")
    vectors = torch.randn(3, *y.shape, dtype=y.dtype)
    (batched,) = torch.autograd.grad(y, weight, vectors, is_grads_batched=True, retain_graph=True)
    for own, vector in zip(batched, vectors, strict=True):
        close(own, *torch.autograd.grad(y, weight, vector, retain_graph=True))


class Bent(Tanh):
    def forward(self, x: Tensor, **kwargs: object) -> Tensor:
        return x + x.sin().square()


class Doubled(Linear):
    def forward(self, x: Tensor) -> Tensor:
        return 2 * super().forward(x)


OWN = f"""
extern block bent(x: data[d]) -> data[d] python "{__name__}:Bent"
extern block doubled[out: int, bias: bool = true, init: symbol = torch, std: float = 1.0](x: data[d]) -> data[out]
    python "{__name__}:Doubled"
model m[d = 8](x: tokens[n]) -> logits[n, classes] {{
    let twice = doubled[d]
    let bend = bent
    s = mean(constant[1, d]())
    y = scan v in embed[d](x) carry s {{ s <- bend(0.2 * twice(s) + v) emit s }}
    return linear[classes](y)
}}
"""


def test_what_the_library_says_of_a_class_is_not_believed_of_one_with_another_forward(compiled: Compiled) -> None:
    module, tokens, forms = compiled(OWN, plugins=True).double(), torch.randint(11, (2, 9)), []
    for _ in range(2):
        y = module(tokens)
        forms.append((y, *torch.autograd.grad(y.square().sum(), [*module.parameters()])))
        module.get_submodule("bend").register_forward_hook(lambda *_: None)  # this takes the plain form
        module.get_submodule("twice").register_forward_hook(lambda *_: None)
    for ours, plain in zip(*forms, strict=True):
        close(ours, plain)


def test_a_forward_of_one_module_is_called(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*KNOWN["LSTM"]))
    for module in (ours, plain):
        part = module.get_submodule("gates")
        part.forward = partial(lambda own, x: 2 * own(x), part.forward)  # as accelerate does
    require_equal(ours, plain, (9,))


def test_a_gradient_inside_of_a_model_is_that_of_the_plain_form(tmp_path: Path) -> None:
    text = program(*KNOWN["LSTM"]).replace(
        "return linear[classes](y)", "return linear[classes](gradient(sum_features(y * y), h))"
    )
    ours, plain = modules(tmp_path, text)
    assert "def scan_adjoint(" in print_torch(ours)
    require_equal(ours, plain, (9,))


def second_derivatives(module: Architecture) -> tuple[Tensor, ...]:
    """Returns those by weights that the module has during the call alone."""
    torch.manual_seed(2)
    tokens = torch.randint(11, (2, 8))
    own = {key: (weight.detach() * 1.5).requires_grad_() for key, weight in module.named_parameters()}
    loss = torch.func.functional_call(module, own, tokens).square().mean()
    firsts = torch.autograd.grad(loss, [*own.values()], create_graph=True, allow_unused=True)
    total = torch.stack([first.square().sum() for first in firsts if first is not None]).sum()
    return torch.autograd.grad(total, [*own.values()], allow_unused=True, materialize_grads=True)


def test_weights_of_one_call_have_second_derivatives_or_an_error(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*KNOWN["LSTM"]))
    for first, second in zip(second_derivatives(ours), second_derivatives(plain), strict=True):
        close(first, second)
    ours, _ = modules(tmp_path, program(*KNOWN["values from outside, and of the position alone"]))
    with pytest.raises(RuntimeError, match="a second derivative of a scan"):
        second_derivatives(ours)


@pytest.mark.parametrize("path", ["gates", "tanh_2"])
def test_a_hook_sees_each_position(tmp_path: Path, path: str) -> None:
    ours, plain = modules(tmp_path, program(*KNOWN["LSTM"]))
    seen: list[Tensor] = []
    ours.get_submodule(path).register_forward_hook(lambda module, arguments, result: seen.append(result))
    require_equal(ours, plain, (9,))
    assert len(seen) == 27


def test_a_recording_sees_each_position(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*KNOWN["LSTM"]))
    counts = []
    for module in (ours, plain):
        with recording(module) as record:
            module(torch.randint(11, (2, 8)))
        counts.append(len(record.moments))
    assert counts[0] == counts[1]
    require_equal(ours, plain, (9,))


def test_copies_transforms_and_half_precision_have_the_same_results(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*KNOWN["LSTM"]))
    tokens = torch.randint(11, (2, 9))
    expected = plain(tokens)
    close(copy.deepcopy(ours)(tokens), expected)
    weights: dict[str, Tensor] = dict(ours.named_parameters())
    close(torch.func.functional_call(ours, weights, tokens), expected)
    stacked = {name: weight[None] for name, weight in weights.items()}
    (mapped,) = torch.vmap(lambda own: torch.func.functional_call(ours, own, tokens))(stacked)
    close(mapped, expected)
    halves = [module.bfloat16()(tokens).float() for module in (ours, plain)]
    assert (halves[0] - halves[1]).abs().max() < 0.05 * expected.abs().max()


def test_autocast_computes_a_scan_step_by_step(tmp_path: Path) -> None:
    tokens = torch.randint(11, (2, 9))
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(*(module.float()(tokens) for module in modules(tmp_path, program(*KNOWN["GRU"]))))


def test_frozen_weights_have_no_gradient(tmp_path: Path) -> None:
    ours, plain = modules(tmp_path, program(*KNOWN["LSTM"]))
    for module in (ours, plain):
        module.get_parameter("gates.weight").requires_grad_(False)
    require_equal(ours, plain, (9,))
    assert ours.get_parameter("gates.weight").grad is None


def test_it_keeps_no_more_until_backward(tmp_path: Path) -> None:
    for name in ("GRU", "a stable exponential gate"):
        sizes = []
        for module in modules(tmp_path, program(*KNOWN[name])):
            transposed = sum(weight.nbytes for weight in module.parameters())
            kept: dict[int, Tensor] = {}
            weights = {weight.untyped_storage().data_ptr() for weight in module.parameters()}

            def keep(tensor: Tensor, kept: dict[int, Tensor] = kept) -> Tensor:
                kept[tensor.untyped_storage().data_ptr()] = tensor
                return tensor

            with saved_tensors_hooks(keep, lambda tensor: tensor):
                y = module(torch.randint(11, (8, 100)))
            storages = (tensor.untyped_storage().nbytes() for key, tensor in kept.items() if key not in weights)
            sizes.append(sum(storages))
            y.sum().backward()
        assert sizes[0] <= sizes[1] + transposed, name


# Random scans


def random_vector(chance: random.Random, depth: int) -> str:
    """Returns a vector of 8 features."""
    if depth == 0 or chance.random() < 0.15:
        return chance.choice(["v", "s", "u", "s", "u", "w", "gate(v)", "0.3", "slice_features[2, d](concat(s, v))"])
    left, right = (random_vector(chance, depth - 1) for _ in range(2))
    if left == right == "0.3":
        left = "s"
    whole = "s" if left == "0.3" else left
    other = "v" if right == "0.3" else right
    return chance.choice([
        f"({left} + {right})", f"({left} - {right})", f"({left} * {right})", f"-({whole})", f"tanh({whole})",
        f"sigmoid({whole})", f"lifted({whole})", f"three(concat({whole}, {other}, v))", f"joined(concat(v, {whole}))",
        f"{left} / (1 + abs({whole}))", f"relu({whole})", f"slice_features[d, d](wide({whole}))",
    ])  # fmt: skip


@pytest.mark.parametrize("seed", range(30))
def test_random_scans_equal_the_plain_ones(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    parts = [f"{state} <- tanh(0.5 * ({random_vector(chance, 3)} + {state}))" for state in ("s", "u")]
    ours, plain = modules(tmp_path, program("s, u", f"{' '.join(parts)} emit {random_vector(chance, 2)} + s * u"))
    (loop,) = ours.program.code.loops
    assert loop.gradient is not None, loop.gradient_obstacle
    require_equal(ours, plain, (9,))
