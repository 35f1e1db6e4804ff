"""Muon moves the matrices inside a model, and AdamW its other weights."""

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from archlang.compile import build, compile_graph
from archlang.train.muon import MuonWithAdamW, hidden_matrices
from archlang.train.record.mistakes import RunError

OPTIONS = {"lr": 0.1, "weight_decay": 0.5, "momentum": 0.8, "ns_steps": 5, "betas": (0.9, 0.95), "eps": 1e-8}


def orthogonalized(matrix: Tensor) -> Tensor:
    """The quintic Newton-Schulz iteration of Jordan et al., on the wide side of the matrix, in bfloat16."""
    x = (matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T).bfloat16()
    x = x / torch.linalg.vector_norm(x)
    for _ in range(5):
        a = x @ x.T
        x = 3.4445 * x + (-4.7750 * a + 2.0315 * a @ a) @ x
    result: Tensor = x if matrix.shape[0] <= matrix.shape[1] else x.T
    return result.float()


@pytest.mark.parametrize("shape", [(3, 5), (5, 3)])
def test_a_matrix_moves_as_the_papers_say(shape: tuple[int, int]) -> None:
    generator = torch.Generator().manual_seed(0)
    weight = nn.Parameter(torch.ones(shape))
    optimizer = MuonWithAdamW([weight], [], **OPTIONS)  # type: ignore[arg-type]  # options of several types
    expected, momentum = torch.ones(shape), torch.zeros(shape)
    for _ in range(4):
        weight.grad = torch.randn(shape, generator=generator)
        momentum = 0.8 * momentum + 0.2 * weight.grad
        update = orthogonalized(0.2 * weight.grad + 0.8 * momentum)
        expected = expected - 0.1 * (0.5 * expected + 0.2 * 5**0.5 * update)
        optimizer.step()
    torch.testing.assert_close(weight.detach(), expected, rtol=0.02, atol=0.01)


def test_other_weights_move_as_by_adamw() -> None:
    ours, theirs = nn.Parameter(torch.ones(4)), nn.Parameter(torch.ones(4))
    optimizers = [
        MuonWithAdamW([], [ours], **OPTIONS),  # type: ignore[arg-type]
        torch.optim.AdamW([theirs], lr=0.1, weight_decay=0.5, betas=(0.9, 0.95)),
    ]
    for _ in range(3):
        for weight, optimizer in zip((ours, theirs), optimizers, strict=True):
            weight.grad = torch.arange(4.0)
            optimizer.step()
    assert torch.equal(ours, theirs)


def test_embeddings_and_the_layer_of_the_result_are_not_hidden_matrices(tmp_path: Path) -> None:
    program = tmp_path / "m.arch"
    program.write_text(
        "model m(x: tokens[n]) -> logits[classes] { "
        "return embed[8](x) |> attention[2] |> feedforward[16] |> mean |> linear[classes] }\n"
    )
    module = build(compile_graph(program, "m", {"vocab": 5, "classes": 2}))
    hidden = set(map(id, hidden_matrices(module)))
    names = {name for name, weight in module.named_parameters() if id(weight) in hidden}
    matrices = {name for name, weight in module.named_parameters() if weight.ndim == 2}
    assert matrices - names == {"embed.weight", "linear.weight"}
    assert {name.partition(".")[0] for name in names} == {"attention", "feedforward"}


def test_a_torch_without_muon_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(torch.optim, "Muon")
    with pytest.raises(RunError, match="has no Muon"):
        MuonWithAdamW([nn.Parameter(torch.ones(2, 2))], [], **OPTIONS)  # type: ignore[arg-type]
