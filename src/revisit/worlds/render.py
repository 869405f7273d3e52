"""The renderer: textured panels, balls and tubes to colour, exact depth and instance ids, on numpy and OpenCV.

Every pixel of a panel is an affine function away: with G the inverse of K [across down corner], G·p is
(s, t, 1)/z, so its inverse depth, its outline and its level of detail cost a few additions. Colour is
traced at twice the size and averaged (smooth edges), with images halved as they recede (no shimmer);
depth and ids are traced at the centres of the final pixels, so they are exact.

Conventions: pixel centres at whole numbers, OpenCV camera axes, camera-to-world poses, depth in metres
along the optical axis.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from revisit.worlds.shapes import Ball, Panel, Shape, Tube

NEAR = 0.05
Box = tuple[int, int, int, int]  # x0, y0, x1, y1 in pixels; x1 and y1 are outside
# Corners of a hull (numbered by z, y, x) around each of its faces.
FACES = ([0, 1, 3, 2], [4, 5, 7, 6], [0, 1, 5, 4], [2, 3, 7, 6], [0, 2, 6, 4], [1, 3, 7, 5])


@dataclass(frozen=True, eq=False)
class Camera:
    """Where a picture is taken from: intrinsics, camera-to-world pose, height and width."""

    K: np.ndarray
    pose: np.ndarray
    size: tuple[int, int]

    def at_double_resolution(self) -> Camera:
        """The same view on a grid twice as fine."""
        K = self.K * np.array([[2.0], [2.0], [1.0]])
        K[:2, 2] += 0.5
        return replace(self, K=K, size=(2 * self.size[0], 2 * self.size[1]))

    def crop_to_box(self, box: Box) -> Camera:
        """The part of the view inside a box of pixels."""
        K = self.K.copy()
        K[:2, 2] -= box[:2]
        return replace(self, K=K, size=(box[3] - box[1], box[2] - box[0]))

    def project(self, points: np.ndarray) -> np.ndarray:
        """Pixels (..., 2) of points in camera axes."""
        pixels = points @ self.K.T
        return np.asarray(pixels[..., :2] / pixels[..., 2:])

    @cached_property
    def world_to_camera(self) -> tuple[np.ndarray, np.ndarray]:
        rotation = self.pose[:3, :3].T
        return rotation, -rotation @ self.pose[:3, 3]


def intrinsics_from_fov(size: tuple[int, int], fov: float) -> np.ndarray:
    """K of a camera whose picture spans `fov` degrees from left to right."""
    height, width = size
    focal = width / 2 / np.tan(np.radians(fov) / 2)
    return np.array([[focal, 0, (width - 1) / 2], [0, focal, (height - 1) / 2], [0, 0, 1]])


@dataclass(frozen=True, eq=False)
class Surface:
    """A shape ready to draw: its lit images, each half the size of the one before, and its instance id."""

    shape: Shape
    levels: tuple[np.ndarray, ...]
    instance: int
    hull: np.ndarray  # (8, 3) corners of a box around it; a panel has its four corners twice
    normal: np.ndarray  # of a panel; zero for what is seen from every side


def make_surface(shape: Shape, image: np.ndarray, instance: int) -> Surface:
    """A shape with a lit uint8 image, ready to draw."""
    import cv2

    levels = [image]
    while min(levels[-1].shape[:2]) >= 4 and len(levels) < 7:
        height, width = levels[-1].shape[:2]
        levels.append(cv2.resize(levels[-1], (width // 2, height // 2), interpolation=cv2.INTER_AREA))
    normal = np.cross(shape.down, shape.across) if isinstance(shape, Panel) else np.zeros(3)
    return Surface(shape, tuple(levels), instance, _bounding_box_corners(shape), normal)


@dataclass(frozen=True, eq=False)
class Traced:
    """What each pixel sees: inverse depth, and the number of the surface (-1 where nothing was traced)."""

    inverse: np.ndarray
    which: np.ndarray
    boxes: Sequence[Box | None] = ()  # where each surface may be


def trace_surfaces(surfaces: Sequence[Surface], camera: Camera, onto: Traced | None = None) -> Traced:
    """The nearest surface under each pixel centre; `onto` holds what stands there already."""
    traced = onto or Traced(np.zeros(camera.size, np.float32), np.full(camera.size, -1, np.int16))
    boxes = surface_pixel_boxes(surfaces, camera)
    for number, (item, box) in enumerate(zip(surfaces, boxes, strict=True)):
        if box is None:
            continue
        x0, y0, x1, y1 = box
        inverse = traced.inverse[y0:y1, x0:x1]
        if isinstance(item.shape, Panel):
            closer, candidate = _panel_cover_and_inverse_depth(item.shape, camera, box)
        else:
            candidate = _curved_inverse_depth(item.shape, camera, box)
            closer = candidate > 0
        closer &= candidate > inverse
        np.copyto(inverse, candidate, where=closer)
        traced.which[y0:y1, x0:x1][closer] = number
    return replace(traced, boxes=boxes)


def colour_traced_surfaces(
    surfaces: Sequence[Surface], camera: Camera, traced: Traced, onto: np.ndarray | None = None
) -> np.ndarray:
    """The picture (uint8 RGB) of traced surfaces, over `onto` where none was traced."""
    picture = np.zeros((*camera.size, 3), np.uint8) if onto is None else onto
    for number, (item, limits) in enumerate(zip(surfaces, traced.boxes, strict=True)):
        box = None if limits is None else _label_bounding_box(traced.which, number, limits)
        if box is None:
            continue
        x0, y0, x1, y1 = box
        mine = traced.which[y0:y1, x0:x1] == number
        if isinstance(item.shape, Panel):
            _paint_panel(item, camera, box, mine, traced.inverse, picture)
        else:
            patch = _curved_colour(item, camera, box, traced.inverse[y0:y1, x0:x1])
            picture[y0:y1, x0:x1][mine] = patch[mine]
    return picture


def pixel_to_panel_matrix(shape: Panel, camera: Camera) -> np.ndarray:
    """G (3, 3): G·(x, y, 1) is (s, t, 1)/z for the point at shares s, t of the panel's sides."""
    rotation, offset = camera.world_to_camera
    corners = np.stack([rotation @ shape.across, rotation @ shape.down, rotation @ shape.corner + offset], axis=1)
    return np.linalg.inv(camera.K @ corners)


