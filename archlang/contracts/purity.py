"""`pure`: a block has no weights, and training changes nothing."""

from torch import nn

from archlang.contracts import mistakes
from archlang.contracts.independence import changed
from archlang.contracts.subject import Subject
from archlang.contracts.verdict import Broken, Skipped


def pure(subject: Subject) -> None:
    """A pure block saves nothing, and gives the same in training as in evaluation.

    Raises:
        Broken: it does not.
        Skipped: it is not called pure."""
    case = subject.case
    if not case.instance.pure:
        raise Skipped("is not called pure")
    block: nn.Module = subject.block
    saved = next((name for name in block.state_dict()), None)
    if saved is not None:
        raise Broken(mistakes.impure(case, f"saves `{saved}`", subject.facts()))
    weight = next((name for name, _ in block.named_parameters()), None)
    if weight is not None:
        raise Broken(mistakes.impure(case, f"has the weight `{weight}`", subject.facts()))
    sample = subject.sample(subject.sizes()[-1])
    facts = subject.facts([sample], sample.sizes)
    evaluated = subject.one(sample)
    try:
        subject.root.train()
        change = changed(evaluated, subject.one(sample))
    finally:
        subject.root.eval()
    if change:
        raise Broken(mistakes.impure(case, f"{change} in training", facts))
