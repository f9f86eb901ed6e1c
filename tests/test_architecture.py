"""The house rules, read off the source text: nothing is imported, so that no rule depends on what happens to run.

A rule is a function from modules (name to text) to complaints. Each is tried on our sources, and on a made-up source
that breaks it: a rule that cannot fail says nothing.
"""

from __future__ import annotations

import ast
import functools
import re
import runpy
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from certsynth.algorithm.registry import METHODS

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "certsynth"
PAGE = ROOT / "docs" / "architecture.md"
FIGURE = ROOT / "docs" / "images" / "architecture.svg"

Modules = dict[str, str]
Rule = Callable[[Modules], list[str]]

BLIND = (
    "answers",
    "record",
    "artefact",
    "certificate",
    "domain",
    "mechanisms",
    "planning",
    "projection",
    "queries",
    "record",
    "report",
    "transport",
    "algorithm.adaptive",
    "algorithm.fitting",
    "algorithm.layered",
    "algorithm.layers",
    "algorithm.low_dimensional",
    "algorithm.method",
    "algorithm.paper",
    "algorithm.asked",
    "algorithm.expected_steps",
    "algorithm.recompute",
    "algorithm.record",
    "algorithm.sample",
    "algorithm.stated_cells",
    "algorithm.verify",
    "algorithm.sizes",
)
"""Packages that must not be able to reach a reader of rows, by any chain of imports."""

READS_ROWS = ("algorithm.certify", "algorithm.evaluate", "algorithm.release", "cli", "demo", "sources")
"""Who may import `sources`."""

LAYERS = (
    ("algorithm", "errors"),
    ("algorithm.checks", "algorithm.registry", "base"),
    ("algorithm.declaration",),
    ("algorithm.options",),
    ("domain", "record"),
    ("queries", "transport"),
    ("answers", "mechanisms", "sources"),
    ("algorithm.request", "algorithm.stated_cells", "certificate", "projection", "report"),
    ("algorithm.exceptions",),
    ("algorithm.settings", "artefact"),
    ("algorithm.layers", "algorithm.sizes", "algorithm.task", "demo"),
    ("planning",),
    ("algorithm.certify", "algorithm.evaluate", "algorithm.fitting", "algorithm.values"),
    ("algorithm.asked", "algorithm.method"),
    (
        "algorithm.certificates",
        "algorithm.expected_steps",
        "algorithm.layered",
        "algorithm.low_dimensional",
        "algorithm.record",
    ),
    ("algorithm.adaptive", "algorithm.paper", "algorithm.recompute", "algorithm.steps"),
    ("algorithm.plan", "algorithm.release", "algorithm.sample", "algorithm.verify"),
    ("algorithm.estimator",),
    ("cli",),
    ("__main__",),
)
"""Packages and modules from the ground up: each imports only what lies below it."""

UPWARD = {
    ("certsynth.artefact.release", "certsynth.algorithm.verify"),
    ("certsynth.artefact.release", "certsynth.algorithm.recompute"),
}
"""Calls upward: a release is verified, and certified for one question alone, with the functions that made it."""

DRAWS = {
    "certsynth.certificate.plug_in": "the law of the noise, by Monte Carlo",
    "certsynth.demo": "a made-up town",
    "certsynth.algorithm.adaptive.plan": "a rehearsal without data",
    "certsynth.algorithm.fitting": "the generator for what needs no privacy, handed on",
    "certsynth.algorithm.values": "the same",
    "certsynth.mechanisms.measure": "the law of the noise, by Monte Carlo",
    "certsynth.mechanisms.samplers": "the law of the noise, by Monte Carlo",
    "certsynth.mechanisms.sup_norm": "the law of the noise, for rehearsals",
    "certsynth.algorithm.release": "the generator for what needs no privacy",
    "certsynth.planning.noise": "what noise alone does",
    "certsynth.planning.outlook": "made-up tables",
    "certsynth.planning.rehearsal": "a rehearsal without data",
    "certsynth.planning.tables": "made-up tables",
    "certsynth.projection.shared_dependence": "how far tables of the model are from what noise leaves of them",
    "certsynth.projection.diagnostic": "the size of the noise, by Monte Carlo, with a fixed seed",
    "certsynth.projection.emit": "the order of emitted rows, and values inside a cell",
    "certsynth.projection.repair": "which rows exchange values so that rules are obeyed",
    "certsynth.projection.particles": "which swaps are proposed, and among which rows of over-full cells",
    "certsynth.projection.support": "which public rows are taken",
    "certsynth.projection.synthesis": "where particles start, the order of emitted rows, and values inside a cell",
    "certsynth.queries.net": "which points of a public table are nodes, with a fixed seed",
    "certsynth.algorithm.sample": "the generator for new rows, which need no privacy",
}
"""Who may use `numpy.random`, and for what."""

