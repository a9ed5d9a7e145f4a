"""Browse the report, with every image of the data set, in a web browser.

The page is that of boxscore report, with filters for all images by class, kind of mistake, score, IoU, size
and name. Each detector has its own page, with the same filters. It is served only to this machine, at an
address with a token; no files are written. Stop it with Ctrl-C or by closing the terminal.

Examples
--------
  boxscore view instances_val2017.json results.json --image-folder val2017
  boxscore view instances.json old.json new.json --image-folder images --open
  boxscore view VOC2007 results_dir --image-set test --protocol voc2007 --port 8000
"""

from __future__ import annotations

import argparse
from pathlib import Path

from boxscore._utils.progress import stage
from boxscore.cli.arguments import DETECTIONS, INPUTS, Option
from boxscore.cli.choices import readers
from boxscore.cli.output import remembered_warnings
from boxscore.cli.streams import say, show
from boxscore.extensions.shell.detectors import detector_names, evaluate_each
from boxscore.extensions.validation.digest_command import digest_of, say_findings

OPTIONS = (
    *(option.but(many=True) if option is DETECTIONS else option for option in INPUTS),
    Option("names", "names of the detectors, in order (default: file names)", many=True, metavar="NAME"),
    Option("port", "port to listen on (default: any free port)", kind=int, default=0, metavar="N"),
    Option(
        "open",
        "also open the address in a browser",
        kind=bool,
        default=False,
    ),
    Option("title", "title of the page", default=""),
    Option(
        "resamples",
        "0 leaves out the intervals, any other number includes them",
        kind=int,
        default=0,
        metavar="N",
    ),
)

WITHOUT = {"--memory-limit": "needs all detections in memory, because it shows the boxes of every image"}


def run(arguments: argparse.Namespace) -> int:
    """Read, evaluate each, and serve until interrupted."""
    from boxscore.extensions.pages.server import Server, Site
    from boxscore.extensions.pages.view import ReportOptions

    # Read and evaluate everything before the server starts.
    paths: list[Path] = arguments.detections
    names = detector_names(paths, arguments.names)
    with remembered_warnings(hold_box_forms=not arguments.strict) as messages:
        results = dict(zip(names, evaluate_each(paths, arguments), strict=True))
        digests = [
            digest_of(result, name=name if len(names) > 1 else "", warned=messages)
            for name, result in results.items()
        ]
    for digest in digests if arguments.strict else ():
        digest.refuse()
    # The gallery is empty, because the browser requests images.
    options = ReportOptions(
        title=arguments.title,
        warnings=messages.each if len(paths) == 1 else (),
        image_folder=arguments.image_folder,
        gallery=0,
        resamples=arguments.resamples,
        workers=readers(arguments),
    )
    stage("finding mistakes")
    site = Site(results, options)
    # Render each page once now, so that the first click is fast.
    with Server(site, port=arguments.port) as server:
        for number in range(len(results)):
            site.page(number)
        stage("")
        # The URL is the output; everything else goes to stderr.
        show(server.url)
        say_findings(digests)
        say("only this machine can open it; press Ctrl-C to stop")
        if arguments.open:
            _open(server.url)
        # Runs until a signal ends it.
        server.serve_forever()
    return 0


def _open(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        say("no browser found")
