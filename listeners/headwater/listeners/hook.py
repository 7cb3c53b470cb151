"""How headwater gets into a driver by configuration alone: what the `.pth` file in site-packages imports.

It is run whenever this Python starts, for Spark or not, so it needs the standard library only, does next to nothing,
and what goes wrong in it is nobody's business. All it leaves is a finder that waits for pyspark's SparkContext. Once a
context is made, its live configuration decides: with `spark.headwater.enabled = true` the rest of headwater is imported
and installed, without it nothing else of ours is ever loaded.
"""

from __future__ import annotations

import atexit
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # typing's own would take longer to import than all of this
    from collections.abc import Callable, Sequence
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, Final

ENABLED: Final = "spark.headwater.enabled"
_LISTENERS: Final = "spark.headwater.listeners"
_CONTEXT_MODULES: Final = ("pyspark.context", "pyspark.core.context")
"""Where SparkContext is in Spark 3.5 and from 4.0 on."""
_WORKER: Final = "PYTHON_WORKER_FACTORY_SECRET"
"""Set by Spark for the Python workers that it starts."""
_INSTALLATION: Final = "headwater.listeners.installation"

_ON: Final = frozenset({"true", "1", "yes", "on", "y", "t"})
_OFF: Final = frozenset({"false", "0", "no", "off", "n", "f", ""})

_LETTERS: Final = frozenset("headwater")

_watches_exit = False

_patched: dict[Any, tuple[Callable[..., None], Callable[..., None]]] = {}
"""The classes whose contexts are looked at: their own `_do_init`, and what stands in its place."""


class _Finder:
    """Is asked for every module, and passes on all but one to the finders that stand behind it."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        return _wrap_spec(fullname, path, target) if fullname in _CONTEXT_MODULES else None


class _Loader:
    """Another loader, but what it loaded is patched."""

    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        module.__loader__ = self._loader
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        self._loader.exec_module(module)
        try:
            _patch(module)
        except Exception:  # noqa: BLE001 - whatever this pyspark is, it can be imported
            return


_finder: Final = _Finder()


def watch() -> None:
    """Look at every SparkContext that this interpreter makes from now on, unless it is one of Spark's workers."""
    if _WORKER in os.environ:
        return
    if _finder not in sys.meta_path:
        sys.meta_path.insert(0, _finder)
    watch_exit()
    for home in _CONTEXT_MODULES:
        if home in sys.modules:
            _patch(sys.modules[home])


def unwatch() -> None:
    """Undo what `watch` did. Where somebody has put something over it, that stays, and nothing comes of it."""
    global _watches_exit  # noqa: PLW0603 - one for the interpreter, as atexit is
    if _finder in sys.meta_path:
        sys.meta_path.remove(_finder)
    atexit.unregister(_at_exit)
    _watches_exit = False
    for context, (original, ours) in list(_patched.items()):
        if context._do_init is ours:
            context._do_init = original
            del _patched[context]


def watch_exit() -> None:
    """Have contexts that nobody stopped ended at exit. What is registered first is called last, so that all that users
    registered comes before: theirs may still use Spark. So a second time must not move it."""
    global _watches_exit  # noqa: PLW0603 - one for the interpreter, as atexit is
    if not _watches_exit:
        atexit.register(_at_exit)
        _watches_exit = True


def _at_exit() -> None:
    installation = sys.modules.get(_INSTALLATION)
    try:
        if installation is not None:
            installation.at_exit()
    except Exception as e:  # noqa: BLE001 - the process ends as it would have
        _warn("reporting the end of the application: %s: %s", type(e).__name__, e)


def _wrap_spec(fullname: str, path: Sequence[str] | None, target: ModuleType | None) -> ModuleSpec | None:
    """What the other finders answer, with our loader around theirs."""
    for finder in sys.meta_path:
        find = None if finder is _finder else getattr(finder, "find_spec", None)
        spec: ModuleSpec | None = None if find is None else find(fullname, path, target)
        if spec is not None:
            if hasattr(spec.loader, "exec_module"):
                spec.loader = _Loader(spec.loader)  # type: ignore[assignment]
            return spec
    return None


