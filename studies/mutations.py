"""Small faults, one at a time, in the text of a Python module: what mutants.py puts into a copy of the package.

A fault turns a comparison, an operator, a number, a condition, the name of a function, the order of arguments, or
leaves out a keyword, the end of a slice or a statement. Not touched: strings, annotations, assertions, what is raised
(the condition before it is), and blocks for type checkers. The same text has the same mutants, in the same order.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
OPERATORS: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Div,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.LShift: ast.RShift,
}
_FUNCTIONS = (
    "min max, minimum maximum, argmin argmax, amin amax, any all, sum mean, floor ceil, clamp_min clamp_max,"
    "zeros ones, zeros_like ones_like, new_zeros new_ones, log exp, add sub, add_ sub_, clamp_min_ clamp_max_,"
    "square abs, repeat repeat_interleave, softmax log_softmax, positive negative, start stop, max_subpath min_subpath,"
    "max_subpath_difference min_subpath_difference"
)
_NAMES = "rows cols, row col, height width, h w, first last, before after, plus minus, low high, a b, x y, p q"


def _both_ways(pairs: str) -> dict[str, str]:
    return {a: b for pair in pairs.split(",") for a, b in (pair.split(), pair.split()[::-1])}


SWAPS, NAMES = _both_ways(_FUNCTIONS), _both_ways(f"{_FUNCTIONS}, {_NAMES}")
"""Functions and attributes that are easily confused; names, of which the other one must stand in the same function."""


@dataclass(frozen=True)
class Mutant:
    """A module with one fault.

    where: the function, as Class.function, or "module". before, after: the lines that differ, without indentation, as
    `ast.unparse` writes them: they name the fault as long as these lines stay. source: the whole module.
    """

    file: str
    where: str
    before: str
    after: str
    source: str

    @property
    def name(self) -> str:
        """Tell it from others, also once other lines of the file have changed."""
        return f"{self.file} | {self.where} | {self.before} -> {self.after}"


def mutants(file: str, text: str) -> list[Mutant]:
    """Return all mutants of a module, each name once."""
    statements = ast.parse(text).body
    plain = [ast.unparse(statement) for statement in statements]
    found: dict[str, Mutant] = {}
    for place, statement in enumerate(statements):
        for node, where, change in _faults(statement):
            kept = dict(node.__dict__)
            change()
            changed = ast.unparse(ast.fix_missing_locations(statement))
            node.__dict__.clear()
            node.__dict__.update(kept)
            difference = _difference(plain[place].splitlines(), changed.splitlines())
            source = "\n".join([*plain[:place], changed, *plain[place + 1 :]]) + "\n"
            mutant = Mutant(file, where, *difference, source)
            found.setdefault(mutant.name, mutant)
    return list(found.values())


def _difference(old: list[str], new: list[str]) -> tuple[str, str]:
    """Return the lines that differ, without those that are the same in front and behind."""
    shorter = min(len(old), len(new))
    front = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    behind = next((i for i in range(shorter - front) if old[-1 - i] != new[-1 - i]), shorter - front)
    old, new = old[front : len(old) - behind], new[front : len(new) - behind]
    before, after = (" / ".join(line.strip() for line in lines) for lines in (old, new))
    return before, after


def _faults(statement: ast.stmt) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
    """Yield nodes, the function each is in, and what puts a fault into its own fields; they are put back after."""

    def walk(
        node: ast.AST, where: str, known: set[str], near: set[str]
    ) -> Iterator[tuple[ast.AST, str, Callable[[], None]]]:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            where = node.name if where == "module" else f"{where}.{node.name}"
            known = {part.arg for part in ast.walk(node) if isinstance(part, ast.arg)}
            near = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} | known | set(dir(builtins))
        if _is_for_types(node):
            return
        for change in _changes(node, known, near):
            yield node, where, change
        for child in _children(node):
            yield from walk(child, where, known, near)
        if isinstance(node, ast.Assign):
            known |= {name.id for name in ast.walk(node) if isinstance(name, ast.Name)}

    yield from walk(statement, "module", set(), set(dir(builtins)))


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _children(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a node that faults are put into."""
    if isinstance(node, ast.Assert | ast.Raise | ast.Import | ast.ImportFrom | ast.JoinedStr | ast.arg):
        return
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases"):
            continue
        yield from (part for part in (value if isinstance(value, list) else [value]) if isinstance(part, ast.AST))