FRAMES = ("pandas", "polars", "pyarrow")
MAKES_FRAMES = "certsynth.artefact.frames"
"""The one module that may import them, when it is asked to."""

UNPICKLERS = ("pickle", "cPickle", "_pickle", "cloudpickle", "dill", "marshal", "shelve")
MOST_LINES = 600

QUICKLY_COMPILED = {
    *("int32", "int64", "uint32", "uint64", "uintp", "float64"),
    *("empty", "zeros", "sqrt", "floor", "ceil"),
    *("argsort", "searchsorted"),  # not quickly, but a loop would be long
}
"""NumPy's functions that compiled code may call."""


def our_modules() -> Modules:
    """Dotted names to texts. A package goes by its own name: `certsynth.domain` is its `__init__.py`."""
    return {
        ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path.read_text(
            encoding="utf-8"
        )
        for path in sorted(PACKAGE.rglob("*.py"))
    }


def part(module: str) -> str:
    """The package or top-level module that a module belongs to; of the algorithm, the module or folder in it.

    >>> part("certsynth.domain.cells"), part("certsynth.algorithm.low_dimensional.grids")
    ('domain', 'algorithm.low_dimensional')
    """
    pieces = module.split(".")[1:]
    return ".".join(pieces[:2]) if pieces[:1] == ["algorithm"] else "".join(pieces[:1])


@functools.cache
def walked(text: str) -> tuple[ast.AST, ...]:
    """All nodes of a source. Every rule asks for them."""
    return tuple(ast.walk(ast.parse(text)))


