"""Write the results of an evaluation that ended early: those of the clips that were judged, from its saved state.

python studies/partial.py STATE.part.safetensors --model jhmdb-i3d --data jhmdb-1 --commit C --device NAME --out FILE

The state does not hold commit and device. They are told here, and the results say that they were.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from whytube.evaluation.state import KIND, State, Tally
from whytube.evaluation.suite import summed_up
from whytube.models import load_classifier
from whytube.models.stored import read_header

SETTINGS = ("data", "split", "negatives", "k", "fills", "seen_fills", "area")


def main() -> None:
    """Read the command line, sum up, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("state", type=Path)
    for name in ("model", "data", "commit", "device"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--note", action="append", default=[], help="what else a reader must know; may be given again")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    run = read_header(given.state, kind=KIND)["run"]
    found = State({name: Tally() for name in run["methods"]}, run, given.state)
    found.load()
    told = (
        f"The evaluation ended after {found.done} of {run['clips']} clips; commit and device were told, not recorded."
    )
    origin = {
        "commit": given.commit,
        "device": given.device,
        "seed": given.seed,
        "versions": run["versions"],
        "settings": {name: run[name] for name in SETTINGS if name in run} | {"clips": found.done},
        "notes": [told, *given.note],
        "model": given.model,
        "data": given.data,
    }
    results = summed_up(found, load_classifier(given.model), origin, seed=given.seed, clips=False)
    results.save(given.out)
    print(f"{given.out}: {len(results.methods)} methods, {found.done} clips")


if __name__ == "__main__":
    main()
