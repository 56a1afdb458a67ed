"""Prints every number that the README and docs show.

    python tools/benchmark.py video --seeds 1 2 3           fits to videos of known motions (hours; --quick: half an hour)
    python tools/benchmark.py tracks --seeds 1 2 3          tracks of videos of known motions, without controllers
    python tools/benchmark.py silhouettes --seeds 1 2       masks of rendered footage against the exact ones
    python tools/benchmark.py weizmann --results F          fits to real masks by a camera that is estimated; goes on where F ends
    python tools/benchmark.py weizmann-tracks --results F   their tracks alone; goes on where F ends
    python tools/benchmark.py camera --seeds 1 2 3          cameras that are estimated from the person's heads and feet
    python tools/benchmark.py keypoints --seeds 1 2 3       tracks with and without 2D keypoints
    python tools/benchmark.py decoding                      how much faster than real time 1080p at 60 a second is read
    python tools/benchmark.py travel                        who travels, who stays, and how fast belts run
    python tools/benchmark.py motion                        motion files as the body performs them: error, feet, time
    python tools/benchmark.py accuracy --seeds 1 2 3        fits to motion capture: joint error, falls, effort
    python tools/benchmark.py terms --quick --clips jump    the same fit without this or that term, prior or bound
    python tools/benchmark.py physics                       speed of the closed loop and of PD fragments
    python tools/benchmark.py fit --seeds 1 2 3             what the fit of a walk costs: time and memory
    python tools/benchmark.py scaling                       what a second worker is worth
    python tools/benchmark.py carry --quick --seeds 1 2 3 4  how long controllers stay up in other worlds than their own
    python tools/benchmark.py learning --results F          feedback by Guided SAMCON: cost, and who stands how long
    python tools/benchmark.py learned-push --clips walk     the largest pushes that learned cycles survive
    python tools/benchmark.py gaits --seeds 1               a walk, a run and the ways between, from fitted controllers
    python tools/benchmark.py rising --seeds 1              who gets up after a fall and walks on
    python tools/benchmark.py company --seeds 1             four who collide and fall: how much faster than real time
    python tools/benchmark.py push --quick --seeds 1 2 3    the largest pushes that controllers survive
    python tools/benchmark.py places --quick --seeds 1 2 3  controllers in the environments that the package ships
    python tools/benchmark.py servo                         softness of the servo rows: precision against speed
    python tools/benchmark.py actuation                     who holds the root: dense tracking without any fit
    python tools/benchmark.py export                        what is lost in files for other programs

Rows are `name, engine, value, unit, seed`. `--engine` chooses engines; one whose library is absent has
dashes. `--json` prints one object a line; `--results FILE` also appends them there, and
`--table-of FILE…` prints the rows of such files instead of running anything: tables may fill over several runs.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from benchmarks import (
    cameras,
    carry,
    decoding,
    exports,
    fits,
    gaits,
    keypoints,
    learning,
    loops,
    motions,
    physics,
    pushes,
    retargeting,
    rising,
    silhouettes,
    terms,
    tracks,
    travel,
    videos,
    weizmann,
)
from benchmarks.rows import Row, Table, print_table

from mocap2ctrl.errors import Mocap2CtrlError
from mocap2ctrl.simulation.choose import ENGINES

TABLES = {
    "video": Table(videos.video, ("",), across=True, clips=tuple(videos.CASES), note=videos.NOTE),
    "silhouettes": Table(
        silhouettes.silhouettes, ("footage",), clips=tuple(silhouettes.CONDITIONS), note=silhouettes.NOTE
    ),
    "weizmann": Table(weizmann.weizmann, ("sequence",), clips=weizmann.SEQUENCES, note=weizmann.NOTE),
    "decoding": Table(decoding.decoding, ("footage",), note=decoding.NOTE),
    "travel": Table(travel.travel, ("clip",), clips=travel.CLIPS, note=travel.NOTE),
    "camera": Table(cameras.cameras, ("walk",), clips=tuple(cameras.CASES), note=cameras.NOTE),
    "keypoints": Table(keypoints.keypoints, ("video", "evidence"), clips=tuple(keypoints.CASES), note=keypoints.NOTE),
    "tracks": Table(tracks.rendered_tracks, ("",), across=True, clips=tracks.RENDERED, note=tracks.RENDERED_NOTE),
    "weizmann-tracks": Table(
        tracks.weizmann_tracks, ("sequence", "prior"), clips=weizmann.SEQUENCES, note=tracks.WEIZMANN_NOTE
    ),
    "motion": Table(retargeting.motion, ("file",), clips=retargeting.CLIPS, note=retargeting.NOTE),
    "accuracy": Table(motions.accuracy, ("",), across=True, clips=tuple(motions.CASES), note=motions.NOTE),
    "terms": Table(terms.terms, ("fit",), clips=terms.CLIPS, note=terms.NOTE),
    "physics": Table(physics.physics, note=physics.NOTE),
    "fit": Table(fits.fit, note=fits.FIT_NOTE),
    "scaling": Table(fits.scaling, note=fits.SCALING_NOTE),
    "carry": Table(carry.carry, ("fitted in", "world"), note=carry.NOTE),
    "learning": Table(learning.learning, ("skill",), clips=tuple(learning.CASES), note=learning.NOTE),
    "learned-push": Table(
        learning.pushes, ("skill", "torque bounds"), clips=tuple(learning.CASES), note=learning.PUSHES_NOTE
    ),
    "gaits": Table(gaits.gaits, ("",), note=gaits.NOTE),
    "rising": Table(rising.rising, ("lies",), note=rising.NOTE),
    "company": Table(rising.company, ("company",), note=rising.COMPANY_NOTE),
    "push": Table(pushes.pushes, ("controller", "torque bounds"), note=pushes.NOTE),
    "places": Table(pushes.places, ("environment", "engine"), note=pushes.PLACES_NOTE),
    "servo": Table(loops.servo, ("solimp",)),
    "actuation": Table(loops.actuation, ("motion", "root held by", "α", "γ / 120")),
    "export": Table(exports.export, ("file", "read by"), clips=exports.CLIPS, note=exports.NOTE),
}


def main(arguments: list[str] | None = None) -> int:
    """Runs one table, or prints rows measured before."""
    options = _options(arguments)
    table = TABLES[options.table]
    if options.table_of:
        lines = [line for path in options.table_of for line in path.read_text("utf-8").splitlines()]
        print_table(table, [Row(**json.loads(line)) for line in lines])
        return 0
    try:
        return _printed(table, options)
    except Mocap2CtrlError as error:
        print(f"{options.table}: {error}", file=sys.stderr)
        return 2


def _printed(table: Table, options: argparse.Namespace) -> int:
    """Prints rows as they come, or a table of them at the end, and appends them to a file of results."""
    rows = []
    for row in table.rows(options):
        rows.append(row)
        line = json.dumps(asdict(row))
        if options.results:
            with options.results.open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        if options.json:
            print(line, flush=True)
    if rows and not options.json:
        print_table(table, rows)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=TABLES)
    parser.add_argument("--quick", action="store_true", help="a small version, for a look")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1])
    parser.add_argument("--clips", nargs="+", metavar="NAME", help="some of a table's fits")
    parser.add_argument(
        "--engine",
        choices=ENGINES,
        nargs="+",
        help="of the tables physics, fit, scaling, push and places (default: all), and carry (default: mujoco)",
    )
    parser.add_argument("--budget", default="default", help="of fits")
    parser.add_argument(
        "--set",
        nargs="+",
        metavar="NAME=VALUE",
        help="other settings of the fits of accuracy, carry, places, push, terms, video and weizmann: descents=0; of learning: "
        "phase_reset=yes, hardening=0",
    )
    parser.add_argument("--torque-limit", type=float, default=1.0, help="factor on the torque bounds of fits")
    parser.add_argument("--workers", type=int, help="processes (default: all cores)")
    parser.add_argument("--results", type=Path, help="append rows to this file")
    parser.add_argument(
        "--table-of", type=Path, nargs="+", metavar="FILE", help="print the rows of these files; run nothing"
    )
    options = parser.parse_args(arguments)
    known = TABLES[options.table].clips
    for name in options.clips or ():
        if name not in known:
            parser.error(f"--clips {name}: table {options.table} has {', '.join(known) or 'none to choose from'}")
    return options


if __name__ == "__main__":
    sys.exit(main())
