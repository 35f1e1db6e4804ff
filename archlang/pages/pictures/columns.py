"""Lays out a picture that is too wide to be read: blocks are drawn once, in columns beside the model that uses them."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from archlang.pages.pictures.box import Box
from archlang.pages.pictures.label import PADDING
from archlang.pages.pictures.placement import GAP, PlacedBox, place_boxes

# In pixels: with the margins of an SVG, 1,400, which most screens show whole.
WIDEST = 1380.0
_WIDEST_ROW = 800.0  # of boxes, without the edges that pass it


def place_readably(box: Box) -> PlacedBox:
    """Places a box for a picture that does not fold, in columns if it is too wide otherwise."""
    placed = place_boxes(box.without_repeats())
    is_pair = any(child.kind == "model" for child in box.boxes)
    return placed if placed.width <= WIDEST or is_pair else _in_columns(box)


def _in_columns(box: Box) -> PlacedBox:
    """Returns the model with its blocks inside it, each as far up as it has a place beside or below those before."""
    drawing = _Blocks()
    content = drawing.without_blocks(box)
    model, *blocks = (place_boxes(each, _WIDEST_ROW) for each in (content, *drawing.blocks))
    widest = max(WIDEST, *(each.width + 2 * PADDING for each in (model, *blocks)))
    placed = [model]
    for block in blocks:
        edges = (PADDING, *(each.x + each.width + GAP for each in placed))
        fitting = [x for x in edges if x == PADDING or x + block.width + PADDING <= widest]
        y, x = min((_bottom(placed, x, block.width), x) for x in fitting)
        placed.append(replace(block, x=x, y=y))
    width = max(each.x + each.width for each in placed) + PADDING
    height = max(each.bottom for each in placed) + GAP
    return replace(model, width=width, height=height, children=(*model.children, *placed[1:]))


def _bottom(boxes: Sequence[PlacedBox], x: float, width: float) -> float:
    """Returns the y below the boxes that a box of a width at x would touch."""
    touched = (box for box in boxes if box.x < x + width + GAP and x < box.x + box.width + GAP)
    return max((box.bottom + GAP for box in touched), default=GAP)


@dataclass
class _Blocks:
    """Collects the blocks of a picture, in the order of their first use."""

    blocks: list[Box] = field(default_factory=list)

    def without_blocks(self, box: Box) -> Box:
        """Returns a box in which the blocks that it uses are empty."""
        return replace(box, boxes=tuple(self._empty(child) for child in box.boxes))

    def _empty(self, box: Box) -> Box:
        if box.kind != "apply" or not box.boxes:
            return self.without_blocks(box)
        if not box.repeats:
            place = len(self.blocks)
            self.blocks.insert(place, self.without_blocks(replace(box, output="")))
        return replace(box, notes=(*box.notes, "drawn separately"), boxes=(), edges=())
