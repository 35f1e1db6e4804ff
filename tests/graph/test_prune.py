"""Pruning."""

import pytest

from archlang.graph.prune import prune, remove_dead, without_losses
from tests.conftest import Becomes

PRUNED = {
    "unused values and their instances are removed but not those in statics": """
    graph g
    instance @e: embed[d = 4](vocab = 9) axes () "m:E"
  - instance @f: f axes () "m:F"
    instance @tied: tied[of = (@e, 1)] axes () "m:T"
    input %1 x: vec[4]
  - %2: vec[4] = call @f(%1)
  - %3: vec[4] = negate(%2)
    %4: vec[4] = call @tied(%1)
    return %4
    """,
    "a state that only feeds itself is removed with its captured values": """
    graph g
    input %1 x: vec[4]
    input %2 y: vec[4]
    input %3 z: vec[4]
  - %4: vec[4] = negate(%3)
  - %5: vec[4], vec[4], vec[4] = repeat[count = 2](%1, %2, %1, %4, %3) {
  + %5: vec[4], vec[4] = repeat[count = 2](%1, %1, %3) {
        input %6 a: vec[4]
  -     input %7 b: vec[4]
        input %8 c: vec[4]
  -     input %9: vec[4]
        input %10: vec[4]
        %11: vec[4] = add(%6, %8)
  -     %12: vec[4] = add(%7, %9)
        %13: vec[4] = add(%8, %10)
  -     return %11, %12, %13
  +     return %11, %13
    }
  - %14: vec[4] = part[index = 1](%5)
    %15: vec[4] = part[index = 0](%5)
  - %16: vec[4] = negate(%14)
    return %15
    """,
    "a halting loop keeps its halting state but not an unread mixture": """
    graph g
    instance @halt: halt(d = 4) lengths (n) axes (n) "m:H"
    input %1 x: seq[n, 4]
    input %2 y: seq[n, 4]
  - %3: seq[n, 4], seq[n, 4], seq[n, 4] = halting @halt[limit = 3, state = 1, mixture = true](%2, %1, %2) {
  + %3: seq[n, 4], seq[n, 4] = halting @halt[limit = 3, state = 0, mixture = false](%1, %2) {
  -     input %4: seq[n, 4]
        input %5: seq[n, 4]
        input %6: seq[n, 4]
  -     input %7: seq[n, 4]
        %8: seq[n, 4] = negate(%5)
        %9: seq[n, 4] = negate(%6)
  -     return %4, %8, %9
  +     return %8, %9
    }
  - %10 z: seq[n, 4] = part[index = 2](%3)
  + %10 z: seq[n, 4] = part[index = 1](%3)
    return %10
    """,
    "a scan loses unused emissions and unused states": """
    graph g
    instance @chunks: chunks(d = 4) lengths (n) axes (n) "m:C"
    instance @last: last(d = 4) lengths (n) axes (n) "m:L"
    input %1 x: seq[n, 4]
    input %2 y: vec[4]
    %3: chunks[n, 4] = call @chunks(%1)
  - %4: vec[4], vec[4], seq[n, 4] = scan[carried = 2, emits = true](%3, %2, %2) {
  + %4 z: vec[4] = scan[carried = 1, emits = false](%3, %2) {
        input %5 c: seq[c.length, 4]
  -     input %6: vec[4]
        input %7: vec[4]
        %8: vec[4] = call @last(%5)
        %9: vec[4] = add(%7, %8)
  -     return %6, %9, %5
  +     return %9
    }
  - %10 z: vec[4] = part[index = 1](%4)
  - return %10
  + return %4
    """,
    "a loop without used results is removed even if it halts": """
    graph g
  - instance @halt: halt(d = 4) lengths (n) axes (n) "m:H"
    input %1 x: seq[n, 4]
  - %2: seq[n, 4] = halting @halt[limit = 3, state = 0, mixture = false](%1) {
  -     input %3: seq[n, 4]
  -     %4: seq[n, 4] = negate(%3)
  -     return %4
  - }
  - %5: seq[n, 4] = negate(%2)
    return %1
    """,
    "an inner loop loses the values that the outer loop does not need": """
    graph g
    input %1 x: vec[4]
    input %2 y: vec[4]
  - %3: vec[4], vec[4] = repeat[count = 2](%1, %2) {
  + %3: vec[4] = repeat[count = 2](%1) {
        input %4: vec[4]
  -     input %5: vec[4]
  -     %6: vec[4], vec[4] = stack[count = 2, path = "stack"](%4, %5) {
  +     %6: vec[4] = stack[count = 2, path = "stack"](%4) {
            input %7: vec[4]
  -         input %8: vec[4]
            %9: vec[4] = negate(%7)
  -         %10: vec[4] = add(%7, %8)
  -         return %9, %10
  +         return %9
        }
  -     %11: vec[4] = part[index = 0](%6)
  -     %12: vec[4] = part[index = 1](%6)
  -     return %11, %12
  +     return %6
    }
  - %13: vec[4] = part[index = 0](%3)
  - return %13
  + return %3
    """,
    "a loss keeps its value and the loops around it": """
    graph g
    input %1 x: vec[1]
    input %2 y: vec[1]
    %3: vec[1] = negate(%1)
  - %4: vec[1] = repeat[count = 2](%1, %2) {
  + %4: () = repeat[count = 2](%2) {
  -     input %5 s: vec[1]
        input %6: vec[1]
        %7: vec[1] = negate(%6)
        %8: () = loss[name = "size"](%7)
  -     %9: vec[1] = negate(%5)
  -     return %9
  +     return
    }
    return %3
    """,
}


