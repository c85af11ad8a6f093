"""What is registered under a name: likelihoods, treatments, inferences, strategies, catalogs.

    @LIKELIHOODS.register                     a class of gpal's, or of a script or notebook
    class Softmax(ClassificationLikelihood):
        name = "softmax"

    [project.entry-points."gpal.likelihoods"] a class of another package, found when names are
    my_softmax = "my_package:MySoftmax"       looked up for the first time

The classes of gpal itself are found by importing the modules of one package, when the first name is
looked up: listing names may therefore load TensorFlow, importing gpal does not. Facts about a class
stand on the class; whoever needs a table of them walks the register.

A name has one class. gpal's own come first: another class is refused a name of theirs whether it
was there before them or not. What is registered in a script is known in that process alone; worker
processes know what they import themselves, and what has an entry point.
"""

from __future__ import annotations

import pkgutil
import threading
import warnings
from collections.abc import Iterator, Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

from gpal.errors import InputError

__all__ = ["NotRegistered", "Register"]

Class = TypeVar("Class", bound=type)
Base = TypeVar("Base")


class NotRegistered(InputError):
    """A name that no class has here: it may be that of a package that is not installed."""


class Register(Mapping[str, type[Base]], Generic[Base]):
    """name -> class, names sorted, aliases among them.

    kind     what a message calls one of them, e.g. "likelihood"
    package  whose modules hold gpal's own
    group    of entry points for those of other packages
    base     from which each is derived

    A class has `name`, and may have `aliases`, further names of the same class.
    """

    def __init__(self, kind: str, package: str, group: str, base: type = object) -> None:
        self.kind, self._package, self._group, self._base = kind, package, group, base
        self._classes: dict[str, type[Base]] = {}
        self._lock = threading.RLock()  # another thread waits until all names are known
        self._imported = self._complete = False

    def register(self, registered: Class) -> Class:
        """Decorator: make a class known by its name; InputError where another one has it, and for
        what is not derived from the base."""
        given: Any = registered
        names = self._names(given) if isinstance(given, type) else ()
        if not (names and issubclass(given, self._base)):
            raise InputError(
                f"{registered!r} is no {self.kind}: give a class that is derived from"
                f" {self._base.__module__}.{self._base.__qualname__}"
            )
        if not registered.__module__.startswith(f"{self._package}."):
            self._import_own()
        for name in names:
            known = self._classes.get(name)
            if known is not None and not _same(known, registered):
                raise InputError(
                    f"the {self.kind} '{name}' is {known.__module__}.{known.__qualname__} already;"
                    f" give {registered.__module__}.{registered.__qualname__} another name"
                )
        for name in names:
            self._classes[name] = registered
        return registered

    def find(self, name: Any) -> type[Base]:
        """The class of that name; NotRegistered with all names where there is none."""
        if not isinstance(name, str) or name not in self:
            raise NotRegistered(f"no {self.kind} {name!r}; there are: {', '.join(self)}")
        return self[name]

    def classes(self) -> list[type[Base]]:
        """Each class once, in the order of their names."""
        return [known for name, known in self.items() if name == self._names(known)[0]]

    def name_of(self, registered: type) -> str:
        """The class's name; InputError where it is not registered, and so cannot be found by it."""
        name = str(self._names(registered)[0])
        known = self.get(name)
        if known is None or not _same(known, registered):
            raise InputError(
                f"{registered.__qualname__} is not registered as a {self.kind}, and a model file"
                " could not be read again: register it by a name of its own"
            )
        return name

    def __getitem__(self, name: str) -> type[Base]:
        self._load()
        return self._classes[name]

    def __iter__(self) -> Iterator[str]:
        self._load()
        return iter(sorted(self._classes))

    def __len__(self) -> int:
        self._load()
        return len(self._classes)

    def _names(self, registered: type) -> tuple[str, ...]:
        """Its own: a subclass does not inherit the aliases of its base."""
        name = getattr(registered, "name", None)
        if not isinstance(name, str) or not name:
            raise InputError(f"{registered!r} has no name to be a {self.kind} by: give it `name`")
        return (name, *vars(registered).get("aliases", ()))

    def _load(self) -> None:
        """Import gpal's own modules, then those of entry points; once."""
        with self._lock:
            self._import_own()
            if self._complete:
                return
            self._complete = True  # at once: what is imported may look names up itself
            for point in entry_points(group=self._group):
                try:
                    self.register(point.load())
                except Exception as error:
                    warnings.warn(
                        f"the {self.kind} '{point.name}' of {point.value} cannot be used: {error}",
                        stacklevel=2,
                    )

    def _import_own(self) -> None:
        with self._lock:
            if self._imported:
                return
            self._imported = True
            try:
                for module in pkgutil.iter_modules(import_module(self._package).__path__):
                    import_module(f"{self._package}.{module.name}")
            except BaseException:  # an interrupt, too: the next look-up begins anew
                self._imported = False
                raise


def _same(known: type, again: type) -> bool:
    """Whether a class is met once more, by an entry point or a cell that is run again."""
    return known is again or (
        (known.__module__, known.__qualname__) == (again.__module__, again.__qualname__)
    )