def imported(module: str, text: str) -> Iterator[str]:
    """Every dotted name that a module's import statements mention, at any depth, also for type checking only."""
    for node in walked(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            homes = [node.module or ""]
            if node.level:  # relative: as for a module, and as for a package, since the name does not tell
                ups = [module.split(".")[: len(module.split(".")) - node.level + up] for up in (0, 1)]
                homes = [".".join([*up, *filter(None, homes)]) for up in ups]
            yield from homes
            yield from (f"{home}.{alias.name}" for home in homes for alias in node.names)


def import_graph(modules: Modules) -> dict[str, set[str]]:
    """Which modules are executed when one is imported: those it names, and the packages these are in.

    The package `certsynth` itself is left out: it loads its public names when they are first used, and a rule of its
    own says that only commands use them.
    """
    graph = {}
    for module, text in modules.items():
        reached = set()
        for name in imported(module, text):
            pieces = name.split(".")
            reached |= {".".join(pieces[:n]) for n in range(2, len(pieces) + 1)} & set(modules)
        graph[module] = reached - {module}
    graph["certsynth"] = set()
    return graph


def chain(graph: dict[str, set[str]], start: str, end: str) -> list[str]:
    """A way from a module to a package over imports, or nothing."""
    ways, seen = [[start]], {start}
    for way in ways:
        if part(way[-1]) == end:
            return way
        for following in sorted(graph.get(way[-1], set()) - seen):
            seen.add(following)
            ways.append([*way, following])
    return []


def nodes(modules: Modules, *kinds: type[ast.AST]) -> Iterator[tuple[str, ast.AST]]:
    for module, text in modules.items():
        yield from ((module, node) for node in walked(text) if isinstance(node, kinds))


def called(node: ast.AST) -> str:
    """The dotted name of what a call calls, as far as it is one."""
    return dotted(node.func) if isinstance(node, ast.Call) else ""


def dotted(node: ast.AST) -> str:
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def imports_of(modules: Modules, *roots: str) -> Iterator[tuple[str, str]]:
    """Modules with the foreign packages among `roots` that they import."""
    for module, text in modules.items():
        for root in sorted({name.split(".")[0] for name in imported(module, text)} & set(roots)):
            yield module, root


# -------------------------------------------------------------------------------------------------- the rules


def blind_packages_cannot_reach_rows(modules: Modules) -> list[str]:
    graph = import_graph(modules)
    ways = [chain(graph, module, "sources") for module in modules if part(module) in BLIND]
    return [" → ".join(way) for way in ways if way]


def few_import_sources(modules: Modules) -> list[str]:
    graph = import_graph(modules)
    return [
        f"{module} imports sources"
        for module, reached in graph.items()
        if part(module) not in READS_ROWS and any(part(name) == "sources" for name in reached)
    ]


def imports_point_downwards(modules: Modules) -> list[str]:
    height = {name: i for i, layer in enumerate(LAYERS) for name in layer}
    found = [f"{module} is in no layer" for module in modules if part(module) and part(module) not in height]
    for module, reached in import_graph(modules).items():
        for name in sorted(reached):
            above, below = height.get(part(module), 0), height.get(part(name), 0)
            if part(module) and part(name) != part(module) and above <= below and (module, name) not in UPWARD:
                found.append(f"{module} imports {name}")
    return found


def only_commands_use_the_public_names(modules: Modules) -> list[str]:
    """`from certsynth import release` runs whatever the name needs: inside the house, modules are named in full."""
    allowed = {name for module in modules for name in [module, module.rpartition(".")[0]]}
    return [
        f"{module} imports {name}"
        for module, text in modules.items()
        for name in imported(module, text)
        if name.startswith("certsynth.") and name.count(".") == 1 and name not in allowed
        if part(module) not in ("cli", "")
    ]


def no_import_is_hidden(modules: Modules) -> list[str]:
    """Imports by name at run time would escape the rules above. Two lists may do it: the public
    names of the package, and the registry of methods, whose modules are tested to be blind.
    """
    return [
        f"{module}:{node.lineno} imports at run time"  # type: ignore[attr-defined]
        for module, node in nodes(modules, ast.Call)
        if called(node).split(".")[-1] in ("import_module", "__import__", "run_module", "run_path")
        if module not in ("certsynth", "certsynth.algorithm.method")
    ]


def only_mechanisms_import_opendp(modules: Modules) -> list[str]:
    return [f"{module} imports opendp" for module, _ in imports_of(modules, "opendp") if part(module) != "mechanisms"]


def only_mechanisms_add_noise(modules: Modules) -> list[str]:
    """`ExactNoise` by name, and `noise.add(…, sensitivity=…)` by its keywords."""
    found = []
    for module, node in nodes(modules, ast.Call, ast.Name, ast.Attribute, ast.alias):
        if part(module) == "mechanisms":
            continue
        name = node.name if isinstance(node, ast.alias) else "" if isinstance(node, ast.Call) else dotted(node)
        if name.split(".")[-1] == "ExactNoise":
            found.append(f"{module} names ExactNoise")
        words = {word.arg for word in node.keywords} if isinstance(node, ast.Call) else set()
        if called(node).split(".")[-1] == "add" and words & {"sensitivity", "epsilon", None}:
            found.append(f"{module}:{node.lineno} adds noise")
    return found


def one_module_imports_frame_libraries(modules: Modules) -> list[str]:
    """Only where rows are handed out as frames, and only inside of functions: nobody needs a library unasked."""
    found = [f"{module} imports {root}" for module, root in imports_of(modules, *FRAMES) if module != MAKES_FRAMES]
    for module, node in nodes(modules, ast.Module):
        assert isinstance(node, ast.Module)
        top = ast.unparse(ast.Module([n for n in node.body if not isinstance(n, ast.FunctionDef)], []))
        found += [f"{module} imports {root} unasked" for _, root in imports_of({module: top}, *FRAMES)]
    return found


def only_commands_print(modules: Modules) -> list[str]:
    return [
        f"{module}:{node.lineno} prints"  # type: ignore[attr-defined]
        for module, node in nodes(modules, ast.Call)
        if called(node) in ("print", "sys.stdout.write", "sys.stderr.write") and part(module) != "cli"
    ]


def nothing_runs_data(modules: Modules) -> list[str]:
    """No eval or exec, no unpickling, and no NumPy file that may hold a pickle."""
    found = [f"{module} imports {root}" for module, root in imports_of(modules, *UNPICKLERS)]
    for module, node in nodes(modules, ast.Call):
        assert isinstance(node, ast.Call)
        name = called(node)
        if name in ("eval", "exec", "compile", "joblib.load", "pickle.load", "pickle.loads"):
            found.append(f"{module}:{node.lineno} calls {name}")
        if name in ("np.load", "numpy.load") and not any(
            word.arg == "allow_pickle" and isinstance(word.value, ast.Constant) and word.value.value is False
            for word in node.keywords
        ):
            found.append(f"{module}:{node.lineno} loads without allow_pickle=False")
    return found


def random_numbers_only_where_listed(modules: Modules) -> list[str]:
    """`numpy.random` in the listed modules, and Python's `random`, which has a seed, nowhere."""
    found = [f"{module} imports random" for module, _ in imports_of(modules, "random")]
    for module, text in modules.items():
        names = {name for name in imported(module, text) if name.startswith("numpy.random")}
        names |= {dotted(node) for _, node in nodes({module: text}, ast.Attribute)}
        if any(name.startswith(("np.random", "numpy.random")) for name in names) and module not in DRAWS:
            found.append(f"{module} uses numpy.random")
    return found


UNSEEDED = {"ExactNoise", "calibrated_scale", "_mechanism", "_opendp", "choose_least", "choose_by_ratio", "flip"}
UNSEEDED |= {"draw_sup_norm", "_draw", "draw_radius", "draw_geometric", "flip_logarithm", "Radius"}
UNSEEDED |= {"_permute_and_flip", "secret_words", "rare_noise", "rare_cells", "excess", "geometric", "_decided"}


def released_noise_has_no_seed(modules: Modules) -> list[str]:
    """Nothing in the class that draws released noise, nor in what it calls, has to do with a generator or a seed."""
    found = []
    for module, node in nodes(modules, ast.ClassDef, ast.FunctionDef):
        assert isinstance(node, (ast.ClassDef, ast.FunctionDef))
        if node.name not in UNSEEDED:
            continue
        for inner in ast.walk(node):
            name = dotted(inner) or (inner.arg if isinstance(inner, (ast.arg, ast.keyword)) else "")
            if re.search(r"\b(np|numpy)\.random|\brng\b|seed|simulate|default_rng", name or ""):
                found.append(f"{module}: {node.name} uses {name}")
    return found


def every_module_says_what_it_is(modules: Modules) -> list[str]:
    return [f"{module} has no docstring" for module, text in modules.items() if not ast.get_docstring(walked(text)[0])]


def no_file_is_long(modules: Modules) -> list[str]:
    lengths = {module: len(text.splitlines()) for module, text in modules.items()}
    return [f"{module} has {lines} lines" for module, lines in lengths.items() if lines > MOST_LINES]


def kernels_compile_quickly(modules: Modules) -> list[str]:
    """Whoever installs certsynth waits for numba: most array functions take ten times as long to compile as a loop, and
    a kernel that is called with a whole number is compiled once more for that number."""
    kernels = {
        (module, node.name): node
        for module, node in nodes(modules, ast.FunctionDef)
        if isinstance(node, ast.FunctionDef) and any(called(each) == "njit" for each in node.decorator_list)
    }
    names = {name for _, name in kernels}
    found = []
    for (module, name), kernel in kernels.items():
        calls = [node for node in ast.walk(kernel) if isinstance(node, ast.Call)]
        for call in calls:
            what = called(call)
            if what.startswith("np.") and what.removeprefix("np.") not in QUICKLY_COMPILED:
                found.append(f"{module}:{call.lineno} {name} uses {what}")
            if what in names and any(isinstance(x, ast.Constant) and isinstance(x.value, int) for x in call.args):
                found.append(f"{module}:{call.lineno} {name} calls {what} with a number: write np.int64(…)")
    return found


# ------------------------------------------------------------------------------------ our sources, and bad ones

_SOURCES = {"certsynth": "", "certsynth.sources": "", "certsynth.sources.files": ""}
_NOISE = "def f(noise, x, total):\n    total.add(x)\n    return noise.add(x, sensitivity=1, epsilon=1)\n"

BROKEN: list[tuple[Rule, Modules, str]] = [
    (
        blind_packages_cannot_reach_rows,
        _SOURCES
        | {
            "certsynth.projection.x": "from certsynth.helper import y",
            "certsynth.helper": "def y():\n    from certsynth.sources import files",
        },
        "certsynth.projection.x → certsynth.helper → certsynth.sources",
    ),
    (
        blind_packages_cannot_reach_rows,  # by way of the package that a module is in
        _SOURCES
        | {
            "certsynth.report.x": "import certsynth.domain.y",
            "certsynth.domain": "from certsynth.sources.files import z",
            "certsynth.domain.y": "",
        },
        "certsynth.report.x → certsynth.domain → certsynth.sources",
    ),
    (
        blind_packages_cannot_reach_rows,  # relative, and for types only
        _SOURCES | {"certsynth.queries.x": "if TYPE_CHECKING:\n    from ..sources import Source"},
        "certsynth.queries.x → certsynth.sources",
    ),
    (few_import_sources, _SOURCES | {"certsynth.algorithm.sizes": "import certsynth.sources.files"}, "sizes imports"),
    (
        imports_point_downwards,
        {"certsynth.transport.x": "from certsynth.mechanisms import y", "certsynth.mechanisms": ""},
        "certsynth.transport.x imports certsynth.mechanisms",
    ),
    (imports_point_downwards, {"certsynth.utils": ""}, "certsynth.utils is in no layer"),
    (
        only_commands_use_the_public_names,
        {"certsynth.algorithm.sizes": "from certsynth import evaluate"},
        "certsynth.evaluate",
    ),
    (no_import_is_hidden, {"certsynth.domain": "import importlib\nimportlib.import_module(x)"}, "at run time"),
    (only_mechanisms_import_opendp, {"certsynth.algorithm.release": "import opendp.prelude as dp"}, "imports opendp"),
    (only_mechanisms_add_noise, {"certsynth.algorithm.release": _NOISE}, "release:3 adds noise"),
    (
        only_mechanisms_add_noise,
        {"certsynth.certificate.x": "from certsynth.mechanisms.samplers import ExactNoise as E"},
        "names ExactNoise",
    ),
    (
        one_module_imports_frame_libraries,
        {"certsynth.sources.x": "def f():\n    import pandas as pd"},
        "imports pandas",
    ),
    (one_module_imports_frame_libraries, {"certsynth.artefact.x": "def f():\n    import polars"}, "imports polars"),
    (one_module_imports_frame_libraries, {MAKES_FRAMES: "import pyarrow"}, "pyarrow unasked"),
    (one_module_imports_frame_libraries, {MAKES_FRAMES: "if True:\n    from pandas import NA"}, "pandas unasked"),
    (only_commands_print, {"certsynth.domain": "def f():\n    print(1)"}, "domain:2 prints"),
    (nothing_runs_data, {"certsynth.domain": "eval('1')"}, "calls eval"),
    (nothing_runs_data, {"certsynth.domain": "from pickle import loads"}, "imports pickle"),
    (nothing_runs_data, {"certsynth.domain": "import numpy as np\nnp.load(x)"}, "without allow_pickle"),
    (nothing_runs_data, {"certsynth.domain": "np.load(x, allow_pickle=True)"}, "without allow_pickle"),
    (random_numbers_only_where_listed, {"certsynth.domain": "import numpy as np\nnp.random.default_rng()"}, "uses"),
    (random_numbers_only_where_listed, {"certsynth.domain": "from numpy.random import default_rng"}, "uses"),
    (random_numbers_only_where_listed, {"certsynth.demo": "import random"}, "imports random"),
    (
        released_noise_has_no_seed,
        {"certsynth.mechanisms.samplers": "class ExactNoise:\n    def add(self, values, *, seed=None): ..."},
        "ExactNoise uses seed",
    ),
    (
        released_noise_has_no_seed,
        {"certsynth.mechanisms.samplers": "class ExactNoise:\n    def add(self):\n        np.random.default_rng()"},
        "ExactNoise uses np.random.default_rng",
    ),
    (every_module_says_what_it_is, {"certsynth.x": "# a comment is no docstring\nx = 1"}, "no docstring"),
    (
        kernels_compile_quickly,
        {"certsynth.x": "@njit(cache=True)\ndef f(x):\n    return np.cumsum(x)"},
        "f uses np.cumsum",
    ),
    (
        kernels_compile_quickly,
        {
            "certsynth.x": "@njit(cache=True)\ndef f(x, y): ...",
            "certsynth.y": "@njit(cache=True)\ndef g(x):\n    f(x, 0)",
        },
        "g calls f with a number",
    ),
    (no_file_is_long, {"certsynth.x": "\n" * (MOST_LINES + 1)}, "601 lines"),
]

RULES = list(dict.fromkeys(rule for rule, _, _ in BROKEN))


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_our_sources_keep_the_rule(rule: Rule) -> None:
    assert rule(our_modules()) == []


@pytest.mark.parametrize(("rule", "modules", "complaint"), BROKEN, ids=lambda x: getattr(x, "__name__", ""))
def test_a_broken_rule_is_seen(rule: Rule, modules: Modules, complaint: str) -> None:
    found = rule(modules)
    assert len(found) >= 1
    assert any(complaint in each for each in found), found


def test_the_rules_see_our_sources() -> None:
    """Guards the tests above against looking at nothing: known edges are there, and known users of randomness."""
    modules = our_modules()
    graph = import_graph(modules)
    assert "certsynth.sources" in graph["certsynth.algorithm.release"]
    assert chain(graph, "certsynth.cli", "sources")
    assert {part(module) for module in modules} >= {*BLIND, *READS_ROWS}
    assert set(DRAWS) <= set(modules)
    for module in DRAWS:
        assert "np.random" in modules[module], f"{module} no longer needs to be listed"
    for name in ("ExactNoise", "calibrated_scale", "_mechanism", "_opendp"):
        assert re.search(rf"^(class|def) {name}\b", modules["certsynth.mechanisms.samplers"], re.MULTILINE)
    for name in ("choose_least", "flip"):
        assert f"def {name}(" in modules["certsynth.mechanisms.selection"]


# ------------------------------------------------------------------------------------------------- the page


def test_the_page_lists_every_module_with_its_own_words() -> None:
    made = runpy.run_path(str(ROOT / "docs" / "make_architecture.py"))
    assert PAGE.read_text(encoding="utf-8") == made["page"](), "run python docs/make_architecture.py"
    folders = {path.parent.relative_to(PACKAGE).as_posix() for path in PACKAGE.rglob("*.py")}
    assert {folder or "." for folder in made["FOLDERS"]} == folders


def test_the_page_and_its_figure_name_the_steps_in_order_and_only_folders_that_exist() -> None:
    steps = ast.parse((PACKAGE / "algorithm" / "steps.py").read_text("utf-8")).body
    (run,) = [node for node in steps if isinstance(node, ast.FunctionDef) and node.name == "run"]
    calls = [called(node) for node in ast.walk(run)]
    order = [name for name in calls if name and "." not in name and name != "Outcome"]
    expected = ["count_rows", "choose", "measure", "fit", "certify", "record"]
    assert sorted(order) == sorted(expected)
    page, figure = PAGE.read_text(encoding="utf-8"), FIGURE.read_text(encoding="utf-8")
    assert re.findall(r"(?m)^\| `([a-z_]+)` \|", page)[: len(expected)] == expected
    named = re.findall(r'class="code">([a-z_/]+)<', figure)
    assert [name for name in named if name in expected] == expected
    assert all((PACKAGE / name).is_dir() for name in named if name.endswith("/"))


def test_every_method_in_the_registry_is_blind() -> None:
    """The registry imports methods when they are needed, so the import graph does not see them."""
    modules = our_modules()
    for entry in METHODS.values():
        assert part(entry.module) in BLIND
        assert re.search(rf"^{entry.name}\b|, {entry.name} =|^{entry.name} =", modules[entry.module], re.MULTILINE)
