"""The functions that the method `forward` of an exported model calls besides blocks: their names, or their texts."""

from archlang.export.plain.sources import Name

_LOOPS = "archlang.backend.runtime.loops"
DIVIDE = Name("archlang.backend.runtime.ieee_division", "divide")
DIVIDE_WHERE_REAL = Name("archlang.backend.runtime.padded_division", "divide_where_real")
DERIVED_MASK = Name("archlang.backend.runtime.derived_masks", "derived_mask")
BROADCAST_MASK = Name(_LOOPS, "broadcast_mask")
MEAN_STEPS = Name(_LOOPS, "mean_steps")
OVER_CHUNKS = Name("archlang.backend.runtime.scans", "mean_over_chunks")
GROWN = Name("archlang.backend.runtime.scans", "grown")
REAL_POSITIONS = '''
def real_positions(x, lengths):
    """Returns the mask of the real positions of a padded batch, [b n]; None if all positions are real."""
    if lengths is None:
        return None
    return torch.arange(x.shape[1], device=x.device) < lengths[:, None]


def filled_padding(x, mask):
    """Returns x with a copy of the sample's first position at padding, zeros if it has none."""
    if mask is None:
        return x
    mask = mask.reshape(*mask.shape, *[1] * (x.dim() - 2))
    return torch.where(mask, x, x[:, :1].detach().masked_fill(~mask[:, :1], 0))
'''
WHERE_REAL = '''
def where_real(mask, new, old):
    """Returns the new state; the old one for a sample that has no real position in a chunk."""
    if mask is None:
        return new
    return torch.where(mask.any(1).reshape(-1, *[1] * (new.dim() - 1)), new, old)
'''
GROWN_BY_PART = '''
def grown_by_part(mask, new, old, mask_old, each, per_position):
    """Returns a state that grows by `each` positions, and by `per_position` for each one of the part, and its mask."""
    if mask is None:
        return grown(new, old, mask_old, None, None)
    real = mask.any(1)
    return grown(new, old, mask_old, real, each * real + per_position * mask.sum(1))
'''
POSITIONS = '''
def positions(x, mask):
    """Yields the vector of each position, and its mask."""
    for index, vector in enumerate(x.unbind(1)):
        yield vector, None if mask is None else mask[:, index : index + 1]
'''
BEFORE = '''
def with_before(parts, count):
    """Yields each part and its mask, with the positions before it, the last `count` or all if that is 0, and theirs."""
    parts = list(parts)
    pieces = [part.unsqueeze(1) if part.dim() == 2 else part for part, _ in parts]
    x = torch.cat(pieces, 1)
    mask = None if parts[0][1] is None else torch.cat([part_mask for _, part_mask in parts], 1)
    end = 0
    for part, piece in zip(parts, pieces):
        begin = max(0, end - count) if count else 0
        yield *part, x[:, begin:end], None if mask is None else mask[:, begin:end]
        end += piece.shape[1]
'''

ROUTED = '''
def routed(x, weights, mask):
    """Returns the real positions as rows, and for each expert the weights of the rows."""
    if mask is not None:
        weights = weights.masked_fill(~mask.unsqueeze(-1), 0)
    return x.reshape(-1, x.shape[-1]), weights.reshape(-1, weights.shape[-1]).unbind(-1)


def weighed(result, weight):
    """Returns results times their weights; 0 for a weight of 0, which has no gradient."""
    weight = weight.unsqueeze(-1)
    return result.masked_fill(weight == 0, 0) * weight


def for_rows(value, weight):
    """Returns a value of each sample for each of its rows; ones where the weight of a row is 0: an expert does not
    compute it, and 0 times an infinite gradient is NaN."""
    if value is None:
        return None
    value = value.repeat_interleave(len(weight) // max(1, len(value)), 0)
    chosen = (weight != 0).view(-1, *[1] * (value.dim() - 1))
    return torch.where(chosen, value, 1) if value.is_floating_point() else value
'''
