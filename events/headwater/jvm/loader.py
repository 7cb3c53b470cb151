"""A JVM's loader for one package of ours, and what Python does with its classes.

No jar is added to anybody's class path. A JVM has one loader for a package, whichever contexts come and go, because
some registries of the formats keep what was registered for as long as the JVM lives. It has the archives that fit, of
this wheel or of an earlier driver; where one is lacking, Janino compiles all, as Spark brings it.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import Enum
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from headwater.errors import HeadwaterError
from headwater.events.redaction import READ
from headwater.jvm.bundled import FACTS, ArchiveFacts, JarIdentities, SourceGroup, find_bundled, pack, read_classes
from headwater.jvm.cache import ArchiveCache, key_of, path_of, place_of, state_of

_LOG = logging.getLogger(__name__)
_KEEP_SECONDS: Final = 1.0


class JavaError(HeadwaterError):
    """Something on the Java side can't be had."""


class ClassOrigin(Enum):
    """Where a driver has our classes from."""

    WHEEL = "wheel"
    CACHE = "cache"
    COMPILER = "compiler"


@dataclass(frozen=True)
class LoaderState:
    """What a JVM knows of a loader of ours, for contexts that come later."""

    origin: ClassOrigin = ClassOrigin.COMPILER
    facts: ArchiveFacts = field(default_factory=ArchiveFacts)


def java_class(gateway: Any, name: str) -> Any:
    """Return a class of the JDK by its full name. `gateway.jvm.a.b.C` asks the JVM for each part of the name, and has
    it look through all jars for classes that are called so."""
    py4j: Any = import_module("py4j.java_gateway")  # it has no types, and the program's own is loaded by now
    return py4j.JavaClass(name, gateway._gateway_client)  # noqa: SLF001 - as py4j itself makes one


class ClassPath:
    """What a driver's classes come from, seen from its loader."""

    def __init__(self, gateway: Any) -> None:
        self.loader = java_class(gateway, "java.lang.Thread").currentThread().getContextClassLoader()
        self._properties = java_class(gateway, "java.lang.System").getProperties()
        self._found: dict[str, Path | None] = {}

    def find(self, class_name: str) -> Path | None:
        """The jar or file that has a class; None where nothing has it."""
        if class_name not in self._found:
            found = self.loader.getResource(f"{class_name.replace('.', '/')}.class")
            place = "" if found is None else str(found.toString()).removeprefix("jar:").partition("!")[0]
            self._found[class_name] = path_of(place) if place else None
        return self._found[class_name]

    @cached_property
    def entries(self) -> tuple[str, ...]:
        """The class path, and what Spark adds to it in a driver that runs: `spark.jars` and packages."""
        started_with = str(self._properties.getProperty("java.class.path")).split(os.pathsep)
        try:
            urls = self.loader.getURLs()
            added = [str(urls[place].toString()) for place in range(len(urls))]
        except Exception:  # noqa: BLE001 - a loader without any says so in py4j's words
            added = []
        return (*started_with, *added)

    @cached_property
    def state(self) -> str:
        """Another one when a jar is added, or is another file."""
        return state_of(self.entries)

    @cached_property
    def jars(self) -> JarIdentities:
        return JarIdentities(map(place_of, self.entries))

    @cached_property
    def java(self) -> str:
        """The very Java that runs."""
        return str(self._properties.getProperty("java.vm.version"))

    @cached_property
    def java_release(self) -> int:
        """Such as 17; 8 calls itself 1.8."""
        return int(str(self._properties.getProperty("java.specification.version")).removeprefix("1."))


