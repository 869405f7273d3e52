"""Arrays from anybody: numbers come back exactly, everything else is refused with a sentence."""

from __future__ import annotations

import io
import pickle
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest

from revisit.core import MediaError
from revisit.engine.cache import palette_decode_float16_arrays, palette_encode_float16_arrays
from revisit.media import load_npz, save_npz

ARRAYS: dict[str, np.ndarray] = {
    "poses": np.linspace(0, 1, 24).reshape(2, 3, 4),
    "fortran": np.asfortranarray(np.arange(6, dtype=np.int16).reshape(2, 3)),
    "flags": np.array([True, False]),
    "empty": np.zeros((0, 3), np.float32),
    "scalar": np.array(7),
    "words": np.array(["a", "längeres"]),
    "big endian": np.arange(3, dtype=">f4"),
}


class Trap:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return exec, ("raise SystemExit('code of the file was run')",)


def npy(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


def refusal(path: Path, **options: int) -> str:
    with pytest.raises(MediaError) as caught:
        load_npz(path, **options)  # type: ignore[arg-type]
    assert str(caught.value).startswith(f"{path.name}: ") and str(caught.value).isprintable()
    return str(caught.value)


def archive(path: Path, members: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> Path:
    with zipfile.ZipFile(path, "w", compression) as made:
        for name, data in members.items():
            made.writestr(name, data)
    return path


@pytest.mark.parametrize("compress", [False, True])
def test_arrays_come_back(tmp_path: Path, compress: bool) -> None:
    path = tmp_path / "new folder" / "a.npz"
    save_npz(path, ARRAYS, compress=compress)
    got = load_npz(path)
    assert set(got) == set(ARRAYS)
    for name, array in ARRAYS.items():
        assert got[name].dtype == array.dtype and np.array_equal(got[name], array)
    with np.load(path) as theirs:
        assert np.array_equal(theirs["poses"], ARRAYS["poses"])
    assert [p.name for p in path.parent.iterdir()] == ["a.npz"]


def test_files_written_by_numpy(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "a.npz", **ARRAYS)  # type: ignore[arg-type]
    assert np.array_equal(load_npz(tmp_path / "a.npz")["words"], ARRAYS["words"])
    np.save(tmp_path / "b.npy", ARRAYS["poses"])
    assert np.array_equal(load_npz(tmp_path / "b.npy")["b"], ARRAYS["poses"])


def test_same_arrays_give_the_same_bytes(tmp_path: Path) -> None:
    save_npz(tmp_path / "a.npz", ARRAYS)
    save_npz(tmp_path / "b.npz", dict(reversed(ARRAYS.items())))
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_a_level_is_kept_to(tmp_path):
    arrays = {"x": np.random.default_rng(1).normal(size=4000).round(1)}
    sizes = []
    for level in (1, 9):
        save_npz(tmp_path / "a.npz", arrays, compress=True, level=level)
        np.testing.assert_array_equal(np.load(tmp_path / "a.npz")["x"], arrays["x"])
        sizes.append((tmp_path / "a.npz").stat().st_size)
    assert sizes[1] < 0.97 * sizes[0]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_npz(path, {"x": np.arange(3)})
    with pytest.raises(MediaError, match="Python objects"):
        save_npz(path, {"x": np.arange(4), "y": np.array([object()])})
    assert len(load_npz(path)["x"]) == 3
    assert [p.name for p in tmp_path.iterdir()] == ["a.npz"]


def test_chosen_members_only(tmp_path: Path) -> None:
    archive(tmp_path / "a.npz", {"x.npy": npy(np.arange(3)), "bad.npy": b"not an array"})
    assert set(load_npz(tmp_path / "a.npz", members=["x"])) == {"x"}
    with pytest.raises(MediaError, match="holds no array 'y'; it has x"):
        load_npz(tmp_path / "a.npz", members=["x", "y"])


def test_pickles_are_never_loaded(tmp_path: Path) -> None:
    trap = np.array([Trap()], dtype=object)
    np.savez(tmp_path / "a.npz", x=trap)
    np.save(tmp_path / "b.npy", trap)
    (tmp_path / "c.npz").write_bytes(pickle.dumps(Trap()))
    for name in ("a.npz", "b.npy", "c.npz"):
        assert "pickled Python objects, which are never loaded" in refusal(tmp_path / name)
    np.save(tmp_path / "d.npy", np.zeros(2, dtype=[("x", "f4"), ("y", object)]))
    assert "never loaded" in refusal(tmp_path / "d.npy")


def test_bombs_are_refused_before_they_are_unpacked(tmp_path: Path) -> None:
    bomb = archive(tmp_path / "a.npz", {"x.npy": npy(np.zeros(5_000_000, np.uint8))}, zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 10_000
    assert "4.8 MiB unpacked, more than the 1.0 MiB allowed" in refusal(bomb, max_bytes=1 << 20)
    header = npy(np.zeros(3))[:128].replace(b"(3,), }     ", b"(1<<40,), } ").replace(b"1<<40", b"99999")
    archive(tmp_path / "b.npz", {"x.npy": header + bytes(24)})
    assert "should have 781.2 KiB but has 152 bytes" in refusal(tmp_path / "b.npz")
    many = archive(tmp_path / "c.npz", {f"{i}.npy": b"" for i in range(5000)})
    assert "5000 arrays, more than the 4096 allowed" in refusal(many)


def test_sizes_that_lie(tmp_path: Path) -> None:
    """A directory that announces less than the member unpacks to cannot make us read more."""
    path = archive(tmp_path / "a.npz", {"x.npy": npy(np.zeros(100_000))}, zipfile.ZIP_DEFLATED)
    data = bytearray(path.read_bytes())
    at = data.index(b"PK\x01\x02") + 24  # uncompressed size in the central directory
    data[at : at + 4] = struct.pack("<I", 500)
    path.write_bytes(data)
    assert "the archive is damaged" in refusal(path, max_bytes=1000)


@pytest.mark.parametrize(
    ("members", "expected"),
    [
        ({"readme.txt": b"hello"}, "is not an array"),
        ({"x\x1b.npy": npy(np.arange(2))}, "is not an array"),
        ({"x.npy": b"hello"}, "no readable header"),
        ({"x.npy": npy(np.arange(9))[:-8]}, "ends 8 bytes early; the file is truncated"),
        ({"x.npy": npy(np.zeros(2, dtype="datetime64[s]"))}, "save plain numbers"),
        ({"x.npy": npy(np.zeros(2, dtype=[("a", "f4")]))}, "save plain numbers"),
    ],
)
def test_members_that_are_not_arrays(tmp_path: Path, members: dict[str, bytes], expected: str) -> None:
    assert expected in refusal(archive(tmp_path / "a.npz", members))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_member_that_is_there_twice(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as made:
        for value in (1, 2):
            made.writestr("x.npy", npy(np.array(value)))
    assert "occurs twice" in refusal(tmp_path / "a.npz")


def test_files_that_are_not_archives(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    path.write_text("hello")
    assert "not an npz or npy file" in refusal(path)
    path.write_bytes(b"")
    assert "not an npz or npy file" in refusal(path)
    save_npz(path, ARRAYS)
    path.write_bytes(path.read_bytes()[:-50])
    assert "the archive is damaged" in refusal(path)
    assert "cannot be read (No such file" in refusal(tmp_path / "absent.npz")


def test_damaged_data_is_noticed(tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    save_npz(path, {"x": np.arange(100)})
    data = bytearray(path.read_bytes())
    data[600] ^= 255
    path.write_bytes(data)
    assert "the archive is damaged" in refusal(path)


def test_evidence_is_stored_bit_for_bit_however_it_is_coded(tmp_path: Path) -> None:
    """Half floats of few values become numbers of one or two bytes; pictures, which do not shrink, stay as they are."""
    rng = np.random.default_rng(3)
    more = (rng.integers(-140, 140, (70, 83)) / 256).astype(np.float16)
    few = (rng.integers(-90, 160, (3, 4, 5, 83)) / 256).astype(np.float16)
    odd = np.array([0.0, -0.0, np.nan, np.inf, 6e-8], np.float16)
    arrays = {
        "few": few.transpose(1, 0, 3, 2),
        "more": more,
        "odd": odd,
        "none": np.zeros((0, 7), np.float16),
        "one": np.float16(0.5)[()].reshape(()),
        "many": rng.normal(size=4000).astype(np.float16),
        "picture": rng.integers(0, 256, 40_000, dtype=np.uint8),
    }
    save_npz(tmp_path / "a.npz", palette_encode_float16_arrays(arrays), compress=True, level=1, seal=True)
    with zipfile.ZipFile(tmp_path / "a.npz") as archive:
        sizes = {member.filename: member.compress_size for member in archive.infolist()}
    assert sizes["few:codes.npy"] < few.size + 200 and sizes["picture.npy"] < 40_200 and "many.npy" in sizes
    assert len(np.unique(more)) > 256 and sizes["more:codes.npy"] + sizes["more:high.npy"] < 1.4 * more.size
    back = palette_decode_float16_arrays(load_npz(tmp_path / "a.npz"))
    assert back.keys() == arrays.keys()
    for name, array in arrays.items():
        assert back[name].dtype == array.dtype and back[name].shape == array.shape
        assert back[name].tobytes() == array.tobytes()