def surface_pixel_boxes(surfaces: Sequence[Surface], camera: Camera) -> list[Box | None]:
    """Pixels that each surface may cover; None if it is behind the camera, beside the view or turned away."""
    rotation, offset = camera.world_to_camera
    hulls = np.stack([s.hull for s in surfaces]) @ rotation.T + offset
    normals = np.stack([s.normal for s in surfaces])
    away = (normals * (camera.pose[:3, 3] - np.stack([s.hull[0] for s in surfaces]))).sum(axis=1) < 0
    behind = hulls[..., 2] < NEAR
    with np.errstate(divide="ignore", invalid="ignore"):
        pixels = camera.project(hulls)
    low, high = pixels.min(axis=1), pixels.max(axis=1)
    for i in np.flatnonzero(behind.any(axis=1) & ~behind.all(axis=1) & ~away):
        corners_in_front = camera.project(_hull_corners_in_front(hulls[i]))
        low[i], high[i] = corners_in_front.min(axis=0), corners_in_front.max(axis=0)
    hidden = away | behind.all(axis=1)
    low[hidden], high[hidden] = 0, -1
    low = np.ceil(np.clip(low - 1e-6, 0, camera.size[::-1])).astype(int)
    high = np.floor(np.clip(high + 1e-6, -1, np.array(camera.size[::-1]) - 1)).astype(int) + 1
    return [
        (x0, y0, x1, y1) if x0 < x1 and y0 < y1 else None
        for (x0, y0), (x1, y1) in zip(low.tolist(), high.tolist(), strict=True)
    ]


def may_box_be_in_view(hull: np.ndarray, camera: Camera) -> bool:
    """Whether any part of a box (eight corners, numbered by z, y, x) may be in the picture."""
    rotation, offset = camera.world_to_camera
    front = _hull_corners_in_front(hull @ rotation.T + offset)
    if len(front) == 0:
        return False
    pixels = camera.project(front)
    return bool((pixels.max(axis=0) >= -0.5).all() and (pixels.min(axis=0) <= np.array(camera.size[::-1]) - 0.5).all())


def matrix_values_at_pixels(matrix: np.ndarray, box: Box) -> list[np.ndarray]:
    """Each row of a matrix times (x, y, 1), for the pixels of a box."""
    x0, y0, x1, y1 = box
    x = np.arange(x0, x1, dtype=np.float32)
    y = np.arange(y0, y1, dtype=np.float32)[:, None]
    return [row[0] * x + (row[1] * y + row[2]) for row in matrix.astype(np.float32)]


def _pixel_rays(camera: Camera, box: Box) -> list[np.ndarray]:
    """World directions x, y, z of the rays of a box of pixels, one metre long along the optical axis."""
    return matrix_values_at_pixels(camera.pose[:3, :3] @ np.linalg.inv(camera.K), box)


