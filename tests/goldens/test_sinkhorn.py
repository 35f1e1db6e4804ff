"""Sparse Sinkhorn attention, as published and with the sorted values that the paper describes."""

import pytest
from torch import Tensor

from tests.goldens.golden import Golden, Program, close, output_close

USE = "use archlang.models.sinkhorn\n"


@pytest.mark.goldens("modern", "sinkhorn_attention")
def test_sinkhorn_attention(golden: Golden) -> None:
    heads, buckets = golden["in.q"].shape[1], golden.number("cfg.buckets")
    temperature, rounds = float(golden["cfg.temperature"]), golden.number("cfg.iterations")
    inputs = {name: golden[f"in.{name}"].transpose(1, 2).flatten(2) for name in "qkv"}

    def map_of(name: str) -> Tensor:
        value = golden[name]
        return value.reshape(-1, heads, *value.shape[1:]).movedim(1, 3)

    width = inputs["q"].shape[2]
    fields = ", ".join(f"{name}: seq[n, {width}]" for name in inputs)
    statics = (
        f"heads = {heads}, buckets = {buckets}, size = {golden.number('cfg.bucket_size')}, "
        f"temperature = {temperature}, rounds = {rounds}"
    )

    def program(extra: str) -> Program:
        call = f"sinkhorn_with_noise[{statics}{extra}](q, k, v, noise)"
        noise = f"noise: map[{buckets}, {buckets}, {heads}]"
        return Program(f"{USE}model m({fields}, {noise}) -> seq[n, {width}] {{ return {call} }}\n", golden, {})

    def heads_of(value: Tensor) -> Tensor:
        return value.reshape(*value.shape[:2], heads, -1).transpose(1, 2)

    published, intended = program(""), program(", published = false")
    result = heads_of(published(*inputs.values(), map_of("in.gumbel")))
    output_close(golden, result)
    result = heads_of(intended(*inputs.values(), map_of("in.gumbel")))
    close(golden, result, "out.o_intended")

    means = {name: inputs[name].reshape(-1, buckets, golden.number("cfg.bucket_size"), width).mean(2) for name in "qk"}
    sorting = (
        f"{USE}model r(q: seq[{buckets}, {width}], k: seq[{buckets}, {width}], "
        f"noise: map[{buckets}, {buckets}, {heads}]) -> map[{buckets}, {buckets}, {heads}] "
        f"{{ return sorting[{heads}, {temperature}, {rounds}](q, k, noise) }}\n"
    )
    matrix = Program(sorting, golden, {})(*means.values(), map_of("in.gumbel"))
    close(golden, matrix.movedim(3, 1).flatten(0, 1), "out.R")
