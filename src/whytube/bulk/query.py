"""Questions over the answers of a bulk run, with DuckDB over its Parquet files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from whytube.bulk.output import NAMED
from whytube.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

REGION = "a region without a word"
EXAMPLES = 3
"""Clips that are shown of a confusion."""

# Of a clip whose true class is known, the answer about that class, or all where it was not asked about.
LABELLED = """(
    SELECT * EXCLUDE (put) FROM (
        SELECT *, bool_or(negative = label) OVER (PARTITION BY row, start) AS put FROM answers WHERE label <> ''
    ) WHERE negative = label OR NOT put
)"""


def _telling(answers: str = "answers") -> str:
    """Select reasons of answers, a row each; one counts where it moves the decision."""
    return f"""(
        SELECT *, coalesce(nullif(reason.attribute, ''), '{REGION}') AS word
        FROM (SELECT * EXCLUDE (reasons), unnest(reasons) AS reason FROM {answers})
        WHERE reason.verdict IN ('turns', 'moves', 'moves a little')
    )"""


def _top_word(keys: str, answers: str = "answers") -> str:
    """Select the word of most reasons for each value of the columns `keys`, and its share of them."""
    return f"""(
        SELECT {keys}, word, count(*)::DOUBLE / any_value(total) AS share FROM (
            SELECT *, count(*) OVER (PARTITION BY {keys}) AS total FROM {_telling(answers)}
        ) GROUP BY {keys}, word QUALIFY row_number() OVER (
            PARTITION BY {keys} ORDER BY count(*) DESC, word = '{REGION}', avg(reason.fall) DESC, word
        ) = 1
    )"""


QUERIES = {
    "words": f"""
        SELECT positive, negative, word, count(*) AS answers, avg(reason.fall) AS fall, avg(reason.fit) AS fit
        FROM {_telling()} GROUP BY ALL ORDER BY answers DESC, fall DESC, positive, negative, word LIMIT $top
    """,
    "confusions": f"""
        SELECT a.positive, a.negative, count(*) AS answers, avg(a.explained::INT) AS explained,
               avg(a.p_positive) AS p_positive, avg(a.p_negative) AS p_negative, any_value(t.word) AS word,
               any_value(t.share) AS share
        FROM answers a LEFT JOIN {_top_word("positive, negative")} t USING (positive, negative)
        GROUP BY a.positive, a.negative ORDER BY answers DESC, a.positive, a.negative
    """,
    "truth": f"""
        SELECT a.label, a.predicted, count(DISTINCT {{'row': a.row, 'start': a.start}}) AS clips,
               avg(a.explained::INT) AS explained, any_value(t.word) AS word, any_value(t.share) AS share
        FROM {LABELLED} a LEFT JOIN {_top_word("label, predicted", LABELLED)} t USING (label, predicted)
        GROUP BY a.label, a.predicted ORDER BY a.label = a.predicted, clips DESC, a.label, a.predicted
    """,
    "least": """
        SELECT positive, negative, count(*) AS answers, avg(explained::INT) AS explained
        FROM answers GROUP BY ALL ORDER BY explained, answers DESC, positive, negative LIMIT $top
    """,
    "failures": """
        SELECT replace(replace(error, 'file or folder ' || video, 'such file or folder'), video, 'the video') AS error,
               count(*) AS videos, min(video) AS example
        FROM failures GROUP BY ALL ORDER BY videos DESC, error LIMIT $top
    """,
    "totals": """
        SELECT (SELECT count(DISTINCT row) FROM answers) AS explained, (SELECT count(*) FROM failures) AS failed,
               (SELECT count(*) FROM videos) - (SELECT count(DISTINCT row) FROM answers)
               - (SELECT count(*) FROM failures) AS missing, (SELECT count(*) FROM answers) AS answers,
               (SELECT avg((label = predicted)::INT) FROM (SELECT DISTINCT row, label, predicted FROM answers
                WHERE label <> '')) AS accuracy
    """,
}


class Answers:
    """The answers of a bulk run, to be asked about."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)
        if not (self.folder / "run.json").is_file():
            raise ArgumentError(f"{self.folder} holds no answers: name the --out of `whytube bulk`")
        try:
            import duckdb
        except ImportError as error:
            raise ArgumentError("DuckDB is not installed: pip install 'whytube[bulk]'") from error
        self.engine = duckdb.connect(":memory:")
        for view, name in (("answers", "reasons"), ("failures", "failures")):
            files = sorted(str(path) for path in (self.folder / name).glob("*") if NAMED.fullmatch(path.name))
            if not files:
                raise DataError(f"{self.folder} holds no answers yet: run `whytube bulk` to its end")
            self._view(view, files)
        self._view("videos", [str(self.folder / "videos.parquet")])

    def _view(self, name: str, files: list[str]) -> None:
        import duckdb

        try:
            self.engine.read_parquet(files).create_view(name)
        except duckdb.Error as error:
            raise self._unreadable(error) from error

    def rows(self, sql: str, **values: Any) -> list[dict[str, Any]]:
        """Rows of a query over the views `answers`, `failures` and `videos`."""
        import duckdb

        try:
            found = self.engine.execute(sql, values or None)
        except duckdb.Error as error:
            raise self._unreadable(error) from error
        names = [column[0] for column in found.description or ()]
        return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def _unreadable(self, error: Exception) -> DataError:
        shards = (path for path in sorted(self.folder.glob("*/*")) if NAMED.fullmatch(path.name))
        damaged = [path for path in shards if not _is_whole(path)]
        if not damaged:
            return DataError(f"cannot read the answers in {self.folder}: {' '.join(str(error).split())}")
        more = f" and {len(damaged) - 1} others are" if len(damaged) > 1 else " is"
        return DataError(f"{damaged[0]}{more} damaged: delete what is, and the same `whytube bulk` makes it again")

    def summary(self, top: int = 10) -> dict[str, Any]:
        """All tables: totals, words by confusion, every confusion, true by predicted, explained least, failures."""
        found = {name: self.rows(sql, **({"top": top} if "$top" in sql else {})) for name, sql in QUERIES.items()}
        return {**found, "totals": found["totals"][0]}

    def examples(self, positive: str, negative: str, count: int = EXAMPLES) -> list[dict[str, Any]]:
        """Answers to one confusion, those first whose reasons move the decision most."""
        return self._examples("answers", {"positive": positive, "negative": negative}, count)

    def true_examples(self, label: str, predicted: str, count: int = EXAMPLES) -> list[dict[str, Any]]:
        """Answers about clips of a true class that were classified as `predicted`, in the order of `examples`."""
        return self._examples(LABELLED, {"label": label, "predicted": predicted}, count)

    def _examples(self, answers: str, values: dict[str, str], count: int) -> list[dict[str, Any]]:
        sql = f"""
            SELECT row, video, label, positive, negative, p_positive, p_negative, sentence, start, reasons, frames, fps,
                   height, width, settings FROM {answers} WHERE {" AND ".join(f"{name} = ${name}" for name in values)}
            ORDER BY list_max(list_transform(reasons, lambda r: r.fall)) DESC NULLS LAST, row LIMIT $count
        """
        return self.rows(sql, **values, count=count)

    def lines(self, found: dict[str, Any], top: int = 10) -> Iterator[str]:
        """Write the tables of `summary` for people; top: confusions, of which all are found."""
        totals = found["totals"]
        right = "" if totals["accuracy"] is None else f", {100 * totals['accuracy']:.1f} % classified as labelled"
        missing = f", {totals['missing']} not done yet" if totals["missing"] else ""
        yield f"{totals['explained']} videos explained, {totals['failed']} failed{missing}{right}"
        yield from _section("what explains a confusion most often", map(_word_line, found["words"]))
        yield from _section("most frequent confusions", map(_confusion_line, found["confusions"][:top]))
        mistaken = [row for row in found["truth"] if row["label"] != row["predicted"]]
        yield from _section("most frequent mistakes", map(_truth_line, mistaken[:top]))
        yield from _section("explained least", map(_least_line, found["least"]))
        yield from _section("failures", (f"{row['videos']} x {row['error']}" for row in found["failures"]))