def _curved_inverse_depth(shape: Ball | Tube, camera: Camera, box: Box) -> np.ndarray:
    """Inverse depth of a ball or tube inside a box of pixels; 0 where the ray misses it."""
    x, y, z = _pixel_rays(camera, box)
    start = (camera.pose[:3, 3] - shape.at).astype(np.float32)
    with np.errstate(invalid="ignore", divide="ignore"):
        if isinstance(shape, Ball):
            if shape.squash != 1:  # a spheroid is a sphere in a world of another height
                y, start = y / np.float32(shape.squash), start / np.array([1, shape.squash, 1], np.float32)
            projection = x * start[0] + y * start[1] + z * start[2]
            depth = _smaller_quadratic_root(
                x * x + y * y + z * z, projection, np.float32(start @ start - shape.radius**2)
            )
            return np.where(depth > NEAR, 1 / depth, 0)
        slope = np.float32((shape.bottom - shape.top) / shape.height)  # radius = bottom + slope·y, y down from the base
        wide = np.float32(shape.bottom) + slope * start[1]
        tilt = slope * y
        depth = _smaller_quadratic_root(
            x * x + z * z - tilt * tilt,
            x * start[0] + z * start[2] - tilt * wide,
            start[0] ** 2 + start[2] ** 2 - wide * wide,
        )
        level = start[1] + depth * y
        return np.where((depth > NEAR) & (level <= 0) & (level >= -np.float32(shape.height)), 1 / depth, 0)


def _panel_cover_and_inverse_depth(shape: Panel, camera: Camera, box: Box) -> tuple[np.ndarray, np.ndarray]:
    """Which pixels of a box the panel covers, and its inverse depth there."""
    s, t, inverse = matrix_values_at_pixels(pixel_to_panel_matrix(shape, camera), box)
    if shape.round:
        covered = (s - inverse / 2) ** 2 + (t - inverse / 2) ** 2 <= inverse**2 / 4
        covered &= inverse > 0
    else:
        covered = (s >= 0) & (t >= 0) & (s <= inverse) & (t <= inverse)
    return covered, inverse


def _paint_panel(
    item: Surface, camera: Camera, box: Box, mine: np.ndarray, inverse: np.ndarray, picture: np.ndarray
) -> None:
    """Draw the pixels of a panel, blending the two images whose texels are nearest to the size of a pixel."""
    import cv2

    assert isinstance(item.shape, Panel)
    x0, y0, x1, y1 = box
    G = pixel_to_panel_matrix(item.shape, camera)
    height, width = item.levels[0].shape[:2]
    # The area of a pixel on the image is det(G)·z³: the level of detail depends on the depth alone.
    finest = 0.5 * np.log2(abs(np.linalg.det(G)) * height * width)
    farthest = float(inverse[y0:y1, x0:x1][mine].min())
    last = len(item.levels) - 1
    if finest - 1.5 * np.log2(farthest) <= 0 or last == 0:
        cv2.copyTo(_warp_panel_image(item.levels[0], G, box), mine.view(np.uint8), picture[y0:y1, x0:x1])
        return
    level = np.float32(finest) - np.float32(1.5) * np.log2(np.maximum(inverse[y0:y1, x0:x1], np.float32(farthest)))
    level = np.clip(level, 0, last)
    base = np.minimum(level.astype(np.int16), last - 1)
    own = base[mine]
    for lower in range(int(own.min()), int(own.max()) + 1):
        part = mine & (base == lower)
        strip = _label_bounding_box(part, True, (0, 0, x1 - x0, y1 - y0))
        if strip is None:
            continue
        a0, b0, a1, b1 = strip
        place = (x0 + a0, y0 + b0, x0 + a1, y0 + b1)
        fine, coarse = (_warp_panel_image(item.levels[k], G, place) for k in (lower, lower + 1))
        weight = level[b0:b1, a0:a1] - np.float32(lower)
        blended = cv2.blendLinear(fine, coarse, 1 - weight, weight)
        cv2.copyTo(blended, part[b0:b1, a0:a1].view(np.uint8), picture[y0 + b0 : y0 + b1, x0 + a0 : x0 + a1])


