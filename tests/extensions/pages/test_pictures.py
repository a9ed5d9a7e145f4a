"""Pictures are made small while they are read: a small file may hold very many pixels."""

from __future__ import annotations

import base64
import io
import os
import struct
import subprocess
import sys
import zlib
from pathlib import Path

import numpy as np
import pytest

import boxscore
from boxscore.data.vocabulary import Images
from boxscore.extensions.pages.pictures import CROP_SIDE, embed_crop, read_picture
from boxscore.extensions.pages.plots import boxes

image_module = pytest.importorskip("PIL.Image")
pytest.importorskip("matplotlib")


def save(path: Path, width: int, height: int, mode: str = "RGB") -> Path:
    bands = {"L": 1, "P": 1, "RGB": 3, "RGBA": 4}[mode]
    shape = (height, width) if bands == 1 else (height, width, bands)
    picture = image_module.fromarray(np.random.default_rng(0).integers(0, 255, shape, dtype=np.uint8))
    picture.convert(mode).save(path)
    return path


def png_of(path: Path, width: int, height: int) -> Path:
    """Write a PNG of very many black pixels, some kilobytes long."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    deflate = zlib.compressobj(9)
    row = bytes(1 + (width + 7) // 8)
    data = b"".join(deflate.compress(row) for _ in range(height)) + deflate.flush()
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b""))
    return path


@pytest.mark.parametrize("mode", ["L", "P", "RGB", "RGBA"])
@pytest.mark.parametrize(("width", "height"), [(90, 41), (41, 90), (64, 64)])
def test_strips_give_the_picture_that_the_whole_gives(
    mode: str, width: int, height: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "a.png", width, height, mode)
    whole, size = read_picture(path, 10)
    assert (whole.size, size) == ((width, height), (width, height))
    monkeypatch.setattr("boxscore.extensions.pages.pictures.PIXELS_AT_ONCE", 1000)
    small, size = read_picture(path, 10)
    factor = max(width, height) // 10
    assert size == (width, height)
    assert small.tobytes() == whole.reduce(factor).tobytes()


def test_a_picture_of_more_pixels_than_pillow_reads(tmp_path: Path) -> None:
    path = png_of(tmp_path / "a.png", 20_000, 20)
    path.write_bytes(
        path.read_bytes().replace(struct.pack(">II", 20_000, 20), struct.pack(">II", 20_000, 20_000))
    )
    with pytest.raises(boxscore.InputError, match=r"a.png: cannot be read as an image: .*pixels"):
        read_picture(path, 100)


def test_a_large_picture_is_drawn_small_at_its_own_size(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(boxes, "LONGEST_SIDE", 20)
    truth = boxscore.GroundTruth.from_arrays([1], [1], [[10, 10, 50, 30]])
    path = save(tmp_path / "a.png", 120, 80)
    for picture in (path, np.zeros((80, 120, 3), np.uint8), np.zeros((80, 120))):
        axes = boxscore.extensions.pages.plots.boxes.draw_boxes(picture, truth).axes[0]
        assert (axes.get_xlim(), axes.get_ylim()) == ((0, 120), (80, 0))
        assert axes.images[0].get_array().shape[:2] == (14, 20)


@pytest.mark.slow
def test_a_small_file_of_very_many_pixels(tmp_path: Path) -> None:
    """13,000 x 13,000: 8 GB as the floating-point colors of a figure."""
    png_of(tmp_path / "a.png", 13_000, 13_000)
    program = (
        "import resource, boxscore\n"
        "from boxscore.extensions.pages.plots.boxes import draw_boxes\n"
        "truth = boxscore.GroundTruth.from_arrays([1], [1], [[10, 10, 5000, 3000]])\n"
        "draw_boxes('a.png', truth).savefig('b.png')\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "MPLBACKEND": "Agg"}
    done = subprocess.run(  # in a process of its own: the peak of this one is that of other tests
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    assert int(done.stdout) < 1_500_000


def test_a_folder_without_the_images_is_refused(tmp_path: Path) -> None:
    boxes = [[0, 0, 9, 9]] * 2
    images = boxscore.data.vocabulary.Images.build([1, 2], file_names=["a.png", "b.png"])
    truth = boxscore.GroundTruth.from_arrays([1, 2], [1, 1], boxes, images=images)
    result = boxscore.evaluate(truth, boxscore.Detections.from_arrays([], [], [], []))
    folder, out = tmp_path / "data" / "images", tmp_path / "out"
    (folder / "train").mkdir(parents=True)

    def message() -> str:
        with pytest.raises(boxscore.InputError) as refused:
            result.report(out, image_folder=folder, resamples=0)
        assert not out.exists()
        return str(refused.value)

    start = (
        f"the image folder must contain the images. Got none of 2 (for example 'a.png') in {str(folder)!r}; "
    )
    assert message() == f"{start}the folder contains no images."
    save(folder / "x.png", 8, 8)
    assert message() == f"{start}do these images belong to another data set, or were they renamed?"
    save(tmp_path / "data" / "b.png", 8, 8)
    assert message() == f"{start}the images are in {str(tmp_path / 'data')!r}."
    save(folder / "train" / "b.png", 8, 8)
    assert message() == f"{start}the images are in {str(folder / 'train')!r}."
    save(folder / "a.png", 8, 8)  # one of them is enough: the other is a blank frame
    result.report(out, image_folder=folder, resamples=0)
    assert "1 of these images was not found in the image folder" in (out / "report.html").read_text()


@pytest.mark.parametrize("scale", [0.5, 1, 4])
def test_a_crop_is_the_part_of_the_picture_whatever_its_size(tmp_path: Path, scale: float) -> None:
    """The stated size is 400 x 300; a square of it is red, and the file is smaller or larger."""
    pixels = np.zeros((round(300 * scale), round(400 * scale), 3), dtype=np.uint8)
    left, top, side = (round(number * scale) for number in (120, 80, 100))
    pixels[top : top + side, left : left + side, 0] = 255
    image_module.fromarray(pixels).save(tmp_path / "a.png")
    (tmp_path / "b.png").write_bytes(b"no picture")
    images = Images.build([1, 2, 3], file_names=["a.png", "b.png", "none.png"], sizes=[[400, 300]] * 3)
    truth = boxscore.GroundTruth.from_arrays([1], ["x"], [[120, 80, 220, 180]], images=images)
    result = boxscore.evaluate(
        truth, boxscore.Detections.from_arrays([1], ["x"], [[120, 80, 220, 180]], [0.5], images=images)
    )

    def cropped(row: int, *part: float) -> np.ndarray | None:
        address = embed_crop(result, row, part, (400, 300), tmp_path)  # type: ignore[arg-type]
        if address is None:
            return None
        data = base64.b64decode(address.removeprefix("data:image/jpeg;base64,"))
        return np.asarray(image_module.open(io.BytesIO(data)), dtype=float)

    red = cropped(0, 124, 84, 90, 90)
    assert red is not None
    assert red.shape[0] == red.shape[1] == min(round(90 * scale), CROP_SIDE)
    assert red[..., 0].min() > 200
    assert red[..., 1:].max() < 60
    around = cropped(0, 70, 30, 200, 200)
    assert around is not None
    assert around[..., 0].mean() == pytest.approx(255 / 4, abs=4)
    assert cropped(1, 0, 0, 10, 10) is None
    assert cropped(2, 0, 0, 10, 10) is None
