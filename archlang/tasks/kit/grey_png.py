"""Greyscale PNG pictures as arrays, decoded by Pillow."""

import io
import struct

import numpy as np
import numpy.typing as npt

from archlang.diagnostics.machine import needs_extra

Pixels = npt.NDArray[np.uint8]

# Refused before a pixel is decoded, whatever size the header states.
_MOST_PIXELS = 1 << 24


class PictureError(Exception):
    """Bytes that are not a PNG picture of the expected kind."""


def grey_pixels(data: bytes) -> Pixels:
    """Returns the pixels [height, width] of a PNG picture with one channel of 8 bits that is not interlaced.

    Raises:
        PictureError: the picture is of another kind, too large, or damaged."""
    with needs_extra("data"):
        from PIL import Image, UnidentifiedImageError

    too_large = (Image.DecompressionBombError, Image.DecompressionBombWarning)
    try:
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            if picture.mode != "L" or "interlace" in picture.info:
                raise PictureError("expected one channel of 8 bits that is not interlaced")
            if picture.width * picture.height > _MOST_PIXELS:
                raise PictureError(f"{picture.height} rows of {picture.width} pixels are more than {_MOST_PIXELS}")
            # Decoding ignores the checksums of the pixels.
            picture.verify()
        with Image.open(io.BytesIO(data), formats=["PNG"]) as picture:
            return np.array(picture, dtype=np.uint8)
    except UnidentifiedImageError as error:
        raise PictureError("the file is not a PNG picture, or its header is damaged") from error
    except (OSError, SyntaxError, ValueError, struct.error, *too_large) as error:
        raise PictureError(f"the PNG picture is damaged: {error}") from error
