"""`python -m whytube` is `whytube`."""

from whytube.cli import main

main()
