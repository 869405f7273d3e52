"""Procedural paint: images made of seeded noise, never tiled, so that no two patches look alike.

A `Paint` is a function (rng, width, height in metres) -> float32 RGB image in 0..1 at `TEXELS` texels
per metre. The functions below give one each for their further arguments, such as colours (`paint_factory`).
Repetition would break feature matching, so every brick, plank, leaf and book is drawn by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Concatenate, ParamSpec, TypeAlias

import numpy as np

Paint = Callable[[np.random.Generator, float, float], np.ndarray]
Colour: TypeAlias = Sequence[float] | np.ndarray
P = ParamSpec("P")

TEXELS = 200.0  # per metre: one screen pixel of a 480p frame at 3.5 m


def paint_factory(draw: Callable[Concatenate[np.random.Generator, float, float, P], np.ndarray]) -> Callable[P, Paint]:
    """A function of what follows the size, such as colours, that gives the paint: `wood(brown)(rng, 2.0, 1.0)`."""

    @wraps(draw)
    def paint_of(*args: P.args, **named: P.kwargs) -> Paint:
        return lambda rng, width, height: draw(rng, width, height, *args, **named)

    return paint_of


def fractal_noise(
    rng: np.random.Generator, shape: tuple[int, int], grain: tuple[float, float], octaves: int = 4
) -> np.ndarray:
    """Smooth noise of mean 0 and deviation near 1, with features of `grain` (down, across) texels and finer."""
    import cv2

    total: np.ndarray | None = None
    power = 0.0
    for octave in range(octaves):  # from coarse to fine, each on its own small grid
        cells = [max(int(n / max(g / 2**octave, 1)), 1) + 2 for n, g in zip(shape, grain, strict=True)]
        detail = rng.standard_normal(cells, dtype=np.float32) * np.float32(0.6**octave)
        total = detail if total is None else detail + cv2.resize(total, cells[::-1], interpolation=cv2.INTER_CUBIC)
        power += 0.6 ** (2 * octave)
    return cv2.resize(total, shape[::-1], interpolation=cv2.INTER_CUBIC) / np.float32(0.6 * np.sqrt(power))


@paint_factory
def plaster(
    rng: np.random.Generator, width: float, height: float, colour: Colour, roughness: float = 0.035
) -> np.ndarray:
    """A painted wall with patches, strokes and specks."""
    image = _uniform_image(colour, width, height)
    _change_brightness_in_place(image, roughness * fractal_noise(rng, image.shape[:2], (90, 90), 6))
    return _add_speckles(rng, image, count=int(60 * width * height), size=(0.004, 0.012), strength=0.16)


@paint_factory
def wallpaper(
    rng: np.random.Generator, width: float, height: float, colour: Colour, motifs: Sequence[Colour]
) -> np.ndarray:
    """Leaves and petals scattered over a plain ground, each with its own size, turn and tint."""
    import cv2

    canvas = _to_uint8(_uniform_image(colour, width, height))
    for _ in range(int(26 * width * height)):
        x, y = rng.uniform(0, width), rng.uniform(0, height)
        turn, size = rng.uniform(0, 360), rng.uniform(0.03, 0.10)
        tint = _varied_bytes(rng, random_colour(rng, motifs), 0.10)
        for leaf in range(int(rng.integers(1, 6))):
            angle = turn + leaf * rng.uniform(38, 64)
            centre = x + 0.8 * size * np.cos(np.radians(angle)), y + 0.8 * size * np.sin(np.radians(angle))
            axes = (int(size * TEXELS), int(size * TEXELS * rng.uniform(0.22, 0.45)))
            cv2.ellipse(canvas, _to_texel(centre), axes, angle, 0, 360, tint, -1, cv2.LINE_AA)
        _fill_disc(canvas, (x, y), int(size * TEXELS * 0.3), _varied_bytes(rng, colour, 0.2))
    return _change_brightness_in_place(_to_float(canvas), 0.03 * fractal_noise(rng, canvas.shape[:2], (40, 40), 5))


@paint_factory
def bricks(rng: np.random.Generator, width: float, height: float, colour: Colour, mortar: Colour) -> np.ndarray:
    """Courses of bricks of unequal length and colour."""
    import cv2

    canvas = _to_uint8(_uniform_image(mortar, width, height))
    top = -rng.uniform(0, 0.05)
    while top < height:
        course = rng.uniform(0.075, 0.10)
        left = -rng.uniform(0, 0.25)
        while left < width:
            length = rng.uniform(0.15, 0.30)
            corner = _to_texel((left + 0.012, top + 0.012))
            tint = _varied_bytes(rng, colour, 0.13, 0.04)
            cv2.rectangle(canvas, corner, _to_texel((left + length, top + course)), tint, -1)
            left += length
        top += course
    image = _change_brightness_in_place(_to_float(canvas), 0.06 * fractal_noise(rng, canvas.shape[:2], (24, 24), 5))
    return _add_speckles(rng, image, count=int(90 * width * height), size=(0.004, 0.012), strength=0.2)


@paint_factory
def wood(
    rng: np.random.Generator, width: float, height: float, colour: Colour, plank: float = 0.14, along: str = "x"
) -> np.ndarray:
    """Planks with grain and knots; `along` is the direction they run, x or y."""
    if along == "y":
        return np.ascontiguousarray(wood(colour, plank)(rng, height, width).transpose(1, 0, 2))
    image = _uniform_image(colour, width, height)
    high, wide = image.shape[:2]
    top = 0.0
    while top < height:
        rows = slice(int(top * TEXELS), max(int((top + plank) * TEXELS), int(top * TEXELS) + 1))
        left = -rng.uniform(0, 0.8)
        while left < width:
            length = rng.uniform(0.5, 1.6)
            start, stop = max(int(left * TEXELS), 0), max(int((left + length) * TEXELS), 0)
            image[rows, start:stop] = _vary_colour(rng, colour, 0.08, 0.02)
            if start > 0 and width > 0.5:
                image[rows, start : start + 2] *= 0.6
            left += length
        if top > 0:
            image[rows.start : rows.start + 2] *= 0.6
        top += plank
    grain = 0.06 * fractal_noise(rng, (high, wide), (6, 160), 3) + 0.04 * fractal_noise(rng, (high, wide), (30, 90), 4)
    _change_brightness_in_place(image, grain)
    return _add_speckles(rng, image, count=int(30 * width * height), size=(0.006, 0.02), strength=-0.3)


@paint_factory
def fabric(
    rng: np.random.Generator, width: float, height: float, colour: Colour, stripes: Sequence[Colour] = ()
) -> np.ndarray:
    """Woven cloth, plain or with stripes of unequal width."""
    image = _uniform_image(colour, width, height)
    shape = image.shape[:2]
    at = 0.0
    while stripes and at < width:
        band = rng.uniform(0.02, 0.09)
        if rng.random() < 0.6:
            span = slice(int(at * TEXELS), int((at + band) * TEXELS))
            image[:, span] = _vary_colour(rng, random_colour(rng, stripes), 0.08)
        at += band
    _change_brightness_in_place(
        image, 0.05 * fractal_noise(rng, shape, (60, 60), 3) + 0.05 * fractal_noise(rng, shape, (4, 4), 2)
    )
    return _add_speckles(rng, image, count=int(140 * width * height), size=(0.005, 0.016), strength=0.2)


@paint_factory
def rug(rng: np.random.Generator, width: float, height: float, colours: Sequence[Colour]) -> np.ndarray:
    """A rug: nested borders around a field of scattered diamonds."""
    import cv2

    canvas = _to_uint8(_uniform_image(colours[0], width, height))
    inset = 0.0
    for i in range(4):
        tint = _varied_bytes(rng, colours[i % len(colours)], 0.06)
        cv2.rectangle(canvas, _to_texel((inset, inset)), _to_texel((width - inset, height - inset)), tint, -1)
        inset += rng.uniform(0.02, 0.05) * min(width, height)
    for _ in range(int(45 * width * height)):
        x, y = rng.uniform(inset, width - inset), rng.uniform(inset, height - inset)
        wide, high = rng.uniform(0.02, 0.11, 2)
        for shrink in (1.0, 0.6, 0.3):
            across, down = wide * shrink, high * shrink
            corners = [(x - across, y), (x, y - down), (x + across, y), (x, y + down)]
            tint = _varied_bytes(rng, random_colour(rng, colours), 0.08)
            cv2.fillConvexPoly(canvas, np.array([_to_texel(c) for c in corners]), tint, cv2.LINE_AA)
    shape = canvas.shape[:2]
    return _change_brightness_in_place(
        _to_float(canvas), 0.07 * fractal_noise(rng, shape, (5, 5), 2) + 0.03 * fractal_noise(rng, shape, (50, 50), 2)
    )


@paint_factory
def art(
    rng: np.random.Generator, width: float, height: float, colours: Sequence[Colour], margin: Colour = (0.95, 0.94, 0.9)
) -> np.ndarray:
    """An abstract poster: a sky of two colours, discs, hills and strokes, inside a paper margin."""
    import cv2

    image = _uniform_image(colours[0], width, height)
    high, wide = image.shape[:2]
    ramp = np.linspace(0, 1, high, dtype=np.float32)[:, None, None]
    first, second = (np.asarray(colours[i], np.float32) for i in rng.choice(len(colours), 2, replace=False))
    canvas = _to_uint8(np.broadcast_to(first * (1 - ramp) + second * ramp, image.shape))
    for _ in range(int(rng.integers(2, 5))):
        centre = (rng.uniform(0.1, 0.9) * width, rng.uniform(0.1, 0.6) * height)
        radius = int(rng.uniform(0.06, 0.22) * wide)
        _fill_disc(canvas, centre, radius, _varied_bytes(rng, random_colour(rng, colours), 0.15))
    for level in np.sort(rng.uniform(0.4, 0.95, int(rng.integers(3, 6)))):
        ridge = level * high + 0.09 * high * fractal_noise(rng, (1, wide), (1, wide / 3), 4)[0]
        _fill_hill(canvas, ridge, _varied_bytes(rng, random_colour(rng, colours), 0.2))
    for _ in range(int(rng.integers(6, 16))):
        ends = rng.uniform(0, 1, (2, 2)) * (width, height)
        tint = _varied_bytes(rng, random_colour(rng, colours), 0.25)
        cv2.line(canvas, _to_texel(ends[0]), _to_texel(ends[1] * 0.3 + ends[0] * 0.7), tint, 2, cv2.LINE_AA)
    border = max(2, int(0.06 * min(high, wide)))
    cv2.rectangle(canvas, (0, 0), (wide - 1, high - 1), _to_bytes(margin), 2 * border)
    return _change_brightness_in_place(_to_float(canvas), 0.03 * fractal_noise(rng, canvas.shape[:2], (14, 14), 4))


@paint_factory
def books(
    rng: np.random.Generator, width: float, height: float, colours: Sequence[Colour], case: Colour, shelves: int
) -> np.ndarray:
    """The front of a bookcase: shelves full of upright and leaning books, with gaps and ornaments."""
    import cv2

    canvas = _to_uint8(_uniform_image(np.asarray(case) * 0.35, width, height))
    board, pitch = 0.03, height / shelves
    for shelf in range(shelves):
        bottom = (shelf + 1) * pitch - board
        left = board
        while left < width - board - 0.02:
            thick, tall = rng.uniform(0.02, 0.06), rng.uniform(0.55, 0.9) * (pitch - board)
            right = min(left + thick, width - board)
            if rng.random() < 0.10:
                left += rng.uniform(0.03, 0.10)
                continue
            lean = rng.choice([0.0, 0.0, 0.0, 0.025])
            tint = _vary_colour(rng, random_colour(rng, colours), 0.16)
            spine = [(left + lean, bottom - tall), (right + lean, bottom - tall), (right, bottom), (left, bottom)]
            cv2.fillConvexPoly(canvas, np.array([_to_texel(p) for p in spine]), _to_bytes(tint), cv2.LINE_AA)
            label = _to_bytes(np.clip(tint + rng.choice([-0.3, 0.35]), 0, 1))
            for band in rng.uniform(0.12, 0.9, int(rng.integers(1, 4))):
                at = bottom - tall * band
                stop = _to_texel((right - 0.005, at + rng.uniform(0.004, 0.03)))
                cv2.rectangle(canvas, _to_texel((left + 0.005, at)), stop, label, -1)
            left = right + lean + 0.002
        stop = _to_texel((width, bottom + board))
        cv2.rectangle(canvas, _to_texel((0, bottom)), stop, _varied_bytes(rng, case, 0.04), -1)
    sides = int(board * TEXELS)
    canvas[:, :sides] = canvas[:, -sides:] = _to_bytes(case)
    canvas[:sides] = _to_bytes(case)
    return _change_brightness_in_place(_to_float(canvas), 0.05 * fractal_noise(rng, canvas.shape[:2], (10, 10), 3))


@paint_factory
def drawers(
    rng: np.random.Generator, width: float, height: float, colour: Colour, rows: int, columns: int
) -> np.ndarray:
    """The front of a cabinet: wooden drawers with dark joints and bright knobs."""
    import cv2

    canvas = _to_uint8(wood(colour, height / rows)(rng, width, height))
    for row in range(rows):
        for column in range(columns):
            x0, y0 = column * width / columns, row * height / rows
            x1, y1 = x0 + width / columns, y0 + height / rows
            dark = _to_bytes(np.asarray(colour) * 0.35)
            cv2.rectangle(canvas, _to_texel((x0 + 0.015, y0 + 0.015)), _to_texel((x1 - 0.015, y1 - 0.015)), dark, 2)
            centre = ((x0 + x1) / 2, (y0 + y1) / 2)
            _fill_disc(canvas, centre, 5, _to_bytes((0.25, 0.2, 0.15)))
            _fill_disc(canvas, centre, 4, _to_bytes((0.9, 0.78, 0.45)))
    return _to_float(canvas)


@paint_factory
def landscape(rng: np.random.Generator, width: float, height: float) -> np.ndarray:
    """What a window shows: a bright sky with clouds over hills and trees, behind a cross of bars."""
    import cv2

    image = _uniform_image((0.62, 0.80, 0.96), width, height)
    high, wide = image.shape[:2]
    clouds = np.clip(fractal_noise(rng, (high, wide), (high / 3, wide / 2), 6) * 0.5 + 0.1, 0, 1)[..., None]
    image += (1 - image) * clouds
    canvas = _to_uint8(image)
    for level, tint in ((0.5, (0.55, 0.68, 0.72)), (0.64, (0.42, 0.60, 0.42)), (0.8, (0.28, 0.46, 0.25))):
        ridge = level * high + 0.06 * high * fractal_noise(rng, (1, wide), (1, wide / 2), 5)[0]
        _fill_hill(canvas, ridge, _varied_bytes(rng, tint, 0.05))
    for _ in range(14):
        centre = (rng.uniform(0, width), rng.uniform(0.72, 0.95) * height)
        radius = int(rng.uniform(0.02, 0.07) * high)
        _fill_disc(canvas, centre, radius, _varied_bytes(rng, (0.2, 0.36, 0.18), 0.1))
    bar = _to_bytes((0.93, 0.92, 0.88))
    for k in (0, 0.5, 1):
        cv2.line(canvas, _to_texel((k * width, 0)), _to_texel((k * width, height)), bar, 9)
        cv2.line(canvas, _to_texel((0, k * height)), _to_texel((width, k * height)), bar, 9)
    return _to_float(canvas)


@paint_factory
def plain(rng: np.random.Generator, width: float, height: float, colour: Colour, roughness: float = 0.03) -> np.ndarray:
    """One colour with a faint grain, for small things."""
    image = _uniform_image(colour, width, height)
    return _change_brightness_in_place(image, roughness * fractal_noise(rng, image.shape[:2], (12, 12), 3))


def _uniform_image(colour: Colour, width: float, height: float) -> np.ndarray:
    image = np.empty((max(round(height * TEXELS), 4), max(round(width * TEXELS), 4), 3), np.float32)
    for channel, level in enumerate(np.asarray(colour, np.float32)):  # numpy takes long over rows of three
        image[..., channel] = level
    return image


def _change_brightness_in_place(image: np.ndarray, relative_change: np.ndarray) -> np.ndarray:
    factor = 1 + relative_change
    for channel in range(3):
        image[..., channel] *= factor
    return np.clip(image, 0, 1, out=image)


def _add_speckles(
    rng: np.random.Generator, image: np.ndarray, count: int, size: tuple[float, float], strength: float
) -> np.ndarray:
    """The image with small lighter and darker blots: corners that features hold on to."""
    import cv2

    blots = np.full(image.shape[:2], 128, np.uint8)
    for _ in range(count):
        x, y = int(rng.integers(image.shape[1])), int(rng.integers(image.shape[0]))
        axes = tuple(max(int(v), 1) for v in rng.uniform(*size, 2) * TEXELS)
        level = int(128 + 127 * rng.uniform(0.3, 1) * (1 if strength < 0 else 2 * int(rng.integers(2)) - 1))
        cv2.ellipse(blots, (x, y), axes, float(rng.uniform(0, 180)), 0, 360, level, -1, cv2.LINE_AA)
    return _change_brightness_in_place(image, (blots.astype(np.float32) - 128) * (strength / 127))


def _vary_colour(rng: np.random.Generator, colour: Colour, light: float, hue: float = 0.03) -> np.ndarray:
    """The colour, a little lighter or darker and a little off in hue."""
    varied = np.asarray(colour) * (1 + rng.uniform(-light, light)) + rng.uniform(-hue, hue, 3)
    return np.asarray(np.minimum(np.maximum(varied, 0.0), 1.0))


def random_colour(rng: np.random.Generator, colours: Sequence[Colour]) -> Colour:
    """One of some colours."""
    return colours[int(rng.integers(len(colours)))]


def _to_texel(point: Sequence[float] | np.ndarray) -> tuple[int, int]:
    return round(float(point[0]) * TEXELS), round(float(point[1]) * TEXELS)


def _to_bytes(colour: Colour) -> tuple[int, int, int]:
    r, g, b = (round(255 * float(c)) for c in colour)
    return r, g, b


def _varied_bytes(rng: np.random.Generator, colour: Colour, light: float, hue: float = 0.03) -> tuple[int, int, int]:
    return _to_bytes(_vary_colour(rng, colour, light, hue))


def _fill_disc(canvas: np.ndarray, centre: Sequence[float], radius: int, tint: Sequence[int]) -> None:
    import cv2

    cv2.circle(canvas, _to_texel(centre), radius, tint, -1, cv2.LINE_AA)


def _fill_hill(canvas: np.ndarray, ridge: np.ndarray, tint: Sequence[int]) -> None:
    """Fill what lies below a ridge, whose height is given for every column."""
    import cv2

    high, wide = canvas.shape[:2]
    outline = np.concatenate([np.stack([np.arange(wide), ridge], 1), [[wide, high], [0, high]]]).astype(np.int32)
    cv2.fillPoly(canvas, [outline], tint, cv2.LINE_AA)


def _to_uint8(image: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray((np.clip(image, 0, 1) * 255 + 0.5).astype(np.uint8))


def _to_float(canvas: np.ndarray) -> np.ndarray:
    return canvas.astype(np.float32) / np.float32(255)