def _changes(node: ast.AST, known: set[str], near: set[str]) -> Iterator[Callable[[], None]]:
    """Yield the faults of one node; known: names that have a value before it, near: names in its function."""

    def put(**fields: object) -> Callable[[], None]:
        return lambda: node.__dict__.update(fields)

    def inside(body: list[ast.stmt], place: int) -> list[ast.stmt]:
        return [*body[:place], ast.Pass(), *body[place + 1 :]]

    match node:
        case ast.Compare(ops=[op, *rest]):
            yield from (put(ops=[other(), *rest]) for other in COMPARISONS[type(op)])
        case ast.BinOp(op=ast.Div(), right=ast.Constant(value=str())):
            return  # a path
        case ast.BinOp(op=op) | ast.AugAssign(op=op) if type(op) in OPERATORS:
            yield put(op=OPERATORS[type(op)]())
        case ast.BoolOp(op=op):
            yield put(op=ast.Or() if isinstance(op, ast.And) else ast.And())
        case ast.UnaryOp(op=op, operand=operand):
            yield put(operand=ast.UnaryOp(op, operand))  # twice is not at all
        case ast.Constant(value=bool(value)):
            yield put(value=not value)
        case ast.Constant(value=int(value)):
            yield from (put(value=value + by) for by in (1, -1))
        case ast.Constant(value=float(value)):
            yield from (put(value=other) for other in (value * 2, value + 1))
        case ast.Name(id=name) if NAMES.get(name) in near:
            yield put(id=NAMES[name])
        case ast.Attribute(attr=name) if name in SWAPS:
            yield put(attr=SWAPS[name])
        case ast.Slice(lower=lower, upper=upper):
            yield from (put(**{end: None}) for end, value in (("lower", lower), ("upper", upper)) if value)
    match node:
        case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test) if not isinstance(test, ast.Compare):
            yield put(test=ast.UnaryOp(ast.Not(), test))
        case ast.comprehension(ifs=[_, *_]):
            yield put(ifs=[])
        case ast.Call(args=args, keywords=keywords):
            first = 1 if len(args) == 3 else 0  # where(condition, a, b)
            if _may_swap(node.func, args[first : first + 2]):
                yield put(args=[*args[:first], args[first + 1], args[first], *args[first + 2 :]])
            for place, keyword in enumerate(keywords):
                if keyword.arg not in (None, "device", "strict", "dtype"):
                    yield put(keywords=[*keywords[:place], *keywords[place + 1 :]])
    for name in ("body", "orelse"):
        body = getattr(node, name, None)
        if isinstance(body, list):
            yield from (put(**{name: inside(body, i)}) for i, line in enumerate(body) if _may_go(line, known))


def _may_swap(function: ast.expr, pair: list[ast.expr]) -> bool:
    """Whether two arguments can be confused: both are computed, or both are numbers, and their order matters."""
    name = ast.unparse(function).rpartition(".")[2]
    if len(pair) < 2 or name in ("max", "min", "maximum", "minimum", "transpose", "isinstance", "range"):
        return False
    kinds = [type(ast.literal_eval(arg)) if _is_plain(arg) else ast.AST for arg in pair]
    return kinds[0] is kinds[1] and not any(isinstance(arg, ast.Starred | ast.GeneratorExp | ast.List) for arg in pair)


def _is_plain(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) or (isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant))


def _may_go(line: ast.stmt, known: set[str]) -> bool:
    """Whether the rest still has all its names without a statement, so that its loss is no plain mistake."""
    match line:
        case ast.Expr(value=ast.Call()) | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            return True
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            return True
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name in known or any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(value))
        case ast.Return(value=value):
            return value is None
    return False
