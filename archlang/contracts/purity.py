"""`pure`: checks that a block has no weights and computes the same in training and in evaluation."""

from torch import nn

from archlang.contracts import mistakes
from archlang.contracts.independence import changed
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken, Skipped


def pure(subject: Subject) -> None:
    """Checks that the state dict and the weights of the block are empty, and compares training with evaluation.

    Raises:
        Broken: the block has state or weights, or its result differs in training.
        Skipped: the signature does not say `pure`."""
    case = subject.case
    if not case.instance.pure:
        raise Skipped("is not declared pure")
    block: nn.Module = subject.block
    saved = next(iter(block.state_dict()), None)
    if saved is not None:
        raise Broken(mistakes.impure(case, f"saves `{saved}`", subject.facts()))
    weight = next((name for name, _ in block.named_parameters()), None)
    if weight is not None:
        raise Broken(mistakes.impure(case, f"has the weight `{weight}`", subject.facts()))
    sample = subject.sample(subject.sizes()[-1])
    facts = subject.facts([sample], sample.sizes)
    evaluated = subject.evaluate(sample)
    try:
        subject.root.train()
        change = changed(evaluated, subject.evaluate(sample))
    finally:
        subject.root.eval()
    if change:
        raise Broken(mistakes.impure(case, f"{change} in training", facts))
