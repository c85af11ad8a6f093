"""A process that has the libraries loaded and forks one child for every line of its input.

A line is a JSON list: the arguments of `job_worker.run`. The answer is a line with the child's exit
code and what it wrote to stderr. For tests that need a loader's settings (LD_PRELOAD) for what they
fork, which multiprocessing's own server cannot be given.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
import tempfile

import job_worker


def main() -> None:
    for name in job_worker.PRELOAD:
        importlib.import_module(name)
    for line in sys.stdin:
        with tempfile.TemporaryFile("w+", errors="replace") as stderr:
            child = os.fork()
            if child == 0:
                os.dup2(stderr.fileno(), 2)
                try:
                    job_worker.run(*json.loads(line))
                except SystemExit as end:
                    os._exit(end.code or 0)
                os._exit(0)
            _, status = os.waitpid(child, 0)
            stderr.seek(0)
            answer = json.dumps([os.waitstatus_to_exitcode(status), stderr.read()])
        print(answer, flush=True)


if __name__ == "__main__":
    main()
