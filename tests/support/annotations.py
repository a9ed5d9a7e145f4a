"""One small data set of every annotation format, all with the same objects.

Conventions
-----------
Images ``a.jpg`` (200 x 100) with a cat and a dog, and ``b.c.jpg`` (40 x 30) without an object. Forms without sizes
or empty images say so themselves.
"""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

__all__ = ["BOXES", "FORMATS", "example", "label_map", "record", "write"]

BOXES = [("cat", [10.0, 20.0, 110.0, 70.0]), ("dog", [30.5, 40.0, 50.5, 60.0])]
"""The objects of ``a.jpg`` as corners."""

_XYWH = [(name, [x1, y1, x2 - x1, y2 - y1]) for name, (x1, y1, x2, y2) in BOXES]


def _cvat(*scores: str) -> str:
    inner = [f'<attribute name="Score">{score}</attribute>' for score in scores or ("", "")]
    boxes = "".join(
        f'<box label="{name}" occluded="0" xtl="{x1}" ytl="{y1}" xbr="{x2}" ybr="{y2}" z_order="0">{of_box}</box>'
        for (name, (x1, y1, x2, y2)), of_box in zip(BOXES, inner, strict=True)
    )
    labels = "".join(f"<label><name>{name}</name></label>" for name in ("cat", "dog"))
    return (
        f'<?xml version="1.0" encoding="utf-8"?><annotations><version>1.1</version><meta><task><labels>{labels}'
        f'</labels></task></meta><image id="0" name="a.jpg" width="200" height="100">{boxes}</image>'
        '<image id="1" name="b.c.jpg" width="40" height="30"></image></annotations>'
    )


def _labelme(name: str, size: tuple[int, int], boxes: Any) -> Any:
    shapes = [
        {"label": label, "points": [[x2, y1], [x1, y2]], "shape_type": "rectangle", "flags": {}}
        for label, (x1, y1, x2, y2) in boxes
    ]
    head = {"version": "5.0", "flags": {}, "shapes": shapes, "imagePath": f"..\\images\\{name}"}
    return {**head, "imageData": "QUJD" * 50, "imageHeight": size[1], "imageWidth": size[0]}


def _via() -> Any:
    regions = [
        {
            "shape_attributes": {"name": "rect", "x": x, "y": y, "width": w, "height": h},
            "region_attributes": {"kind": name},
        }
        for name, (x, y, w, h) in _XYWH
    ]
    return {
        "a.jpg123": {"filename": "a.jpg", "size": 123, "regions": regions, "file_attributes": {}},
        "b.c.jpg9": {"filename": "b.c.jpg", "size": 9, "regions": [], "file_attributes": {}},
    }


def _labelstudio() -> Any:
    results = [
        {
            "original_width": 200,
            "original_height": 100,
            "image_rotation": 0,
            "value": {
                "x": x / 2,
                "y": y,
                "width": w / 2,
                "height": h,
                "rotation": 0,
                "rectanglelabels": [name],
            },
            "id": name,
            "from_name": "label",
            "to_name": "image",
            "type": "rectanglelabels",
        }
        for name, (x, y, w, h) in _XYWH
    ]
    scored = [{**result, "score": 0.5 + number / 4} for number, result in enumerate(results)]
    return [
        {
            "id": 1,
            "annotations": [{"id": 7, "completed_by": 1, "result": results, "was_cancelled": False}],
            "predictions": [{"result": scored, "model_version": "x"}],
            "file_upload": "0123abcd-a.jpg",
            "data": {"image": "/data/upload/1/0123abcd-a.jpg"},
        },
        {"id": 2, "annotations": [], "predictions": [], "data": {"image": "/data/upload/1/89abcdef-b.c.jpg"}},
    ]


def _labelstudio_minimal() -> Any:
    regions = [
        {"x": x / 2, "y": y, "width": w / 2, "height": h, "rotation": 0, "rectanglelabels": [name]}
        | {"original_width": 200, "original_height": 100}
        for name, (x, y, w, h) in _XYWH
    ]
    first = {"image": "/data/upload/1/0123abcd-a.jpg", "id": 1, "label": regions, "annotator": 1}
    return [first, {"image": "/data/upload/1/89abcdef-b.c.jpg", "id": 2, "annotator": 1}]