def _warp_panel_image(image: np.ndarray, G: np.ndarray, box: Box) -> np.ndarray:
    """The image of a panel as seen in a box of pixels."""
    import cv2

    height, width = image.shape[:2]
    to_texels = np.array([[width, 0, -0.5], [0, height, -0.5], [0, 0, 1]]) @ G
    shift = np.array([[1, 0, box[0]], [0, 1, box[1]], [0, 0, 1.0]])
    flags = cv2.INTER_LINEAR | cv2.WARP_INVERSE_MAP
    size = (box[2] - box[0], box[3] - box[1])
    return cv2.warpPerspective(image, to_texels @ shift, size, flags=flags, borderMode=cv2.BORDER_REPLICATE)


def _curved_colour(item: Surface, camera: Camera, box: Box, inverse: np.ndarray) -> np.ndarray:
    """The picture of a ball or tube at points of known inverse depth; meaningless where others are seen."""
    import cv2

    shape = item.shape
    assert not isinstance(shape, Panel)
    start = (camera.pose[:3, 3] - shape.at).astype(np.float32)
    x, y, z = (s + ray / inverse for s, ray in zip(start, _pixel_rays(camera, box), strict=True))
    if isinstance(shape, Ball):
        y = y / np.float32(shape.squash)
        if shape.roll:
            cosine, sine = np.float32(np.cos(np.radians(shape.roll))), np.float32(np.sin(np.radians(shape.roll)))
            x, y = cosine * x + sine * y, cosine * y - sine * x
        v, extent = np.arccos(np.clip(-y / np.float32(shape.radius), -1, 1)) / np.float32(np.pi), np.pi * shape.radius
    else:
        v, extent = 1 + y / np.float32(shape.height), shape.height
    u = ((np.arctan2(x, z) - np.float32(np.radians(shape.turn))) / np.float32(2 * np.pi)) % 1
    texels_per_pixel = item.levels[0].shape[0] / extent * np.linalg.norm(start) / camera.K[0, 0]
    image = item.levels[int(np.clip(round(np.log2(texels_per_pixel)), 0, len(item.levels) - 1))]
    height, width = image.shape[:2]
    rolled = np.concatenate([image, image[:, :1]], axis=1)  # the seam must blend with the first column
    return cv2.remap(rolled, u * width, v * height - np.float32(0.5), cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)


def _smaller_quadratic_root(a: np.ndarray, b: np.ndarray, c: np.floating) -> np.ndarray:
    """The smaller root of a·z² + 2b·z + c where a > 0; NaN where there is none."""
    return (-b - np.sqrt(b * b - a * c)) / a


def _hull_corners_in_front(hull: np.ndarray) -> np.ndarray:
    """The corners of the part of a hull (camera axes) in front of the near plane."""
    return np.concatenate([_clip_polygon_at_near_plane(hull[face]) for face in FACES])


def _clip_polygon_at_near_plane(corners: np.ndarray) -> np.ndarray:
    """The part of a polygon (camera axes) in front of the near plane."""
    ahead = (corners[:, 2] >= NEAR).tolist()
    if all(ahead) or not any(ahead):
        return corners if ahead[0] else corners[:0]
    kept = []
    for k, one in enumerate(corners):
        if ahead[k - 1] != ahead[k]:
            last = corners[k - 1]
            kept.append(last + (NEAR - last[2]) / (one[2] - last[2]) * (one - last))
        if ahead[k]:
            kept.append(one)
    return np.array(kept).reshape(-1, 3)


def _bounding_box_corners(shape: Shape) -> np.ndarray:
    if isinstance(shape, Panel):
        right, below = shape.corner + shape.across, shape.corner + shape.down
        return np.array([shape.corner, right, below, right + shape.down] * 2)
    if isinstance(shape, Ball):
        half = shape.radius * np.array([1, shape.squash, 1])
        low, high = shape.at - half, shape.at + half
    else:
        radius = max(shape.bottom, shape.top)
        low = shape.at - np.array([radius, shape.height, radius])
        high = shape.at + np.array([radius, 0, radius])
    return box_corners(low, high)


def box_corners(low: Sequence[float] | np.ndarray, high: Sequence[float] | np.ndarray) -> np.ndarray:
    """The corners (8, 3) of a box, numbered by z, y, x."""
    return np.array([[x, y, z] for z in (low[2], high[2]) for y in (low[1], high[1]) for x in (low[0], high[0])])


def _label_bounding_box(labels: np.ndarray, label: int | bool, limits: Box) -> Box | None:
    """The box of the pixels that carry a label, within limits."""
    import cv2

    x0, y0, x1, y1 = limits
    x, y, width, height = cv2.boundingRect((labels[y0:y1, x0:x1] == label).view(np.uint8))
    return (x0 + x, y0 + y, x0 + x + width, y0 + y + height) if width else None