def _patch(module: ModuleType) -> None:
    context: Any = getattr(module, "SparkContext", None)
    original = getattr(context, "_do_init", None)
    if original is None or context in _patched:
        return

    def _do_init(self: Any, *args: Any, **kwargs: Any) -> None:
        if _finder in sys.meta_path:
            _import_beside(self, [*args, *kwargs.values()])
        original(self, *args, **kwargs)
        if _finder in sys.meta_path:
            _install_in(self)

    _do_init.__wrapped__ = original  # type: ignore[attr-defined]
    context._do_init = _do_init
    _patched[context] = (original, _do_init)


def _import_beside(context: Any, arguments: list[Any]) -> None:
    """Import what will be installed while this thread waits for the JVM, which makes a context for seconds. What is
    asked for here is only a guess, and whatever goes wrong is found again when it is installed."""
    try:
        confs = [argument for argument in arguments if type(argument).__name__ == "SparkConf"]

        def said(key: str) -> Any:
            return next(filter(None, (conf.get(key) for conf in confs)), None) or context._jvm.System.getProperty(key)

        if str(said(ENABLED)).strip().lower() in _ON and _INSTALLATION not in sys.modules:
            import threading  # noqa: PLC0415 - only what is enabled is loaded

            asked = said(_LISTENERS)
            threading.Thread(target=_import_quietly, args=(asked,), name="headwater-import", daemon=True).start()
    except Exception:  # noqa: BLE001 - whatever this pyspark is, its context is made
        return


def _import_quietly(listeners: str | None) -> None:
    """Python's collector would go through all of pyspark several times meanwhile: a sixth of what the import takes."""
    import gc  # noqa: PLC0415 - see above

    is_collecting = gc.isenabled()
    gc.disable()
    try:
        import importlib  # noqa: PLC0415 - see above

        importlib.import_module(_INSTALLATION).prepare(listeners)
    except Exception:  # noqa: BLE001 - whoever installs it finds it again, and says so
        return
    finally:
        if is_collecting:
            gc.enable()


def _install_in(context: Any) -> None:
    """Install the rest in a context that has just been made, if its configuration says so."""
    try:
        if _is_enabled(context):
            import importlib  # noqa: PLC0415 - only what is enabled is loaded

            importlib.import_module(_INSTALLATION).begin(context)
        else:
            _warn_of_misspellings(context)
    except Exception as e:  # noqa: BLE001 - the job goes on
        _warn("headwater can't be installed in this driver, which goes on without it: %s: %s", type(e).__name__, e)


def _is_enabled(context: Any) -> bool:
    value = str(context._conf.get(ENABLED, "false")).strip().lower()
    if value not in _ON and value not in _OFF:
        _warn("%s is neither true nor false, so headwater stays off: write true to have it on", ENABLED)
    return value in _ON


def _warn_of_misspellings(context: Any) -> None:
    """Who wrote `spark.headwtaer.enabled` wants to know why nothing happens. The rest is loaded for those only whose
    configuration has something like our name in it, and hasn't said that it wants nothing."""
    conf = context._conf
    if conf.get(ENABLED) is not None:
        return
    keys = [line.partition("=")[0] for line in conf.toDebugString().splitlines()]  # one call into the JVM
    if any(_looks_like_ours(word) for key in keys for word in key.split(".", 2)[:2]):
        from headwater.listeners.misspellings import find_misspellings  # noqa: PLC0415 - see above

        for words in find_misspellings((key for key in keys if conf.contains(key)), is_enabled=False):
            _warn("%s", words)


def _looks_like_ours(word: str) -> bool:
    return 7 <= len(word) <= 11 and len(_LETTERS & set(word.lower())) >= 5


def _warn(message: str, *arguments: object) -> None:
    import logging  # noqa: PLC0415 - takes longer to import than all of this

    logging.getLogger(__name__).warning(message, *arguments)
