import io

from rich.console import Console

import whytube
from whytube.demo import draw, planted_volume


def test_the_planted_tube_is_found_and_drawn():
    for seed in range(5):
        scores, planted = planted_volume(seed)
        found = whytube.max_subpath(scores)
        inside = planted[:, 0] >= 0
        assert (found.cells[inside] == planted[inside]).all(1).float().mean() > 0.7
    out = io.StringIO()
    draw(scores, found, planted, Console(file=out, width=100))
    assert out.getvalue().count("█") == int(found.stop - found.start)
    assert "planted cells" in out.getvalue()
