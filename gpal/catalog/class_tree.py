"""A tree of classes, and what is said of the classes that one tells apart.

    tree   name -> what lies directly below it: classes, or other names of the tree
    sets   class -> the classes that a source of it may be of: it says no more than that

    tree = {"agn": ("blazar", "rdg"), "blazar": ("bll", "fsrq")}
    sets = {"bcu": ("bll", "fsrq")}

`groups` (name -> classes, as in `Catalog.groups`) are the classes told apart. A name of the tree
stands for the groups that lie below it with all their classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpal.errors import InputError

__all__ = [
    "check_tree",
    "classes_below",
    "coarser_classes",
    "exhaustive_groups",
    "levels",
    "names_above",
    "place_in_words",
    "possible_groups",
]

Names = Mapping[str, tuple[str, ...]]
OTHER = "other"


def check_tree(tree: Names, sets: Names) -> None:
    """InputError for a class in two places, for a circle, and for a set of no class."""
    parent: dict[str, str] = {}
    for name, members in tree.items():
        for member in members:
            if member in parent:
                raise InputError(
                    f"'{member}' is below '{parent[member]}' and '{name}' in classes.tree; a class"
                    " has one place"
                )
            parent[member] = name
    for name in tree:
        seen, above = {name}, parent.get(name)
        while above is not None:
            if above in seen:
                raise InputError(f"'{above}' in classes.tree lies below itself; take it out there")
            seen.add(above)
            above = parent.get(above)
    for name, members in sets.items():
        if not members:
            raise InputError(f"classes.sets says of '{name}' no class that it may be; name some")


def classes_below(tree: Names, name: str) -> tuple[str, ...]:
    """The classes below a name of the tree, or the class itself."""
    if name not in tree:
        return (name,)
    return tuple(found for member in tree[name] for found in classes_below(tree, member))


def coarser_classes(tree: Names, groups: Names) -> dict[str, tuple[str, ...]]:
    """Names of the tree that stand for some of the groups, and for which; the finest last.

    Names of groups are left out, so that none has two meanings.
    """
    found = {}
    for name in tree:
        below = set(classes_below(tree, name))
        inside = tuple(group for group, classes in groups.items() if set(classes) <= below)
        if name not in groups and 1 < len(inside) < len(groups):
            found[name] = inside
    return dict(sorted(found.items(), key=lambda item: -len(item[1])))


def levels(tree: Names, groups: Names) -> list[dict[str, tuple[str, ...]]]:
    """Divisions of the groups that are coarser than the groups, the coarsest first.

    Every group is in one class of a level: in the highest name of the tree above it that is no
    higher than the level, or itself.
    """
    parent = {member: name for name, members in tree.items() for member in members}
    coarser = coarser_classes(tree, groups)

    def path(group: str) -> list[str]:
        """From the top of the tree down to the group."""
        above, names = parent.get(groups[group][0]), [group]
        while above is not None:
            if group in coarser.get(above, ()):
                names.insert(0, above)
            above = parent.get(above)
        return names

    paths = {group: path(group) for group in groups}
    found: list[dict[str, tuple[str, ...]]] = []
    for depth in range(max(map(len, paths.values())) - 1):
        level: dict[str, tuple[str, ...]] = {}
        for group, names in paths.items():
            name = names[min(depth, len(names) - 1)]
            level[name] = (*level.get(name, ()), group)
        if all(set(level.values()) != set(other.values()) for other in found):
            found.append(level)
    return [level for level in found if len(level) > 1]


def names_above(tree: Names, sets: Names, label: str) -> list[str]:
    """The names that lie above a class, or above all the classes that it may be, from the top."""
    parent = {member: name for name, members in tree.items() for member in members}
    members = sets.get(label, (label,))
    above = parent.get(members[0])
    names: list[str] = []
    while above is not None:
        if all(member in classes_below(tree, above) for member in members):
            names.insert(0, above)
        above = parent.get(above)
    return names


def exhaustive_groups(
    tree: Names, sets: Names, names: tuple[str, ...], labels: Iterable[str]
) -> dict[str, tuple[str, ...]]:
    """Groups that leave none of the classes `labels` out: what lies below each of `names`, and
    `other`; groups without a class are left out.

    A class that may be below one of the names and above it no other (`lmb`: a binary or a
    millisecond pulsar) is `other`.
    """
    groups: dict[str, tuple[str, ...]] = dict.fromkeys((*names, OTHER), ())
    for label in sorted(labels):
        above = names_above(tree, sets, label)
        group = next((name for name in above if name in names), OTHER)
        groups[group] = (*groups[group], label)
    return {name: members for name, members in groups.items() if members}


def place_in_words(tree: Names, sets: Names, label: str) -> str:
    """What lies above a class, from the top, and which classes it may be; '' where nothing is
    said."""
    which = [" or ".join(sets[label])] if label in sets else []
    return ", ".join([*names_above(tree, sets, label), *which])


def possible_groups(sets: Names, groups: Names, label: str) -> frozenset[str]:
    """The groups that a source of this class may be of; none where it may be of no group too."""
    group_of = {name: group for group, classes in groups.items() for name in classes}
    if label in group_of:
        return frozenset({group_of[label]})
    members = sets.get(label, ())
    if not members or not set(members) <= set(group_of):
        return frozenset()
    return frozenset(group_of[name] for name in members)