def _is_whole(path: Path) -> bool:
    """Whether all columns of a Parquet file can be read."""
    from pyarrow import ArrowException, parquet

    try:
        with parquet.ParquetFile(path) as file:
            for _ in file.iter_batches():
                pass
    except (ArrowException, OSError):
        return False
    return True


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    for place, line in enumerate(lines):
        if place == 0:
            yield f"\n{title}"
        yield f"  {line}"


def _word_line(row: dict[str, Any]) -> str:
    fit = "" if row["fit"] is None else f", fits {100 * row['fit']:.0f} %"
    return f"{row['positive']}, not {row['negative']}: {row['word']} ({_count(row['answers'], 'answer')}{fit})"


def _confusion_line(row: dict[str, Any]) -> str:
    return f"{row['positive']}, not {row['negative']}: {_count(row['answers'], 'answer')}, {_explained(row)}"


def _truth_line(row: dict[str, Any]) -> str:
    return f"{row['label']}, taken for {row['predicted']}: {_count(row['clips'], 'clip')}, {_explained(row)}"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"


def _explained(row: dict[str, Any]) -> str:
    word = "" if row["word"] is None else f", most often by {row['word']} ({100 * row['share']:.0f} % of the reasons)"
    return f"{100 * row['explained']:.0f} % explained{word}"


def _least_line(row: dict[str, Any]) -> str:
    return f"{row['positive']}, not {row['negative']}: {100 * row['explained']:.0f} % of {row['answers']}"
