"""What came out of a recording: a report and a SQLite file a rank, whatever nsys could not convert where it ran."""
import fcntl
import os
import pathlib
import re
import shutil
import sqlite3
import subprocess

from nsys_options import ROOT, fail, say


def recordings_in(folder):
    return [path for path in folder.glob("*")
            if re.fullmatch(r"rank_\d+\.(nsys-rep|qdstrm|sqlite)|recording-\d+", path.name)] if folder.is_dir() else []


def lock_of(folder):
    """Held until this program ends; None where another call records into the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lock = open(folder / "lock", "a")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        lock.close()
        return None
    except OSError as error:  # file systems of clusters may have no locks
        if (folder / "ranks").exists():  # of a call that has not ended, or was killed
            lock.close()
            return None
        say(f"{folder} cannot be locked ({error.strerror}): see that no other call records into it")
    return lock


def free_output():
    for folder in [ROOT / "runs/nsys", *(ROOT / f"runs/nsys-{number}" for number in range(2, 10_000))]:
        lock = None if recordings_in(folder) else lock_of(folder)
        if lock and not recordings_in(folder):  # of a call that has ended in between
            return folder, lock
    fail("--output: name a folder: runs/nsys to runs/nsys-9999 hold recordings")


def prepared_output(options):
    """The folder for the files, without those of an earlier call; nobody else records into it until this program ends."""
    try:
        output, options.lock = (options.output, lock_of(options.output)) if options.output else free_output()
    except OSError as error:
        fail(f"--output: {error.filename or options.output}: {error.strerror}")
    if options.lock is None:
        fail(f"--output: another call records into {output}: name another folder")
    old = recordings_in(output)
    if old and not options.overwrite:
        fail(f"--output: {output} holds an earlier recording: name another folder, or say --overwrite")
    try:
        for path in old:
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.rmtree(output / "ranks", ignore_errors=True)
        (output / "ranks").mkdir(parents=True)
    except OSError as error:
        fail(f"--output: {error.filename or output}: {error.strerror}")
    return output.absolute()


def importer_beside(nsys):
    for folder in pathlib.Path(nsys).resolve().parents:
        for depth in ("", "*/", "*/*/", "*/*/*/"):
            found = next((path for path in folder.glob(f"{depth}QdstrmImporter") if os.access(path, os.X_OK)), None)
            if found:
                return found
        if (folder / "opt").is_dir() or folder == pathlib.Path("/"):
            return None
    return None


def convert(nsys, output):
    """Reports of what the recorder could not convert where it ran."""
    streams = sorted([*output.glob("rank_*.qdstrm"), *output.glob("recording-*/rank_*.qdstrm")])
    for stream in streams:
        report = stream.with_suffix(".nsys-rep")
        if not report.exists():
            importer = importer_beside(nsys)
            if importer is None:
                fail(f"{stream} was recorded, and there is no QdstrmImporter beside {nsys} to convert it")
            done = subprocess.run([importer, "--input-file", stream], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            if done.returncode != 0 or not report.exists():
                say(f"{stream} could not be converted: {' '.join(done.stdout.splitlines()[-3:])}")
                continue
        stream.unlink()
    if streams:
        say("converted here what nsys could not convert (\"Importer error status\" above is about that)")


def export(nsys, reports):
    """Whether all could be: one of a rank that was killed may be cut short."""
    whole = True
    for report in reports:
        database = report.with_suffix(".sqlite")
        done = subprocess.run([nsys, "export", "--type", "sqlite", "--force-overwrite", "true", "--output", database, report],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            whole = False
            say(f"{report} could not be exported: {' '.join(done.stdout.splitlines()[-3:])}")
    return whole


def steps_in(database):
    """How many steps' ranges a SQLite file holds; nothing where it cannot be asked."""
    try:
        with sqlite3.connect(f"{database.absolute().as_uri()}?mode=ro", uri=True) as base:
            query = ("select count(*) from NVTX_EVENTS n left join StringIds s on n.textId = s.id "
                     "where n.end is not null and coalesce(s.value, n.text) like 'ProfilerStep#%'")
            return base.execute(query).fetchone()[0]
    except sqlite3.Error:
        return None


def finish(options, nsys, output, code):
    convert(nsys, output)
    reports = sorted([*output.glob("rank_*.nsys-rep"), *output.glob("recording-*/rank_*.nsys-rep")])
    if not reports:
        if code not in (0, 75):
            fail(f"the run failed ({code}) before anything was recorded", code)
        if options.interactive:
            fail(f"nothing was recorded: {output}/start was not called while training ran")
        fail(f"nothing was recorded: did the run reach step {options.first}?" if options.first else "nothing was recorded")
    whole = not options.export or export(nsys, reports)
    if len(reports) % options.ranks and not options.launch_words and not options.slurm:
        say(f"warning: {options.ranks} ranks ran, {len(reports)} files were recorded here")
    if options.export and options.steps not in (None, "all"):
        found, wanted = steps_in(reports[0].with_suffix(".sqlite")), options.last - options.first + 1
        if found is not None and found < wanted:
            say(f"warning: {found} of {wanted} steps were recorded: the run ended before step {options.last}")
    say(f"{len(reports)} report(s) in {output}")
    return code or (0 if whole else 1)
