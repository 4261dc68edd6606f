"""The studies of words run on the embedded world as their help says."""

import json
import subprocess
import sys
from pathlib import Path

STUDIES = Path(__file__).parent.parent / "studies"


def test_words_about_short_tubes(tmp_path):
    out = tmp_path / "lengths.json"
    words = ["--data", "world", "--model", "demo", "--count", "2", "--out", str(out)]
    subprocess.run([sys.executable, str(STUDIES / "lengths.py"), *words], check=True, capture_output=True)
    told = json.loads(out.read_text())
    assert sum(half["clips"] for name, half in told["halves"].items() if name != "all") == 2
    said = told["halves"]["all"]["said, by origin"]
    assert said["tubes of words"]["count"] > 0
    assert said["tubes of words"]["right"] >= 0.5, "words find their places in the embedded world"
