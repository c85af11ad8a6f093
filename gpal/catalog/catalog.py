"""A catalog in memory: sources with measurements, classes, positions, and where they came from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gpal.catalog.class_tree import (
    OTHER,
    coarser_classes,
    exhaustive_groups,
    group_fractions,
    levels,
    possible_groups,
)
from gpal.catalog.schema import Schema, close_matches
from gpal.errors import InputError
from gpal.measurements import Measurements
from gpal.plain_values import rows_of

if TYPE_CHECKING:
    from astropy.table import Column, Table

    from gpal.catalog.crossmatch import Positions

__all__ = ["Catalog", "Decision"]


@dataclass(frozen=True)
class Decision:
    """What was done with the values of one column that could not be taken as they stand.

    Attributes
    ----------
    column : str
    rule : str
        In words.
    rows : array (n,) of bool
        Which sources of the catalog.

    Examples
    --------
    >>> import gpal
    >>> [decision] = gpal.load_catalog("4fgl", features=["log_variability"]).decisions
    >>> decision.column, decision.rule, decision.count
    ('Variability_Index', 'no value: not measured', 1)
    """

    column: str
    rule: str
    rows: np.ndarray = field(repr=False, compare=False)

    @property
    def count(self) -> int:
        """How many sources."""
        return int(self.rows.sum())


@dataclass(frozen=True)
class Catalog:
    """n sources, as a table holds them.

    Attributes
    ----------
    measurements : Measurements (n, d)
        Features after their transforms, with errors.
    labels : array (n,) of str
        Catalog class in lower case, '' for none.
    original_labels : array (n,) of str
        The class as printed.
    identified : array (n,) of bool
        Identified, not only associated.
    ra : array (n,)
        Right ascension in degrees; NaN where unknown.
    dec : array (n,)
        Declination, likewise.
    position_error : array (n, 3), optional
        95 % half axes and position angle in degrees, NaN where unknown.
    table : Table
        The rows as read, with units.
    schema : Schema
        How the file was read.
    provenance : dict
        Release, file, checksums, reference, feature set, version of gpal.
    decisions : tuple of Decision
        How values not measured, censored or below a floor were treated, and how many.
    groups : mapping of str to tuple of str
        The classes to tell apart: group name -> catalog classes.
    own_groups : mapping of str to tuple of str
        Those that `with_classes` was given in a dictionary.
    known_as : mapping of str to str
        Undecided class -> the group that its sources are known to be of, without being learned
        from.
    carried : mapping of str to Column
        What goes to the outputs as it stands, with unit and UCD.
    cut_away : Positions, optional
        Names and positions of the sources that cuts took away, for cross-matches.

    Examples
    --------
    >>> import gpal
    >>> catalog = gpal.load_catalog("4fgl-dr4")
    >>> known = catalog.labelled(["bll", "fsrq", "psr"])
    >>> known.measurements.X.shape, sorted(set(known.y.tolist()))
    ((2630, 7), ['bll', 'fsrq', 'psr'])
    >>> len(catalog[catalog.dec > 0].unlabelled())
    1620
    """

    measurements: Measurements
    labels: np.ndarray
    original_labels: np.ndarray
    identified: np.ndarray
    ra: np.ndarray
    dec: np.ndarray
    position_error: np.ndarray | None
    table: Table
    schema: Schema
    provenance: dict[str, Any]
    decisions: tuple[Decision, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    own_groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    known_as: Mapping[str, str] = field(default_factory=dict)
    carried: Mapping[str, Column] = field(default_factory=dict)
    cut_away: Positions | None = field(default=None, repr=False)

    def __len__(self) -> int:
        return len(self.measurements)

    def __repr__(self) -> str:
        """A line each for the sources, their features, and the classes to tell apart."""
        names, counts = np.unique(self.y, return_counts=True)
        of = dict(zip(names.tolist(), counts.tolist(), strict=True))
        classes = ", ".join(f"{name} {of.get(name, 0)}" for name in self.groups)
        title = self.schema.title or self.schema.name
        return (
            f"<Catalog '{title}': {len(self)} sources\n"
            f"  features  {', '.join(self.feature_names)}\n"
            f"  labelled  {classes or 'none'}\n"
            f"  targets   {int(self.is_target.sum())}>"
        )

    def __getitem__(self, rows: Any) -> Catalog:
        """The sources `rows` (slice, indices or mask), everything about them with them."""
        rows = rows_of(rows, len(self))
        decisions = tuple(replace(d, rows=d.rows[rows]) for d in self.decisions)
        return replace(
            self,
            measurements=self.measurements[rows],
            labels=self.labels[rows],
            original_labels=self.original_labels[rows],
            identified=self.identified[rows],
            ra=self.ra[rows],
            dec=self.dec[rows],
            position_error=None if self.position_error is None else self.position_error[rows],
            table=self.table[rows],
            decisions=tuple(d for d in decisions if d.count),
            carried={name: column[rows] for name, column in self.carried.items()},
        )

    @property
    def X(self) -> np.ndarray:
        """(n, d) values; NaN where not measured."""
        return self.measurements.X

    @property
    def X_err(self) -> np.ndarray:
        """(n, d) 1-sigma errors; 0 exact, inf not measured."""
        return self.measurements.X_err

    @property
    def names(self) -> np.ndarray:
        """(n,) source identifiers."""
        assert self.measurements.ids is not None
        return self.measurements.ids

    @property
    def named(self) -> bool:
        """Whether the identifiers are the catalog's own; else they count its rows."""
        return bool(self.schema.id)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the d features."""
        return self.measurements.names

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the current groups."""
        return tuple(self.groups)

    @property
    def is_of_another_class(self) -> np.ndarray:
        """(n,) bool: sources of a decided class that is in none of the groups."""
        return (self.y == "") & ~np.isin(self.labels, sorted(self.schema.classes.open))

    @property
    def leaves_none_out(self) -> bool:
        """Whether one of the groups is `other`: all classes that the others leave out."""
        return OTHER in self.groups

    @property
    def y(self) -> np.ndarray:
        """(n,) name of each source's group; '' where it is in none."""
        group_of = {label: group for group, labels in self.groups.items() for label in labels}
        return np.array([group_of.get(label, "") for label in self.labels.tolist()], dtype=str)

    @property
    def group(self) -> np.ndarray:
        """(n,) `y`, and the group that sources of an undecided class are known to be of."""
        known = [self.known_as.get(label, "") for label in self.labels.tolist()]
        return np.where(self.y == "", np.array(known, dtype=str), self.y)

    @property
    def possible(self) -> np.ndarray:
        """(n,) frozenset of the groups that each source may be of, by its class and `sets` of the
        schema: one for a labelled source, none where nothing is said.

        `GPClassifier.fit` takes these for labels, of the sources where there are some.
        """
        sets = self.schema.classes.sets
        of_label = {
            label: possible_groups(sets, self.groups, label) for label in set(self.labels.tolist())
        }
        return np.array([of_label[label] for label in self.labels.tolist()] or [], dtype=object)

    @property
    def coarser(self) -> dict[str, tuple[str, ...]]:
        """Names of the schema's tree that stand for several of the groups, and for which."""
        return coarser_classes(self.schema.classes.tree, self.groups)

    @property
    def levels(self) -> list[dict[str, tuple[str, ...]]]:
        """Divisions coarser than the groups by the schema's tree, the coarsest first: name ->
        groups; [] where the tree says nothing of these groups."""
        return levels(self.schema.classes.tree, self.groups) if self.groups else []

    def known_fractions(self) -> dict[str, dict[str, float]]:
        """Of candidates of an undecided class whose kind is known from others of it, as a schema
        says under `classes.fractions`: class -> group -> fraction. Where the groups leave none out;
        {} where they are not made of what the schema says.

        Returns
        -------
        dict of str to dict of str to float

        Examples
        --------
        >>> import gpal
        >>> catalog = gpal.load_catalog("4fgl-dr4").with_exhaustive_classes()
        >>> round(catalog.known_fractions()["bcu"]["agn"], 3)
        0.985
        """
        if not self.leaves_none_out:
            return {}
        of, (names, numbers) = self.schema.classes, np.unique(self.y, return_counts=True)
        counts = dict(zip(names.tolist(), numbers.tolist(), strict=True))
        if not set(self.groups) <= set(counts):
            return {}
        found = {
            label: group_fractions(of.tree, self.groups, parts, counts)
            for label, parts in of.fractions.items()
        }
        return {label: parts for label, parts in found.items() if parts}

    def with_classes(self, classes: Iterable[str] | Mapping[str, Iterable[str]]) -> Catalog:
        """The same sources with other groups.

        A list names classes or groups of the schema: "psr" takes the millisecond pulsars "msp" with
        it unless "msp" is in the list too. "other", unless the catalog has a class of that name,
        is every decided class that none of the others takes. A dictionary {"agn": ["bll", "fsrq"]}
        makes new groups, which later lists name before classes and groups of the schema.

        Parameters
        ----------
        classes : iterable of str, or mapping of str to iterables of str
            Names, or group name -> catalog classes.

        Returns
        -------
        Catalog
        """
        groups = self._resolve(classes)
        own = groups if isinstance(classes, Mapping) else self.own_groups
        return replace(self, groups=groups, own_groups=own, known_as={})

    def with_exhaustive_classes(self) -> Catalog:
        """The same sources with groups that leave no known class out: those that the schema names
        under `exhaustive`, with all classes that its tree has below them, and `other` for the rest.

        An undecided class that the tree places, `bcu` below `agn`, is `known_as` its group: no
        target, and not learned from.

        Returns
        -------
        Catalog

        Examples
        --------
        >>> import gpal
        >>> catalog = gpal.load_catalog("4fgl-dr4").with_exhaustive_classes()
        >>> catalog.classes, catalog.groups["pulsar"], catalog.known_as
        (('agn', 'pulsar', 'other'), ('msp', 'psr'), {'bcu': 'agn'})
        >>> sorted(set(catalog.unlabelled().labels.tolist()))
        ['', 'unk']
        """
        of = self.schema.classes
        if not of.exhaustive:
            raise InputError(
                f"the schema of {self.schema.title or self.schema.name} does not say which classes"
                " leave none out; name some of classes.tree under classes.exhaustive, or the"
                " classes one by one"
            )
        present = set(self.labels.tolist())
        groups = exhaustive_groups(of.tree, of.sets, of.exhaustive, present - of.open)
        undecided = exhaustive_groups(of.tree, of.sets, of.exhaustive, present & of.open)
        known_as = {
            label: group
            for group, labels in undecided.items()
            for label in labels
            if group in of.exhaustive
        }
        return replace(self.with_classes(groups), known_as=known_as)

    def labelled(
        self, classes: Iterable[str] | Mapping[str, Iterable[str]] | None = None
    ) -> Catalog:
        """Only the sources whose class is in one of the groups.

        Parameters
        ----------
        classes : iterable of str, or mapping of str to iterables of str, optional
            As of `with_classes`; the current groups.

        Returns
        -------
        Catalog
        """
        catalog = self if classes is None else self.with_classes(classes)
        return catalog[catalog.y != ""]

    @property
    def is_target(self) -> np.ndarray:
        """(n,) bool: the sources that users want classified: no class or an undecided one, and in
        none of the groups nor known as one."""
        asked = self.schema.classes.open - set(self.known_as)
        return (self.y == "") & np.isin(self.labels, sorted(asked))

    def unlabelled(
        self, classes: Iterable[str] | Mapping[str, Iterable[str]] | None = None
    ) -> Catalog:
        """Only the sources that users want classified, see `is_target`.

        Parameters
        ----------
        classes : iterable of str, or mapping of str to iterables of str, optional
            As given to `labelled`: a source of one of these groups is no target.

        Returns
        -------
        Catalog
        """
        catalog = self if classes is None else self.with_classes(classes)
        return catalog[catalog.is_target]

    def _resolve(self, classes: Iterable[str] | Mapping[str, Iterable[str]]) -> dict[str, tuple]:
        if isinstance(classes, str):
            classes = [classes]
        if isinstance(classes, Mapping):
            groups = {
                str(group): tuple(
                    label.lower() for label in ([labels] if isinstance(labels, str) else labels)
                )
                for group, labels in classes.items()
            }
        else:
            asked = [str(name).lower() for name in classes]
            own = {group.lower(): group for group in self.own_groups}
            groups = {}
            for name in asked:
                if name in own:
                    groups[own[name]] = tuple(self.own_groups[own[name]])
                    continue
                members = self.schema.classes.groups.get(name, (name,))
                groups[name] = tuple(m for m in members if m == name or m not in asked)
            if OTHER in groups and groups[OTHER] == (OTHER,) and OTHER not in self.labels:
                groups[OTHER] = self._rest(groups)
        if not groups:
            raise InputError("no classes given; name at least two, e.g. ['bll', 'fsrq', 'psr']")
        known = sorted(set(self.labels.tolist()) - {""})
        absent = self.schema.classes.absent
        owner: dict[str, str] = {}
        for group, labels in groups.items():
            if not labels:
                raise InputError(f"the group '{group}' has no class; name some, or leave it out")
            present = [label for label in labels if label in known]
            for label in labels:
                if label in owner:
                    raise InputError(
                        f"class '{label}' is in the groups '{owner[label]}' and '{group}';"
                        " keep it in one"
                    )
                owner[label] = group
                if label in known or (present and self._may_be_absent(label)):
                    continue
                title = self.schema.title or self.schema.name
                if label in absent:
                    raise InputError(f"no class '{label}' in {title}: {absent[label]}")
                column = self.schema.class_column
                raise InputError(
                    f"unknown class '{label}' in column '{column}' of {title};"
                    f" {close_matches(label, known)}"
                )
        return groups

    def _rest(self, groups: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
        """The decided classes of the catalog that are in none of the groups."""
        taken = {label for labels in groups.values() for label in labels}
        rest = sorted(set(self.labels.tolist()) - taken - self.schema.classes.open)
        if not rest:
            raise InputError(
                f"no class is left for '{OTHER}': every class of"
                f" {self.schema.title or self.schema.name} is in another group"
            )
        return tuple(rest)

    def _may_be_absent(self, label: str) -> bool:
        """A class that the schema knows may lack sources here, if its group has others."""
        classes = self.schema.classes
        return label in classes.absent or any(label in group for group in classes.groups.values())