def _datumaro() -> Any:
    annotations = [
        {
            "id": n,
            "type": "bbox",
            "attributes": {"score": 0.5 + n / 4},
            "label_id": n,
            "bbox": box,
            "z_order": 0,
        }
        for n, (_, box) in enumerate(_XYWH)
    ]
    labels = [{"name": name, "parent": "", "attributes": []} for name in ("cat", "dog")]
    return {
        "info": {},
        "categories": {"label": {"labels": labels, "attributes": []}},
        "items": [
            {"id": "a", "annotations": annotations, "image": {"path": "a.jpg", "size": [100, 200]}},
            {"id": "b.c", "annotations": [], "image": {"path": "b.c.jpg", "size": [30, 40]}},
        ],
    }


def _supervisely(size: tuple[int, int], boxes: Any) -> Any:
    objects = [
        {
            "classTitle": name,
            "geometryType": "rectangle",
            "points": {"exterior": [[x1, y1], [x2 - 1, y2 - 1]], "interior": []},
        }
        for name, (x1, y1, x2, y2) in boxes
    ]
    return {"description": "", "tags": [], "size": {"height": size[1], "width": size[0]}, "objects": objects}


def _sagemaker() -> str:
    boxes = [
        {"class_id": n, "left": x, "top": y, "width": w, "height": h}
        for n, (_, (x, y, w, h)) in enumerate(_XYWH)
    ]
    size = {"width": 200, "height": 100, "depth": 3}
    meta = {
        "objects": [{"confidence": 0.9}] * 2,
        "class-map": {"0": "cat", "1": "dog"},
        "type": "groundtruth/x",
    }
    first = {"source-ref": "s3://bucket/x/a.jpg", "my-job": {"annotations": boxes, "image_size": [size]}}
    second = {
        "source-ref": "s3://bucket/x/b.c.jpg",
        "my-job": {"annotations": [], "image_size": [{"width": 40, "height": 30}]},
        "my-job-metadata": {"class-map": {}},
    }
    return f"{json.dumps({**first, 'my-job-metadata': meta})}\n{json.dumps(second)}\n"


def _createml() -> Any:
    annotations = [
        {"label": name, "coordinates": {"x": x + w / 2, "y": y + h / 2, "width": w, "height": h}}
        for name, (x, y, w, h) in _XYWH
    ]
    return [{"image": "a.jpg", "annotations": annotations}, {"image": "b.c.jpg", "annotations": []}]


def _fiftyone() -> Any:
    detections = [
        {"_cls": "Detection", "label": name, "bounding_box": [x / 200, y / 100, w / 200, h / 100], "tags": []}
        for name, (x, y, w, h) in _XYWH
    ]
    return {
        "samples": [
            {
                "filepath": f"data/{name}",
                "metadata": {"_cls": "ImageMetadata", "width": width, "height": height},
                "ground_truth": {"_cls": "Detections", "detections": own},
            }
            for name, width, height, own in (("a.jpg", 200, 100, detections), ("b.c.jpg", 40, 30, []))
        ]
    }


def _bdd() -> Any:
    labels = [
        {"category": name, "box2d": dict(zip(("x1", "y1", "x2", "y2"), box, strict=True)), "score": 0.5}
        for name, box in BOXES
    ]
    return [{"name": "a.jpg", "labels": labels}, {"name": "b.c.jpg", "labels": None}]


def _vott() -> Any:
    regions = [
        {"id": name, "tags": [name], "boundingBox": {"left": x, "top": y, "width": w, "height": h}}
        for name, (x, y, w, h) in _XYWH
    ]
    assets = {
        "0": {"asset": {"name": "a.jpg", "size": {"width": 200, "height": 100}}, "regions": regions},
        "1": {"asset": {"name": "b.c.jpg", "size": {"width": 40, "height": 30}}, "regions": []},
    }
    return {"name": "x", "tags": [{"name": "cat"}, {"name": "dog"}], "assets": assets}


_FRACTIONS = [(name, [x1 / 200, y1 / 100, x2 / 200, y2 / 100]) for name, (x1, y1, x2, y2) in BOXES]