@pytest.mark.parametrize("graph", PRUNED.values(), ids=PRUNED)
def test_what_no_result_needs_is_removed(graph: str, becomes: Becomes) -> None:
    becomes(remove_dead, graph)


def test_a_halting_loop_emits_only_what_is_read(becomes: Becomes) -> None:
    before = """
        graph g
        instance @halt: halt(d = 4) lengths (n) axes (n) "m:H"
        input %1 x: seq[n, 4]
        input %2 y: seq[n, 4]
      - %3: seq[n, 4], seq[n, 4], seq[n, 4] =
      -     halting @halt[limit = 3, state = 1, mixture = false, emits = true](%2, %1) {
      + %3 z: seq[n, 4] = halting @halt[limit = 3, state = 0, mixture = false](%1) {
      -     input %4: seq[n, 4]
            input %5: seq[n, 4]
            %6: seq[n, 4] = negate(%5)
      -     %7: seq[n, 4] = add(%5, %4)
      -     return %4, %6, %7
      +     return %6
        }
      - %8 z: seq[n, 4] = part[index = 1](%3)
      - return %8
      + return %3
        """
    becomes(remove_dead, before)
    read = "\n".join(line.replace("- ", "  ") for line in before.splitlines() if not line.startswith("      +"))
    becomes(remove_dead, read.replace("index = 1", "index = 2"))


def test_a_loop_without_steps_is_removed_with_its_instances(becomes: Becomes) -> None:
    becomes(
        prune,
        """
        graph g
      - instance @stack.*.f: f axes () "m:F"
      - instance @halt: halt axes () "m:H"
        input %1 x: vec[4]
        input %2 y: vec[4]
      - %3: vec[4], vec[4] = stack[count = 0, path = "stack"](%1, %2) {
      -     input %4: vec[4]
      -     input %5: vec[4]
      -     %6: vec[4] = call @stack.*.f(%5)
      -     return %6, %4
      - }
      - %7: vec[4] = part[index = 1](%3)
      - %8: vec[4] = halting @halt[limit = 0, state = 0, mixture = false](%7) {
      -     input %9: vec[4]
      -     return %9
      - }
      - return %8
      + return %2
        """,
    )


def test_a_graph_without_losses_has_no_values_that_only_they_need(becomes: Becomes) -> None:
    becomes(
        without_losses,
        """
        graph g
      - instance @f: f axes () "m:F"
        input %1 x: vec[1]
      - %2: vec[1] = call @f(%1)
      - %3: () = loss[name = "size"](%2)
        %4: vec[1] = negate(%1)
        return %4
        """,
    )
