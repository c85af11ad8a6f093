"""Arrays from a file that anyone may have made."""

from __future__ import annotations

import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from gpal.errors import InputError
from gpal.files.npz import FLOOR, RATIO, json_text, read_npz, write_npz

MEGABYTE = 1 << 20


def read(path, texts=()):
    return read_npz(path, "a file of the tests", "make it again", texts)


def header(shape, dtype="<f8") -> bytes:
    stream = io.BytesIO()
    about = {"descr": dtype, "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(stream, about)
    return stream.getvalue()


def archive(path, entries: dict[str, bytes], zeros: int = 0) -> None:
    """A zip archive; every entry is followed by that many zeros."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as out:
        for name, content in entries.items():
            with out.open(name, "w", force_zip64=True) as stream:
                stream.write(content)
                for _ in range(zeros // MEGABYTE):
                    stream.write(bytes(MEGABYTE))


def test_what_was_written_is_read(tmp_path):
    arrays = {
        "real": np.array([[1.0, np.nan], [-np.inf, 0.0]]),
        "column": np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        "count": np.arange(3),
        "mask": np.array([True, False]),
        "text": np.array(["", "αβ"]),
        "one": np.array("{}"),
        "none": np.zeros((0, 4)),
    }
    write_npz(tmp_path / "a.npz", arrays, {"note.txt": "made by the tests"})
    found = read(tmp_path / "a.npz", ["note.txt"])
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        np.testing.assert_array_equal(found[name], array)
        assert found[name].dtype == array.dtype
    assert [file.name for file in tmp_path.iterdir()] == ["a.npz"]
    with pytest.raises(InputError, match=r"'note.txt' is no array\); make it again"):
        read(tmp_path / "a.npz")


def test_a_small_file_does_not_become_a_large_one_in_memory(tmp_path):
    """1 MB of archive that holds 1 GB of zeros."""
    count = 1 << 27
    archive(tmp_path / "bomb.npz", {"a.npy": header((count,))}, zeros=8 * count)
    size = (tmp_path / "bomb.npz").stat().st_size
    assert 0.9 * MEGABYTE < size < 1.2 * MEGABYTE
    tracemalloc.start()
    with pytest.raises(InputError, match=f"{size} bytes claim to hold more than"):
        read(tmp_path / "bomb.npz")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < MEGABYTE


def test_our_own_files_are_read_however_well_they_compress(tmp_path):
    zeros = np.zeros(2 * FLOOR // 8)
    write_npz(tmp_path / "zeros.npz", {"zeros": zeros})
    assert (tmp_path / "zeros.npz").stat().st_size > FLOOR  # not 1/1000 of it, which is refused
    np.testing.assert_array_equal(read(tmp_path / "zeros.npz")["zeros"], zeros)
    noise = np.random.default_rng(0).normal(size=2 * FLOOR // 8 // RATIO)
    write_npz(tmp_path / "mixed.npz", {"zeros": zeros, "noise": noise})
    assert (tmp_path / "mixed.npz").stat().st_size < FLOOR  # in proportion: compressed
    assert len(read(tmp_path / "mixed.npz")["zeros"]) == len(zeros)


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        ({"a.npy": header((1000, 1000)) + bytes(80)}, "'a.npy' is not of the size that its shape"),
        ({"a.npy": header((2,)) + bytes(80)}, "'a.npy' is not of the size that its shape has"),
        ({"a.npy": header((-1, -10)) + bytes(80)}, "shape"),
        ({"a.npy": header((10**15,), "<U0")}, "an array of <U0"),
        ({"a.npy": header((1,), "|O") + bytes(8)}, "an array of object"),
        ({"a.npy": header((1,), "<M8[s]") + bytes(8)}, "an array of datetime"),
        ({"a.npy": b"\x93NUMPY\x03\x00"}, "is not a file of the tests or is damaged"),
        ({"a.npy": b"x = 1"}, "is not a file of the tests or is damaged"),
        ({"a.txt": b"x = 1"}, "'a.txt' is no array"),
    ],
)
def test_entries_that_are_no_plain_arrays_are_refused(tmp_path, entries, message):
    archive(tmp_path / "a.npz", entries)
    with pytest.raises(InputError, match=message):
        read(tmp_path / "a.npz")


def test_a_size_that_the_archive_is_wrong_about(tmp_path):
    """The directory says that 1 MB of zeros are 80 bytes, as does the array's header."""
    path, content = tmp_path / "a.npz", header((10,))
    archive(path, {"a.npy": content}, zeros=MEGABYTE)
    true, claimed = ((len(content) + size).to_bytes(4, "little") for size in (MEGABYTE, 80))
    path.write_bytes(path.read_bytes().replace(true, claimed))
    with pytest.raises(InputError, match="make it again"):
        read(path)


def test_two_entries_of_one_name_are_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as out, pytest.warns(UserWarning):
        for value in (1.0, 2.0):
            out.writestr("a.npy", header((1,)) + np.float64(value).tobytes())
    with pytest.raises(InputError, match="two entries of one name"):
        read(tmp_path / "a.npz")


def test_a_file_that_is_not_there_or_no_archive(tmp_path):
    with pytest.raises(InputError, match=r"cannot read .*No such file or directory; make it again"):
        read(tmp_path / "a.npz")
    (tmp_path / "a.npz").write_bytes(b"")
    with pytest.raises(InputError, match=r"is damaged \(File is not a zip file\); make it again"):
        read(tmp_path / "a.npz")


@pytest.mark.parametrize("text", ["[" * 100_000, "{", "NaN x"])
def test_a_text_that_is_no_json(text):
    with pytest.raises(ValueError):
        json_text(np.array(text))
    with pytest.raises(ValueError):
        json_text(np.array([1.0]))
