"""The scripts of benchmarks/ as modules."""

import importlib
import sys
from contextlib import contextmanager
from pathlib import Path

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@contextmanager
def importable():
    """Gives a function that imports a script by its name; afterwards no script is in ``sys.modules``."""
    before = set(sys.modules)
    sys.path.insert(0, str(BENCHMARKS))
    importlib.invalidate_caches()
    try:
        yield importlib.import_module
    finally:
        sys.path.remove(str(BENCHMARKS))
        for name in set(sys.modules) - before:
            if (BENCHMARKS / f"{name}.py").exists():
                del sys.modules[name]