def _vertex() -> str:
    """Zeros may be missing in Google's JSON; here nothing is."""
    sides = ("xMin", "yMin", "xMax", "yMax")
    boxes = [{"displayName": name, **dict(zip(sides, box, strict=True))} for name, box in _FRACTIONS]
    lines = [
        {"imageGcsUri": f"gs://bucket/{name}", "boundingBoxAnnotations": own}
        for name, own in (("a.jpg", boxes), ("b.c.jpg", []))
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _vertex_predictions() -> str:
    """Both x come before both y."""
    names = [name for name, _ in _FRACTIONS]
    boxes = [[x1, x2, y1, y2] for _, (x1, y1, x2, y2) in _FRACTIONS]
    empty: dict[str, Any] = {"displayNames": [], "confidences": [], "bboxes": []}
    found = {"displayNames": names, "confidences": [0.5, 0.75], "bboxes": boxes}
    lines = [
        {"instance": {"content": f"gs://bucket/{name}"}, "prediction": own}
        for name, own in (("a.jpg", found), ("b.c.jpg", empty))
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _automl() -> str:
    (cat, (x1, y1, x2, y2)), (dog, (u1, v1, u2, v2)) = _FRACTIONS
    return (
        f"TEST,gs://bucket/a.jpg,{cat},{x1},{y1},,,{x2},{y2},,\n"
        f"TEST,gs://bucket/a.jpg,{dog},{u1},{v1},{u2},{v1},{u2},{v2},{u1},{v2}\n"
        "TEST,gs://bucket/b.c.jpg,,,,,,,,,\n"
    )


def _via_csv() -> str:
    lines = [
        "filename,file_size,file_attributes,region_count,region_id,region_shape_attributes,region_attributes"
    ]
    for number, (name, (x, y, w, h)) in enumerate(_XYWH):
        shape = json.dumps({"name": "rect", "x": x, "y": y, "width": w, "height": h}).replace('"', '""')
        lines.append(f'a.jpg,123,"{{}}",2,{number},"{shape}","{{""kind"":""{name}""}}"')
    return "\n".join([*lines, 'b.c.jpg,9,"{}",0,0,"{}","{}"', ""])


def _ibm() -> Any:
    boxes = [
        {"x": x1, "y": y1, "x2": x2, "y2": y2, "id": name, "label": name}
        for name, (x1, y1, x2, y2) in _FRACTIONS
    ]
    annotations = {"a.jpg": boxes, "b.c.jpg": []}
    return {"version": "1.0", "type": "localization", "labels": ["cat", "dog"], "annotations": annotations}


def _edgeimpulse() -> Any:
    boxes = [{"label": name, "x": x, "y": y, "width": w, "height": h} for name, (x, y, w, h) in _XYWH]
    return {"version": 1, "type": "bounding-box-labels", "boundingBoxes": {"a.jpg": boxes, "b.c.jpg": []}}


def _edgeimpulse_files() -> Any:
    files = [
        {
            "path": name,
            "category": "testing",
            "label": {"type": "label", "label": name},
            "boundingBoxes": boxes,
        }
        for name, boxes in _edgeimpulse()["boundingBoxes"].items()
    ]
    return {"version": 1, "files": files}


def _unity() -> Any:
    """Keypoints of the same capture have no size."""
    boxes = [
        {"label_id": number, "label_name": name, "x": x, "y": y, "width": w, "height": h}
        for number, (name, (x, y, w, h)) in enumerate(_XYWH, start=1)
    ]
    others = {"annotation_definition": "p", "values": [{"label_id": 1, "keypoints": [{"x": 0, "y": 0}]}]}
    captures = [
        {
            "sensor": {"modality": "camera"},
            "filename": f"RGB0/{name}",
            "annotations": [{"annotation_definition": "b", "values": own}, others],
        }
        for name, own in (("a.jpg", boxes), ("b.c.jpg", []))
    ]
    return {"version": "0.0.1", "captures": captures}


def _unity_classes() -> Any:
    spec = [{"label_id": number, "label_name": name} for number, (name, _) in enumerate(BOXES, start=1)]
    other = {"id": "p", "name": "keypoints", "spec": [{"template_id": "x", "key_points": []}]}
    return {"annotation_definitions": [{"id": "b", "name": "bounding box", "spec": spec}, other]}


def _odvg() -> str:
    boxes = [{"bbox": box, "label": number, "category": name} for number, (name, box) in enumerate(BOXES)]
    lines = [
        {"filename": name, "width": width, "height": height, "detection": {"instances": own}}
        for name, width, height, own in (("a.jpg", 200, 100, boxes), ("b.c.jpg", 40, 30, []))
    ]
    return "".join(f"{json.dumps(line)}\n" for line in lines)


def _openlabel() -> Any:
    frames = {
        str(number): {
            "frame_properties": {"file_name": name, "width": width, "height": height},
            "objects": {
                label: {"object_data": {"bbox": [{"name": "shape", "val": [x + w / 2, y + h / 2, w, h]}]}}
                for label, (x, y, w, h) in own
            },
        }
        for number, (name, width, height, own) in enumerate(
            [("a.jpg", 200, 100, _XYWH), ("b.c.jpg", 40, 30, [])]
        )
    }
    objects = {name: {"name": f"one {name}", "type": name} for name, _ in BOXES}
    return {"openlabel": {"metadata": {"schema_version": "1.0.0"}, "objects": objects, "frames": frames}}


def _keras() -> dict[str, str]:
    boxes = " ".join(f"{','.join(map(str, box))},{number}" for number, (_, box) in enumerate(BOXES))
    return {"k/train.txt": f"C:\\images\\a.jpg {boxes}\n/data/b.c.jpg\n", "k/classes.txt": "cat\ndog\n"}


def _field(number: int, content: bytes) -> bytes:
    length, size = b"", len(content)
    while size > 0x7F:
        length += bytes([size & 0x7F | 0x80])
        size >>= 7
    return bytes([number << 3 | 2]) + length + bytes([size]) + content


def example(features: dict[str, Any]) -> bytes:
    """Return a ``tf.train.Example``: floats, whole numbers or bytes by name."""
    entries = b""
    for name, values in features.items():
        if isinstance(values[0] if values else b"", bytes):
            inner = _field(1, b"".join(_field(1, value) for value in values))
        elif isinstance(values[0], float):
            inner = _field(2, _field(1, struct.pack(f"<{len(values)}f", *values)))
        else:
            inner = _field(3, b"".join(b"\x08" + _varint(value) for value in values))
        entries += _field(1, _field(1, name.encode()) + _field(2, inner))
    return _field(1, entries)


def _varint(value: int) -> bytes:
    text = b""
    while value > 0x7F:
        text += bytes([value & 0x7F | 0x80])
        value >>= 7
    return text + bytes([value])


def record(content: bytes) -> bytes:
    """Return a record of a TFRecord file, with checksums of 0."""
    return struct.pack("<Q", len(content)) + bytes(4) + content + bytes(4)


def _tfrecord() -> bytes:
    sides = {
        f"image/object/bbox/{side}": [box[column] / extent for _, box in BOXES]
        for column, (side, extent) in enumerate((("xmin", 200), ("ymin", 100), ("xmax", 200), ("ymax", 100)))
    }
    first: dict[str, Any] = {"image/filename": [b"a.jpg"], "image/width": [200], "image/height": [100]}
    labels = {"image/object/class/label": [1, 2], "image/object/class/text": [b"cat", b"dog"]}
    second: dict[str, Any] = {"image/filename": [b"b.c.jpg"], "image/width": [40], "image/height": [30]}
    return record(example({**first, **sides, **labels, "image/encoded": [b"x" * 99]})) + record(
        example(second)
    )


label_map = "item {\n  id: 1\n  name: 'cat'\n}\nitem {\n  id: 2\n  name: \"dog\"\n}\n"


def _text() -> dict[str, str]:
    lines = "".join(f"{name} {' '.join(map(str, box))}\n" for name, box in BOXES)
    return {"t/a.txt": lines.replace("\n", " difficult\n", 1), "t/b.c.txt": ""}


def _lines(records: list[Any]) -> str:
    return "".join(f"{json.dumps(record)}\n" for record in records)


def _ndjson() -> str:
    head = {"type": "dataset", "task": "detect", "name": "x", "class_names": {"0": "cat", "1": "dog"}}
    boxes = [
        [n, (x + w / 2) / 200, (y + h / 2) / 100, w / 200, h / 100]
        for n, (_, (x, y, w, h)) in enumerate(_XYWH)
    ]
    first = {"type": "image", "file": "a.jpg", "url": "https://x/1.jpg?b=c", "width": 200, "height": 100}
    second = {"type": "image", "file": "b.c.jpg", "width": 40, "height": 30, "split": "val"}
    return _lines([head, {**first, "split": "val", "annotations": {"boxes": boxes}}, second])


def _labelbox_boxes() -> list[Any]:
    return [
        {"name": name, "value": f"{name}_", "box": {"top": y, "left": x, "height": h, "width": w}}
        for name, (x, y, w, h) in _XYWH
    ]


def _labelbox() -> str:
    objects = [
        {"name": one["name"], "value": one["value"], "annotation_kind": "ImageBoundingBox"}
        | {"bounding_box": one["box"]}
        for one in _labelbox_boxes()
    ]
    return _lines(
        [
            {
                "data_row": {"id": f"r{n}", "external_id": name, "global_key": f"g{n}"},
                "media_attributes": {"width": width, "height": height, "mime_type": "image/jpeg"},
                "projects": {"p": {"labels": [{"annotations": {"objects": own, "classifications": []}}]}},
            }
            for n, (name, width, height, own) in enumerate(
                [("a.jpg", 200, 100, objects), ("b.c.jpg", 40, 30, [])]
            )
        ]
    )


def _labelbox_first() -> Any:
    objects = [{"title": one["name"], "bbox": one["box"]} for one in _labelbox_boxes()]
    return [
        {"ID": "1", "Labeled Data": "https://x/y/a.jpg?Signature=z", "Label": {"objects": objects}},
        {"ID": "2", "Labeled Data": "https://x/y", "External ID": "b.c.jpg", "Label": {"objects": []}},
    ]


def _darwin(name: str, size: tuple[int, int], boxes: Any, *, first: bool = False) -> Any:
    annotations = [
        {"name": label, "bounding_box": {"x": x1, "y": y1, "w": x2 - x1, "h": y2 - y1}, "slot_names": ["0"]}
        | {"inference": {"confidence": 0.5 + n / 4}}
        for n, (label, (x1, y1, x2, y2)) in enumerate(boxes)
    ]
    sides = {"width": size[0], "height": size[1]}
    if first:
        image = {"filename": name, "original_filename": f"0-{name}", "path": "/x", **sides}
        return {"dataset": "x", "image": image, "annotations": annotations}
    item = {"name": name, "path": "/", "slots": [{"slot_name": "0", "type": "image", **sides}]}
    return {"version": "2.0", "item": item, "annotations": annotations}


def _superannotate(name: str, size: tuple[int, int], boxes: Any) -> Any:
    instances = [
        {"type": "bbox", "className": label, "classId": n, "probability": 100}
        | {"points": {"x1": x1, "x2": x2, "y1": y1, "y2": y2}}
        for n, (label, (x1, y1, x2, y2)) in enumerate(boxes)
    ]
    metadata = {"name": name, "width": size[0], "height": size[1], "status": "Completed"}
    return {"metadata": metadata, "instances": instances, "tags": [], "comments": []}


def _scale() -> Any:
    annotations = [
        {"type": "box", "label": name, "left": x, "top": y, "width": w, "height": h}
        for name, (x, y, w, h) in _XYWH
    ]
    return [
        {"task_id": name, "status": "completed", "params": {"attachment": f"https://x/y/{name}"}}
        | {"response": {"annotations": own}}
        for name, own in (("a.jpg", annotations), ("b.c.jpg", []))
    ]


def _dump(content: Any) -> str:
    return json.dumps(content)


FORMATS: dict[str, tuple[str, dict[str, str | bytes]]] = {
    "cvat": ("cvat.xml", {"cvat.xml": _cvat()}),
    "cvat predictions": ("predictions.xml", {"predictions.xml": _cvat("0.5", "0.75")}),
    "labelme": (
        "l",
        {
            "l/a.json": _dump(_labelme("a.jpg", (200, 100), BOXES)),
            "l/b.json": _dump(_labelme("b.c.jpg", (40, 30), [])),
        },
    ),
    "via": ("via.json", {"via.json": _dump(_via())}),
    "labelstudio": ("ls.json", {"ls.json": _dump(_labelstudio())}),
    "labelstudio minimal": ("lsm.json", {"lsm.json": _dump(_labelstudio_minimal())}),
    "datumaro": ("datumaro.json", {"datumaro.json": _dump(_datumaro())}),
    "supervisely": (
        "s",
        {
            "s/meta.json": _dump({"classes": [{"title": "cat"}, {"title": "dog"}], "tags": []}),
            "s/ds/ann/a.jpg.json": _dump(_supervisely((200, 100), BOXES)),
            "s/ds/ann/b.c.jpg.json": _dump(_supervisely((40, 30), [])),
        },
    ),
    "sagemaker": ("output.manifest", {"output.manifest": _sagemaker()}),
    "createml": ("createml.json", {"createml.json": _dump(_createml())}),
    "fiftyone": ("samples.json", {"samples.json": _dump(_fiftyone())}),
    "bdd": ("bdd.json", {"bdd.json": _dump(_bdd())}),
    "vott": ("vott.json", {"vott.json": _dump(_vott())}),
    "ndjson": ("data.ndjson", {"data.ndjson": _ndjson()}),
    "labelbox": ("export.ndjson", {"export.ndjson": _labelbox()}),
    "labelbox first": ("first.json", {"first.json": _dump(_labelbox_first())}),
    "darwin": (
        "d",
        {
            "d/a.json": _dump(_darwin("a.jpg", (200, 100), BOXES)),
            "d/b.json": _dump(_darwin("b.c.jpg", (40, 30), [])),
        },
    ),
    "darwin first": (
        "d1",
        {
            "d1/a.json": _dump(_darwin("a.jpg", (200, 100), BOXES, first=True)),
            "d1/b.json": _dump(_darwin("b.c.jpg", (40, 30), [], first=True)),
        },
    ),
    "superannotate": (
        "sa",
        {
            "sa/a.jpg.json": _dump(_superannotate("a.jpg", (200, 100), BOXES)),
            "sa/b.c.jpg.json": _dump(_superannotate("b.c.jpg", (40, 30), [])),
            "sa/classes/classes.json": _dump([{"id": 0, "name": "cat"}, {"id": 1, "name": "dog"}]),
        },
    ),
    "scale": ("tasks.json", {"tasks.json": _dump(_scale())}),
    "tfrecord": ("tf", {"tf/x.tfrecord": _tfrecord(), "tf/label_map.pbtxt": label_map}),
    "text": ("t", dict(_text())),
    "via csv": ("via.csv", {"via.csv": _via_csv()}),
    "vertex": ("vertex.jsonl", {"vertex.jsonl": _vertex()}),
    "vertex predictions": ("predictions.jsonl", {"predictions.jsonl": _vertex_predictions()}),
    "vertex csv": ("automl.csv", {"automl.csv": _automl()}),
    "keras": ("k/train.txt", dict(_keras())),
    "ibm": ("_annotations.json", {"_annotations.json": _dump(_ibm())}),
    "edgeimpulse": ("bounding_boxes.labels", {"bounding_boxes.labels": _dump(_edgeimpulse())}),
    "edgeimpulse files": ("info.labels", {"info.labels": _dump(_edgeimpulse_files())}),
    "unity": (
        "u",
        {"u/captures_000.json": _dump(_unity()), "u/annotation_definitions.json": _dump(_unity_classes())},
    ),
    "odvg": ("odvg.jsonl", {"odvg.jsonl": _odvg()}),
    "openlabel": ("openlabel.json", {"openlabel.json": _dump(_openlabel())}),
}
"""Path and files of each format; the first word is its name."""


def write(folder: Path, name: str) -> Path:
    """Write the data set in a format and return its path."""
    path, files = FORMATS[name]
    for file, content in files.items():
        target = folder / file
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content.encode("utf-8") if isinstance(content, str) else content)
    return folder / path
