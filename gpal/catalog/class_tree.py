"""A tree of classes, and what is said of the classes that one tells apart.

    tree   name -> what lies directly below it: classes, or other names of the tree
    sets   class -> the classes that a source of it may be of: it says no more than that

    tree = {"agn": ("blazar", "rdg"), "blazar": ("bll", "fsrq")}
    sets = {"bcu": ("bll", "fsrq")}

    fractions  class -> name -> which part of its sources turned out to be below that name

`groups` (name -> classes, as in `Catalog.groups`) are the classes told apart. A name of the tree
stands for the groups that lie below it with all their classes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from gpal.errors import InputError

__all__ = [
    "check_fractions",
    "check_tree",
    "classes_below",
    "coarser_classes",
    "exhaustive_groups",
    "group_fractions",
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
    for name, members in tree.items():
        if not members:
            raise InputError(f"classes.tree has no class below '{name}'; name some")
        seen, above = {name}, parent.get(name)
        while above is not None:
            if above in seen:
                raise InputError(f"'{above}' in classes.tree lies below itself; take it out there")
            seen.add(above)
            above = parent.get(above)
    for name, members in sets.items():
        if not members:
            raise InputError(f"classes.sets says of '{name}' no class that it may be; name some")


def check_fractions(tree: Names, label: str, fractions: Mapping[str, float]) -> None:
    """InputError for a name that is not in the tree, and for fractions that leave nothing over."""
    for name, fraction in fractions.items():
        if name not in tree:
            raise InputError(
                f"classes.fractions says of '{label}' how many are '{name}', which is no name of"
                " classes.tree"
            )
        if not 0 < fraction < 1:
            raise InputError(
                f"classes.fractions: that {fraction} of '{label}' are {name} is no fraction between"
                " 0 and 1"
            )
    below = {name: set(classes_below(tree, name)) for name in fractions}
    top = [name for name in fractions if not any(below[name] < above for above in below.values())]
    if sum(fractions[name] for name in top) >= 1:
        raise InputError(
            f"classes.fractions of '{label}': {', '.join(top)} leave nothing for what is none of"
            " them; they must add up to less than 1"
        )


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


def group_fractions(
    tree: Names, groups: Names, fractions: Mapping[str, float], counts: Mapping[str, int]
) -> dict[str, float]:
    """Fraction of each group among sources of which `fractions` are below names of the tree.

    Groups below one name share its fraction as they share the labelled sources, `counts`; `other`
    has what is left. {} where groups are not made of these names: where one is below none of them,
    or `other` has a part of one.
    """
    below = {name: {name, *classes_below(tree, name)} for name in fractions}
    shared: dict[str, list[str]] = {}
    for group, classes in groups.items():
        above = [name for name, inside in below.items() if set(classes) <= inside]
        if group != OTHER and not above:
            return {}
        if group != OTHER:
            shared.setdefault(min(above, key=lambda name: len(below[name])), []).append(group)
    taken = [below[name] for name in shared]
    cut = any(set(groups[OTHER]) & inside for inside in taken)
    if cut or len(set().union(*taken)) < sum(map(len, taken)):
        return {}
    found = {
        group: fractions[name] * counts[group] / sum(counts[member] for member in members)
        for name, members in shared.items()
        for group in members
    }
    return found | {OTHER: 1 - sum(found.values())}


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
