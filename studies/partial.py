"""Write the results of an evaluation that ended early: those of the clips that were judged, from its saved state.

python studies/partial.py STATE.part.safetensors --model jhmdb-i3d --data jhmdb-1 --commit C --device NAME --out FILE

Several states are put together: one evaluation whose clips were shared among processes, a folder of data for each. A
state does not hold commit and device. They are told here, and the results say that they were.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.evaluation.state import KIND, State, Tally
from whytube.evaluation.suite import summed_up
from whytube.models import load_classifier
from whytube.models.stored import read_header

if TYPE_CHECKING:
    from collections.abc import Sequence

SETTINGS = ("data", "split", "negatives", "k", "fills", "seen_fills", "area")


def main() -> None:
    """Read the command line, sum up, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("states", type=Path, nargs="+", metavar="STATE")
    for name in ("model", "data", "commit", "device"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--note", action="append", default=[], help="what else a reader must know; may be given again")
    parser.add_argument("--effort", type=int, help="tubes tried, if it is to be told")
    parser.add_argument("--fit-weight", type=float, help="weight of the fit, if it is to be told")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    found, run, clips = _read(given.states)
    done = f"ended after {found.done} of {clips} clips" if found.done < clips else f"of all {clips} clips"
    parts = f", in {len(given.states)} parts" if len(given.states) > 1 else ""
    told = f"The evaluation {done}{parts}; commit and device were told, not recorded."
    search = {"effort": given.effort, "fit_weight": given.fit_weight}
    origin = {
        "commit": given.commit,
        "device": given.device,
        "seed": given.seed,
        "versions": run["versions"],
        "settings": {name: run[name] for name in SETTINGS if name in run} | {"clips": found.done},
        "notes": [told, *given.note],
        "model": given.model,
        "data": given.data,
        "search": {name: value for name, value in search.items() if value is not None},
    }
    results = summed_up(found, load_classifier(given.model), origin, seed=given.seed, clips=False)
    results.save(given.out)
    print(f"{given.out}: {len(results.methods)} methods, {found.done} clips")


def _read(paths: Sequence[Path]) -> tuple[State, dict[str, Any], int]:
    """Put states together: all that was found, what the runs have in common, and how many clips there should be."""
    whole, clips = None, 0
    for path in paths:
        run = read_header(path, kind=KIND)["run"]
        part = State({name: Tally() for name in run["methods"]}, run, path)
        part.load()
        clips += run["clips"]
        if whole is None:
            whole = part
            continue
        for name in sorted({*run} - {"clips", "data's fingerprint"}):
            if run[name] != whole.same[name]:
                raise SystemExit(f"{path} is of another evaluation: its {name} is {run[name]}, not {whole.same[name]}")
        for name, tally in part.tallies.items():
            whole.tallies[name].figures += tally.figures
        whole.clips += part.clips
        whole.done += part.done
    assert whole is not None  # at least one is asked for
    return whole, dict(whole.same), clips


if __name__ == "__main__":
    main()
