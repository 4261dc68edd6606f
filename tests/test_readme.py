"""The README shows what its commands answer."""

import re
from pathlib import Path

import pytest
import torch

import whytube
from whytube.data.export import export_world
from whytube.search.masked import search_precision

TEXT = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_answer_shown_is_the_answer_given(tmp_path):
    (shown,) = re.findall(r"```text\n(.*?)\n```", TEXT, flags=re.DOTALL)
    assert "whytube data export --out dances --count 24 --size 224\n" in TEXT
    video = "dances/videos/gavotte/test_00004.mp4"
    assert f'whytube.explain("{video}", "demo", why_not="jive")' in TEXT
    export_world(tmp_path / "dances", count=24, size=224)
    demo = whytube.load_model("demo", device="cpu")
    given = whytube.explain(tmp_path / video, demo, why_not="jive")
    if search_precision(demo.classifier) != torch.bfloat16:
        pytest.skip("which tubes are found depends on the processor's half precision")
    number = re.compile(r"\d+")
    assert number.sub("", given.text) == number.sub("", shown), "the same words"
    assert [int(n) for n in number.findall(given.text)] == pytest.approx([int(n) for n in number.findall(shown)], abs=3)
