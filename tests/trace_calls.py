"""Counts the functions of whytube that a program calls across files: run with the name of a program and its arguments.

A function counts once, if a function of another file of the package calls it; what only checks arguments or
stored documents does not count. Prints {"calls": [...], "files": [...]} to standard error.
"""

import json
import re
import sys
from pathlib import Path

APART = ("checks.py", "documents.py", "errors.py")
INNER = re.compile(r"(\.<locals>)?\.?<(genexpr|listcomp|dictcomp|setcomp|lambda)>")


def main(program):
    import whytube

    package = str(Path(whytube.__file__).parent)
    edges = set()

    def own(frame):
        """File and name of a function of the package, None for anything else, such as a module or a class body."""
        code = frame.f_code
        if not code.co_filename.startswith(package) or not code.co_flags & 1:
            return None
        file, name = code.co_filename[len(package) + 1 :], INNER.sub("", code.co_qualname)
        return (file, name) if name and file not in APART else None

    def watch(frame, event, _):
        if event != "call" or (called := own(frame)) is None:
            return
        back = frame.f_back
        while back is not None and own(back) is None:
            back = back.f_back
        if back is not None and own(back)[0] != called[0]:
            edges.add(called)

    sys.setprofile(watch)
    try:
        program()
    except SystemExit:
        pass
    finally:
        sys.setprofile(None)
    calls = sorted(f"{file}: {name}" for file, name in edges)
    print(json.dumps({"calls": calls, "files": sorted({file for file, _ in edges})}), file=sys.stderr)


def explain():
    from whytube.cli import main as command

    sys.argv[0] = "whytube"
    command()


def load():
    from whytube.models import load_model

    def begin():  # stands for the caller in another file
        load_model(sys.argv[1])

    begin()


if __name__ == "__main__":
    chosen = {"explain": explain, "load": load}[sys.argv.pop(1)]
    main(chosen)