class SharedLoader:
    """The classes of a package, for one user of them."""

    def __init__(
        self,
        gateway: Any,
        package: str,
        groups: Sequence[SourceGroup],
        class_path: ClassPath,
        make_rewrite: Callable[[ClassPath], Callable[[bytes], bytes]],
    ) -> None:
        """The sources of the first group are what the others stand on. `make_rewrite` gives what the compiler sees."""
        self._gateway = gateway
        self._jvm = gateway.jvm
        self._package = package
        self.groups = groups
        self._make_rewrite = make_rewrite
        self.class_path = class_path
        self._properties = java_class(gateway, "java.lang.System").getProperties()
        self._compiled: Any = None
        """In the JVM: class files by their paths, where this one made a loader that compiles."""
        self._begun: frozenset[str] = frozenset()
        """Those that earlier drivers compiled, which ended before they had compiled the rest."""
        self.state = self._read_state()
        self._loader = self._shared()

    def _read_state(self) -> LoaderState:
        text = self._properties.get(f"{self._package}.state")
        if text is None:
            return LoaderState()
        found = json.loads(text)
        facts = ArchiveFacts(found["left_out"], tuple(found["missing"]), tuple(found["absent"]))
        return LoaderState(ClassOrigin(found["origin"]), facts)

    def _set_state(self, state: LoaderState) -> None:
        self.state = state
        text = json.dumps({"origin": state.origin.value, **asdict(state.facts)})
        self._properties.put(f"{self._package}.state", text)

    @property
    def sources(self) -> Mapping[str, bytes]:
        """The sources by file name, without those that can't be compiled here."""
        left_out = self.state.facts.left_out
        everything = {name: text for group in self.groups for name, text in group.sources.items()}
        return {name: text for name, text in everything.items() if name.removesuffix(".java") not in left_out}

    def load(self, name: str) -> Any:
        """Return a class of ours, as Java's Class object."""
        try:
            return self._loader.loadClass(f"{self._package}.{name}")
        except Exception as e:  # py4j's errors have no common root that can be imported without a JVM
            raise JavaError(f"{name} can't be compiled here: {root_message(e)}") from e

    def leave_out(self, name: str, why: str) -> None:
        """Do without a class that can't be compiled here. The compiler would try again whenever it is asked for another
        class, so there has to be a new loader, before anything that the old one loaded is in use."""
        facts = self.state.facts
        self._set_state(LoaderState(facts=replace(facts, left_out={**facts.left_out, name: why})))
        self._properties.remove(f"{self._package}.loader")
        self._loader = self._shared()

    def new(self, name: str, *arguments: Any) -> Any:
        """Return an object of a class of ours that has one constructor."""
        constructor = self.load(name).getConstructors()[0]
        try:
            return constructor.newInstance(self.objects(arguments))
        except Exception as e:
            raise JavaError(f"{name} can't be made: {root_message(e)}") from e

    def call(self, name: str, method: str, kinds: Sequence[Any] = (), arguments: Sequence[Any] = ()) -> Any:
        """Call a static method of a class of ours that takes these kinds of arguments."""
        found = self.load(name)
        try:
            return found.getMethod(method, self._java_array("java.lang.Class", kinds)).invoke(
                None, self.objects(arguments)
            )
        except Exception as e:
            raise JavaError(f"{name}.{method}: {root_message(e)}") from e

    def objects(self, items: Sequence[Any]) -> Any:
        """Return a Java array of these."""
        return self._java_array("java.lang.Object", items)

    def _java_array(self, kind: str, items: Sequence[Any]) -> Any:
        made = self._gateway.new_array(java_class(self._gateway, kind), len(items))
        for place, item in enumerate(items):
            made[place] = item
        return made

    @property
    def compiled(self) -> frozenset[str]:
        """The class files that were compiled for this one."""
        return frozenset() if self._compiled is None else frozenset(map(str, self._compiled.keySet().toArray()))

    def class_files(self, group: SourceGroup) -> list[bytes]:
        """Those of a group that were compiled, in the order of their names."""
        return [content for name, content in self._class_files().items() if group.owns(name)]

    @property
    def is_archived(self) -> bool:
        """Whether drivers to come find what this one has."""
        return self._compiled is None

    def keep_begun(self) -> None:
        """Keep what was compiled so far: a driver that ends before the rest is compiled spares the next one this."""
        if self._compiled is not None and (compiled := self.compiled) != self._begun:
            ArchiveCache().add(self._begun_key, pack(self._class_files(), ArchiveFacts()))
            self._begun = compiled

    def keep(self, missing: Iterable[str] = ()) -> None:
        """Compile what wasn't needed so far, and keep all of it for drivers to come."""
        if self._compiled is None:
            return
        cache = ArchiveCache()
        for group, content in self._archives(missing, between=self.keep_begun):
            cache.add(self._cache_key(group), content)
        cache.remove(self._begun_key)
        self._compiled = None

    def archives(self, missing: Iterable[str] = (), absent: Iterable[str] = ()) -> Iterator[tuple[SourceGroup, bytes]]:
        """Yield an archive of each group. Lines of `missing` and `absent` begin with the name of a source."""
        return self._archives(missing, absent)

    def _archives(
        self, missing: Iterable[str], absent: Iterable[str] = (), between: Callable[[], None] | None = None
    ) -> Iterator[tuple[SourceGroup, bytes]]:
        self._compile_rest(between)
        left_out, files = self.state.facts.left_out, self._class_files()
        for group in self.groups:
            facts = ArchiveFacts(
                {name: why for name, why in left_out.items() if group.owns(name)},
                tuple(each for each in missing if group.owns(each.partition("\t")[0])),
                tuple(each for each in absent if group.owns(each.partition("\t")[0])),
            )
            yield group, pack({name: content for name, content in files.items() if group.owns(name)}, facts)

    def _class_files(self) -> dict[str, bytes]:
        return {each: bytes(self._compiled.get(each)) for each in sorted(self.compiled)}

    def _compile_rest(self, between: Callable[[], None] | None) -> None:
        """Compile what nothing has needed so far, beside the loader in use: a class that can't be compiled, whose users
        can't be either, makes a loader fail for whatever it is asked for next. It takes seconds, and a job may end any
        time: `between` is called now and then and keeps what there is, so that jobs of seconds compile a class once."""
        sources = dict(self.sources)
        loader = self._make_compiler(sources)
        kept = time.monotonic()
        for name in tuple(sources):
            if between is not None and time.monotonic() - kept >= _KEEP_SECONDS:
                between()
                kept = time.monotonic()
            try:
                loader.loadClass(f"{self._package}.{name.removesuffix('.java')}")
            except Exception as e:  # noqa: BLE001 - what needs it was reported
                _LOG.debug("%s can't be compiled here: %s", name, root_message(e))
                del sources[name]
                loader = self._make_compiler(sources)

    def _shared(self) -> Any:
        """The loader of this JVM, made by the first who needs one."""
        known = self._properties.get(f"{self._package}.loader")
        if known is not None:
            return known
        loader = (None if self.state.facts.left_out else self._open_archives()) or self._compiler()
        self._properties.put(f"{self._package}.loader", loader)
        _LOG.info("Java classes of %s: from the %s", self._package, self.state.origin.value)
        return loader

    def _open_archives(self) -> Any | None:
        try:
            for origin, find in ((ClassOrigin.WHEEL, self._find_bundled), (ClassOrigin.CACHE, self._find_cached)):
                found = [find(group) for group in self.groups]
                archives = [each for each in found if each is not None]
                if len(archives) == len(found) and (loader := self._open([path for path, _ in archives])) is not None:
                    self._set_state(LoaderState(origin, _merge(facts for _, facts in archives)))
                    return loader
        except Exception as e:  # noqa: BLE001 - whatever this class path is: it can be compiled against
            _LOG.debug("class files can't be used: %s: %s", type(e).__name__, e)
        return None

    def _open(self, paths: Sequence[Path]) -> Any | None:
        """A loader that has all of these open, whatever becomes of the files; None if one went missing."""
        url, collections = (java_class(self._gateway, each) for each in ("java.net.URL", "java.util.Collections"))
        urls = self._java_array("java.net.URL", [url(path.absolute().as_uri()) for path in paths])
        loader = java_class(self._gateway, "java.net.URLClassLoader")(urls, self.class_path.loader)
        there = collections.list(loader.findResources(FACTS)).size()
        return loader if there == len(paths) else None

    def _find_bundled(self, group: SourceGroup) -> tuple[Path, ArchiveFacts] | None:
        probed = self.class_path.find(group.probe)
        if probed is None:
            return None
        return find_bundled(self._digest(group), self.class_path.java_release, probed, self.class_path.jars)

    def _find_cached(self, group: SourceGroup) -> tuple[Path, ArchiveFacts] | None:
        return ArchiveCache().find(self._cache_key(group))

    def _read_begun(self) -> dict[str, bytes]:
        try:
            found = ArchiveCache().find(self._begun_key)
            return {} if found is None else read_classes(found[0])
        except Exception as e:  # noqa: BLE001 - whatever this class path is: it can be compiled against
            _LOG.debug("class files can't be used: %s: %s", type(e).__name__, e)
            return {}

    @cached_property
    def _begun_key(self) -> str:
        return "begun-" + key_of("\0".join(map(self._digest, self.groups)), self.class_path.java, self.class_path.state)

    def _digest(self, group: SourceGroup) -> str:
        return group.digest(self.groups[0].sources)

    def _cache_key(self, group: SourceGroup) -> str:
        return key_of(self._digest(group), self.class_path.java, self.class_path.state)

    def _compiler(self) -> Any:
        """A loader that compiles what is asked for, unless an earlier driver has, and keeps class files in the JVM."""
        self._compiled = java_class(self._gateway, "java.util.concurrent.ConcurrentHashMap")()
        begun = self._read_begun()
        for name, content in begun.items():
            self._compiled.put(name, content)
        self._begun = frozenset(begun)
        self._set_state(LoaderState(facts=self.state.facts))
        return self._make_compiler(self.sources)

    def _make_compiler(self, sources: Mapping[str, bytes]) -> Any:
        """It takes what another one compiled for this one of ours."""
        content = java_class(self._gateway, "java.util.HashMap")()
        rewrite, folder = self._make_rewrite(self.class_path), self._package.replace(".", "/")
        for name, text in sources.items():
            content.put(f"{folder}/{name}", rewrite(text))
        janino, resources = self._jvm.org.codehaus.janino, self._jvm.org.codehaus.commons.compiler.util.resource
        finder = resources.MapResourceFinder(content)
        kept, made = resources.MapResourceFinder(self._compiled), resources.MapResourceCreator(self._compiled)
        kept.setLastModified(1)  # class files are newer than the sources, which have no time
        loader = janino.CachingJavaSourceClassLoader(self.class_path.loader, finder, "UTF-8", kept, made)
        loader.setDebuggingInfo(True, True, False)  # source and lines, with which what is caught is reported
        return loader


def _merge(found: Iterable[ArchiveFacts]) -> ArchiveFacts:
    facts = list(found)
    left_out = {name: why for fact in facts for name, why in fact.left_out.items()}
    missing = tuple(line for fact in facts for line in fact.missing)
    return ArchiveFacts(left_out, missing, tuple(line for fact in facts for line in fact.absent))


def root_message(error: BaseException | None) -> str:
    """What a Java exception says at its root."""
    cause = getattr(error, "java_exception", None)
    if cause is None:
        return f"{type(error).__name__}: {error}".splitlines()[0]
    words = [str(cause.toString())]
    while (cause := cause.getCause()) is not None and len(words) < 20:
        words.append(str(cause.toString()))
    return words[-1][:READ]
