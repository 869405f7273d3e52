"""What a network made of a picture is made once, within bounds."""

from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="needs torch: pip install 'revisit[networks]'")

from revisit.networks.lpips import ALEX, Lpips  # noqa: E402
from revisit.networks.output_cache import FeatureCache  # noqa: E402 - torch may be absent


class Maker:
    """Counts how often it made something."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self, kept: FeatureCache, picture: Any) -> list[Any]:
        def make() -> list[Any]:
            self.made += 1
            return [picture.float() * 2, picture.float().sum()[None]]

        return kept.cached_or_made(picture, make)


def pictures(count: int) -> list[Any]:
    return [torch.full((1, 3, 4, 5), k, dtype=torch.uint8) for k in range(count)]


def test_it_is_made_once_and_comes_back_as_it_was():
    make, kept = Maker(), FeatureCache()
    first = [make(kept, picture) for picture in pictures(4)]
    again = [make(kept, picture) for picture in pictures(4)]
    assert make.made == 4
    for one, other in zip(first, again, strict=True):
        assert all(torch.equal(a, b) and a.dtype == b.dtype for a, b in zip(one, other, strict=True))
    make(kept, torch.zeros((1, 3, 5, 4), dtype=torch.uint8))  # the same bytes in another shape
    assert make.made == 5


def test_it_starts_over_when_its_room_is_full():
    size = 4 * (3 * 4 * 5 + 1)
    make, kept = Maker(), FeatureCache(room=3 * size)
    for picture in pictures(5):  # the fourth starts over
        make(kept, picture)
    assert kept.used == 2 * size
    for picture in pictures(5)[3:]:
        make(kept, picture)
    assert make.made == 5
    make(kept, pictures(1)[0])
    assert make.made == 6
    make(FeatureCache(room=1), pictures(1)[0])
    assert make.made == 7


def test_distances_are_the_same_whoever_came_first():
    torch.manual_seed(0)
    net = Lpips(ALEX).eval().requires_grad_(False)
    a, b = torch.randint(0, 256, (2, 3, 3, 64, 96), dtype=torch.uint8)
    with torch.inference_mode():
        first, again = net(a, b), net(a, b)
        other = Lpips(ALEX).eval().requires_grad_(False)
        other.load_state_dict(net.state_dict())
        backwards = torch.cat([other(a[k : k + 1], b[k : k + 1]) for k in (2, 1, 0)]).flip(0)
        together = net._distances_of_pairs(a, b)
    assert torch.equal(first, again)
    assert torch.equal(first, backwards)
    assert first == pytest.approx(together, abs=1e-6)
