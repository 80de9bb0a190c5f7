"""How nsys is called around each rank: programs that are written beside the recording, for all hosts to see."""
import json
import os
import pathlib
import shlex
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent

RANK_PROGRAM = """#!/bin/sh
# What launch/run and srun take for the trainer.
exec {call} "$@"
"""

SWITCH = """#!/usr/bin/env bash
# {what}s the recording of all ranks on this host.
[ -e {ranks}/running ] || {{ echo "{what}: the run has ended" >&2; exit 2; }}
sessions={ranks}/$(hostname)
[ -d "$sessions" ] || {{ echo "{what}: no rank of this run is on this host, or none has started yet" >&2; exit 2; }}
{check}
code=0
for rank in $(ls "$sessions"); do
  {command} > "$sessions.log" 2>&1 || {{ tail -n 3 "$sessions.log" >&2; code=1; }}
done
{after}
exit $code
"""


def write_program(path, text):
    path.write_text(text)
    path.chmod(0o755)


def words_of(*words):
    return " ".join(shlex.quote(str(word)) for word in words)


class Recorder:
    """How nsys is called around ranks."""

    def __init__(self, options, nsys, output):
        self.options, self.nsys, self.output, self.ranks = options, nsys, output, output / "ranks"
        self.session = f"sidestream-{os.getpid()}"
        self.tracing = [f"--trace={options.trace}", "--mpi-impl=openmpi"]
        if "--cuda-graph-trace" in subprocess.run([nsys, "profile", "--help"], capture_output=True, text=True).stdout:
            self.tracing.append("--cuda-graph-trace=node")
        self.sampling = ["--sample=none", "--cpuctxsw=none"]

    def write_programs(self):
        recorder = self.launch_words() if self.options.interactive else self.profile_words()
        write_program(self.ranks / "sidestream", RANK_PROGRAM.format(call=words_of(
            sys.executable, HERE / "nsys_rank.py", "rank", self.ranks, json.dumps(recorder), self.options.build / "sidestream")))
        if self.options.interactive:
            (self.ranks / "running").touch()
            self.write_switches()

    def profile_words(self):
        flags = [*self.tracing, *self.sampling, "--force-overwrite=true"]
        if self.options.steps != "all":
            by = "cudaProfilerApi" if self.options.cuda_profiler else "nvtx"
            flags += [f"--capture-range={by}", "--capture-range-end=stop"]
            flags += [] if self.options.cuda_profiler else ["--nvtx-capture=capture@sidestream"]
        return [str(self.nsys), "profile", *flags, *self.options.nsys_flags, f"--output={self.output}/rank_{{rank}}"]

    def launch_words(self):
        return [str(self.nsys), "launch", f"--session-new={self.session}-{{rank}}", *self.tracing, *self.options.nsys_flags]

    def write_switches(self):
        ranks, output = shlex.quote(str(self.ranks)), shlex.quote(str(self.output))
        write_program(self.output / "start", SWITCH.format(
            what="start", ranks=ranks,
            check='[ ! -e "$sessions.records" ] || { echo "start: it records already; to end that: stop" >&2; exit 2; }\n'
                  'number=$(( $(cat "$sessions.count" 2>/dev/null || echo 0) + 1 ))\n'
                  f'mkdir -p {output}/recording-$number',
            command=words_of(self.nsys, "start") + f' --session={self.session}-$rank {words_of(*self.sampling)}'
                                                   f' --output={output}/recording-$number/rank_$rank',
            after='if [ $code = 0 ]; then echo $number > "$sessions.count"; touch "$sessions.records"; '
                  f'else rmdir {output}/recording-$number 2>/dev/null; fi'))
        write_program(self.output / "stop", SWITCH.format(
            what="stop", ranks=ranks,
            check='[ -e "$sessions.records" ] || { echo "stop: nothing is being recorded; to begin: start" >&2; exit 2; }',
            command=words_of(self.nsys, "stop") + f" --session={self.session}-$rank",
            after='rm -f "$sessions.records"\n[ $code = 1 ] || echo "recorded; files are converted when the run has ended"'))
