"""`gpal learn`: labelling campaigns that last. Thin: it calls gpal.active."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpal.cli.common import (
    Classes,
    Cuts,
    Features,
    InputNoise,
    Likelihood,
    NumInducing,
    Schema,
    Seed,
    Source,
    chosen,
    open_catalog,
    start_tensorflow,
)
from gpal.cli.observing import Airmass, Latitude, Limits, Times, conditions
from gpal.cli.simulate import STRATEGY, RelearnEvery, simulate
from gpal.errors import InputError

if TYPE_CHECKING:
    from gpal.active.campaign.campaign import Campaign
    from gpal.active.campaign.ranking import Target

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="markdown",
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Which sources to look at next: campaigns that last, and studies of how well they work.",
)

Session = Annotated[
    Path,
    typer.Option(
        "--session", "-s", metavar="FOLDER", envvar="GPAL_SESSION", help="The campaign's folder."
    ),
]
Who = Annotated[
    str | None,
    typer.Option(metavar="NAME", show_default="your user name", help="Who, for the history."),
]

app.command()(simulate)


@app.command()
def start(
    source: Source,
    session: Session = Path("campaign"),
    strategy: Annotated[str, typer.Option(metavar="NAME", help=STRATEGY)] = "entropy",
    schema: Schema = None,
    features: Features = "default",
    classes: Classes = None,
    cuts: Cuts = None,
    likelihood: Likelihood = None,
    input_noise: InputNoise = None,
    n_inducing: NumInducing = None,
    relearn_every: RelearnEvery = 20,
    seed: Seed = 0,
    who: Who = None,
) -> None:
    """Start a campaign in a new folder.

    ```
    gpal learn start 4fgl-dr4 --session blazars --strategy margin
    gpal learn next --session blazars
    gpal learn label "4FGL J0612.9+1150" bll --session blazars
    ```
    """
    from gpal.active.campaign.campaign import Campaign

    catalog = open_catalog(source, schema, features, cuts, classes)
    start_tensorflow()
    parameters = chosen(
        likelihood=likelihood, input_noise=input_noise, n_inducing=n_inducing, random_state=seed
    )
    with Campaign.start(
        catalog,
        session,
        parameters=parameters,
        strategy=strategy,
        relearn_every=relearn_every,
        who=_user(who),
    ) as campaign:
        known = int((campaign.table.label != "").sum())
        targets = int(campaign.table.target.sum())
    typer.echo(f"{session}: {known} labelled sources, {targets} to choose from")


@app.command(name="next")
def next_targets(
    session: Session = Path("campaign"),
    number: Annotated[int, typer.Option("--number", "-n", min=1, help="How many.")] = 10,
    top: Annotated[
        bool, typer.Option("--top", help="The highest scores, even if they are alike.")
    ] = False,
    gain: Annotated[
        bool,
        typer.Option(
            "--gain",
            help="Also what error bars half as long would tell of the class, in nats (`halved`);"
            " a label tells the entropy.",
        ),
    ] = False,
    limit: Limits = None,
    latitude: Latitude = None,
    airmass: Airmass = None,
    times: Times = None,
    who: Who = None,
) -> None:
    """The sources to look at next, and why.

    *score* is the strategy's and ranks them. *entropy* is averaged over the error bars and the sum
    of *measure* (the error bars), *model* (too few labels of such sources) and *overlap* (the
    classes themselves). A model is fitted if labels have come in.
    """
    from rich.console import Console
    from rich.table import Table

    with _open(session) as campaign:
        observing = conditions(campaign.table, limit, latitude, airmass, times)
        start_tensorflow()
        targets = campaign.ask(number, observing=observing, diverse=not top, who=_user(who))
        gains = campaign.gains(targets) if gain else []
        strategy = campaign.store.setting("strategy")
    view = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for header in ("", "source", "ra", "dec"):
        view.add_column(header, justify="left" if header == "source" else "right", no_wrap=True)
    numbers = ("score", "entropy", "measure", "model", "overlap")
    for header in (*numbers, *(("halved",) if gain else ())):
        view.add_column(header, justify="right")
    for name in targets[0].probabilities:
        view.add_column(f"p({name})", justify="right")
    for rank, target in enumerate(targets, 1):
        view.add_row(str(rank), *_cells(target, *gains[rank - 1 : rank]))
    # Wider than the terminal rather than cut off; a name in brackets is no markup.
    width = max(Console().width, 60 + 10 * len(view.columns))
    Console(width=width, markup=False, emoji=False).print(view)
    typer.echo(f"score: {strategy}{', per unit of time' if times else ''}")


@app.command()
def label(
    source: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="Name, or use --at or --csv.")
    ] = None,
    class_name: Annotated[
        str | None,
        typer.Argument(metavar="[CLASS]", help="Its class; `other` for none of the classes."),
    ] = None,
    session: Session = Path("campaign"),
    at: Annotated[
        tuple[float, float] | None,
        typer.Option(metavar="RA DEC", help="Position in degrees, instead of a name."),
    ] = None,
    csv: Annotated[
        Path | None,
        typer.Option(metavar="FILE.csv", help="Columns name,label or ra,dec,label; all or none."),
    ] = None,
    radius: Annotated[float, typer.Option(min=0, help="Degrees, for positions.")] = 0.1,
    replace: Annotated[
        bool, typer.Option("--replace", help="Change a label that is there already.")
    ] = False,
    note: Annotated[str, typer.Option(help="Kept in the history.")] = "",
    who: Who = None,
) -> None:
    """Record what a source is. Safe once this returns.

    ```
    gpal learn label "4FGL J0612.9+1150" bll
    gpal learn label --at 209.5088 -77.8233 fsrq
    gpal learn label --csv night-3.csv
    ```
    """
    from gpal.active.campaign.campaign import Given
    from gpal.active.campaign.label_files import read_labels

    if at is not None and class_name is None:
        source, class_name = None, source
    one = class_name is not None and (source is None) != (at is None)
    if not (one if csv is None else source is None and class_name is None and at is None):
        raise InputError("give SOURCE CLASS, or --at RA DEC CLASS, or --csv FILE")
    with _open(session) as campaign:
        table = campaign.table
        if csv is not None:
            given = read_labels(csv, table, _user(who), radius, note)
        else:
            if source is not None:
                row = table.row(source)
            else:
                assert at is not None
                row = table.row_at(*at, radius)
            given = [Given(int(table.ids[row]), str(class_name), _user(who), note)]
        new = campaign.label(given, replace=replace)
        names = dict(zip(table.ids.tolist(), table.names.tolist(), strict=True))
    if csv is None:
        word = "is" if new[0] else "was already, nothing to do:"
        typer.echo(f"{names[given[0].source]} {word} {class_name}")
    else:
        typer.echo(f"{sum(new)} labels recorded, {len(new) - sum(new)} were there already")


@app.command()
def undo(
    source: Annotated[
        str | None, typer.Argument(metavar="[SOURCE]", help="Its label; without: the last one.")
    ] = None,
    session: Session = Path("campaign"),
    who: Who = None,
) -> None:
    """Take a label back. The history keeps both."""
    with _open(session) as campaign:
        number = None
        if source is not None:
            number = int(campaign.table.ids[campaign.table.row(source)])
        name, value = campaign.undo(number, _user(who))
    typer.echo(f"{name} is no longer {value}")


@app.command()
def status(
    session: Session = Path("campaign"),
    last: Annotated[int, typer.Option(min=0, help="Events of the history to show.")] = 5,
) -> None:
    """Where the campaign stands, and whether more labels still change the answer."""
    with _open(session) as campaign:
        labels, models = campaign.store.labels(), campaign.store.models()
        present = campaign.labels()
        pool = int((campaign.table.target & (present == "")).sum())
        title = campaign.table.provenance.get("title") or campaign.table.provenance.get("file")
        typer.echo(f"{title}, strategy {campaign.store.setting('strategy')}")
        typer.echo(f"{len(labels)} labels of this campaign, {pool} sources to choose from")
        for name in (*campaign.table.classes, "other"):
            own = sum(value[0] == name for value in labels.values())
            typer.echo(f"  {name:8s} {int((present == name).sum()):6d} in all {own:6d} new")
        behind = "; labels have come since" if campaign.behind else ""
        typer.echo(f"{len(models)} model versions{behind}")
        typer.echo(str(campaign.advice()))
        for event in campaign.store.history(last) if last else []:
            what = " ".join(str(part) for part in (event.name, event.label) if part)
            model = f" model {event.model}" if event.model else ""
            typer.echo(f"{event.time}  {event.who or '-':10s} {event.action:6s} {what}{model}")


@app.command()
def export(
    path: Annotated[
        Path, typer.Argument(metavar="FILE", help="Ends in .csv, .fits, .vot, .xml or .reg.")
    ],
    session: Session = Path("campaign"),
    labels: Annotated[
        bool, typer.Option("--labels", help="The labels given, instead of the targets.")
    ] = False,
    history: Annotated[
        bool, typer.Option("--history", help="Every question, label and model, instead.")
    ] = False,
    number: Annotated[
        int | None, typer.Option("--number", "-n", min=1, show_default="all", help="Targets.")
    ] = None,
    top: Annotated[
        bool, typer.Option("--top", help="With -n: the highest scores, even if they are alike.")
    ] = False,
    limit: Limits = None,
    latitude: Latitude = None,
    airmass: Airmass = None,
    times: Times = None,
) -> None:
    """Write the ranked targets, the labels or the history, for other programs.

    `-n 10` gives the targets that `gpal learn next -n 10` does; without `-n` the whole ranking.
    """
    from gpal.active.campaign.export import export_history, export_labels, export_targets

    of_targets = number or top or limit or times or latitude is not None or airmass is not None
    if labels + history + bool(of_targets) > 1:
        raise InputError(
            "--labels and --history exclude each other and the options of targets (-n, --top,"
            " --limit, --latitude, --times); export them one by one"
        )
    with _open(session) as campaign:
        if labels or history:
            count = (export_labels if labels else export_history)(campaign, path)
        else:
            observing = conditions(campaign.table, limit, latitude, airmass, times)
            diverse = number is not None and not top
            count = export_targets(campaign, path, number, observing=observing, diverse=diverse)
            if campaign.behind:
                typer.echo("labels have come since the model; see: gpal learn refit", err=True)
    typer.echo(f"{path}: {count} {'labels' if labels else 'events' if history else 'targets'}")


@app.command()
def refit(
    session: Session = Path("campaign"),
    full: Annotated[
        bool, typer.Option("--full", help="Learn the hyper-parameters again, too.")
    ] = False,
) -> None:
    """Fit the model to all labels so far."""
    with _open(session) as campaign:
        start_tensorflow()
        scored = campaign.refit(full)
    typer.echo(f"model {scored.number}: {scored.n_labels} labels")


@app.command()
def merge(
    source: Source,
    session: Session = Path("campaign"),
    schema: Schema = None,
    cuts: Annotated[
        list[str] | None,
        typer.Option(
            "--cut",
            metavar="CONDITION",
            show_default="the campaign's",
            help="Other cuts than so far, from now on; repeatable.",
        ),
    ] = None,
    who: Who = None,
) -> None:
    """Go on with a new release of the catalog; labels follow their sources."""
    from gpal.catalog import load_catalog

    with _open(session) as campaign:
        features = campaign.table.measurements.names
        catalog = load_catalog(source, schema=schema, features=features)
        result = campaign.merge(catalog, cuts, _user(who))
    typer.echo(
        f"{result['matched']} sources found again, {result['new']} new, {result['gone']} gone"
    )
    for name, ours in result["gone_labelled"]:
        typer.echo(f"{name}: '{ours}' here, not in the new release; the label is kept", err=True)
    for name, theirs, ours in result["conflicts"]:
        typer.echo(f"{name}: '{ours}' here, '{theirs}' in the new release; yours stays", err=True)


@app.command()
def report(
    session: Session = Path("campaign"),
    limit: Limits = None,
    latitude: Latitude = None,
    airmass: Airmass = None,
    times: Times = None,
) -> None:
    """Write report.html into the campaign's folder."""
    from gpal.report.campaign import render_campaign

    with _open(session) as campaign:
        observing = conditions(campaign.table, limit, latitude, airmass, times)
        typer.echo(render_campaign(campaign, observing))


def _open(session: Path) -> Campaign:
    from gpal.active.campaign.campaign import Campaign

    return Campaign(session)


def _user(who: str | None) -> str:
    if who is not None:
        return who
    try:
        return getpass.getuser()
    except (KeyError, OSError):  # a user id without a name, as in a container
        return ""


def _cells(target: Target, *gain: float) -> list[str]:
    parts = (target.entropy, target.measurement, target.model, target.overlap, *gain)
    return [
        target.name,
        f"{target.ra:.4f}",
        f"{target.dec:+.4f}",
        f"{target.score:.3f}",
        *(f"{part:.3f}" if part == part else "" for part in parts),
        *(f"{p:.3f}" for p in target.probabilities.values()),
    ]
