"""A clean copy of an SQLite export of Nsight Systems: a new file, which gets the rows that readers need and nothing else.

What is not copied was never in the file: no free page of it can hold an environment.
"""
import os
import re
import sqlite3
import urllib.parse

from scrub_files import WRITING, Problem, rank_in, result_at
from scrub_text import LeftOver

# Beside tables of events, which have a start, and enumerations. All others go: environments, network cards, output, files.
KEPT_TABLES = {"TARGET_INFO_SESSION_START_TIME", "TARGET_INFO_GPU", "TARGET_INFO_GPU_METRICS", "TARGET_INFO_CUDA_DEVICE",
               "GPU_METRICS", "MPI_RANKS", "MPI_COMMUNICATORS", "NVTX_PAYLOAD_SCHEMAS", "NVTX_PAYLOAD_SCHEMA_ENTRIES",
               "CUPTI_ACTIVITY_KIND_CUDA_EVENT", "PROCESSES", "ThreadNames"}
OF_THE_EXPORT = {"EXPORT_META_DATA", "META_DATA_EXPORT"}  # versions stay; host, user and files go
OF_EVERY_PROCESS = {"SCHED_EVENTS", "COMPOSITE_EVENTS", "PROCESSES", "ThreadNames"}
DROPPED_COLUMNS = {"uuid", "luid", "localTime", "ctxswDevPath", "ctrlDevPath"}
PAYLOAD = "binaryData"
# Columns that hold numbers of StringIds.
TEXT_NUMBERS = {"nameId", "textId", "jsonTextId", "shortName", "demangledName", "mangledName"}
LETTERS = re.compile(rb"[\x20-\x7e]{8}")
NOT_WRITTEN = ("disk is full", "disk I/O error", "readonly database", "unable to open database")


def scrub_nsys(path, output, cleaner):
    with result_at(output / f"rank_{rank_in(path.name):05}.sqlite", path) as part:
        part.touch()
        try:
            copy = NsysCopy(path, part, cleaner)
            try:
                copy.fill()
            finally:
                copy.close()
        except sqlite3.Error as error:
            if any(text in str(error) for text in NOT_WRITTEN):
                raise Problem(f"{output}: writing the copy of {path} failed: {error}", WRITING) from error
            raise Problem(f"{path}: expected a whole trace, found one that cannot be read: {error}") from error
        if copy.problem:
            raise Problem(f"{path}: {copy.problem}")


def quoted(path):
    """As SQLite wants it in an address; a name of a file may be no valid text."""
    return urllib.parse.quote(os.fsencode(path.resolve()))


def name(text):
    return '"' + text.replace('"', '""') + '"'


class NsysCopy:
    def __init__(self, source, target, cleaner):
        self.problem = None
        self._cleaner = cleaner
        self._base = sqlite3.connect(f"file:{quoted(target)}", uri=True, isolation_level=None)
        self._base.create_function("clean_text", 1, self._text, deterministic=True)
        self._base.create_function("clean_payload", 1, self._payload, deterministic=True)
        for setting in ("main.journal_mode = OFF", "main.synchronous = OFF", "temp_store = MEMORY"):
            self._base.execute(f"PRAGMA {setting}")
        # Immutable: nothing is written beside the original.
        self._base.execute("ATTACH ? AS source", (f"file:{quoted(source)}?mode=ro&immutable=1",))

    def close(self):
        self._base.close()

    def fill(self):
        self._columns = {table: self._columns_of(table) for table, in self._base.execute(
            "SELECT name FROM source.sqlite_master WHERE type = 'table'").fetchall()}
        kept = [table for table in self._columns if self._is_kept(table)]
        self._base.execute("BEGIN")
        self._note_recorded_processes(kept)
        for table in kept:
            self._copy(table, self._rows_that_stay(table))
        if {"id", "value"} <= set(self._columns.get("StringIds", {})):
            numbers = [f"SELECT {name(column)} FROM main.{name(table)}"
                       for table in kept for column in self._columns[table] if column in TEXT_NUMBERS]
            self._copy("StringIds", f"id IN ({' UNION '.join(numbers) or 'NULL'})")
        self._base.execute("COMMIT")

    def _columns_of(self, table):
        """{name: declared type}"""
        return {row[1]: re.sub(r"\W", "", row[2]) for row in self._base.execute(f"PRAGMA source.table_info({name(table)})")}

    def _is_kept(self, table):
        return "start" in self._columns[table] or table.startswith("ENUM_") or table in KEPT_TABLES | OF_THE_EXPORT

    def _owner(self, table):
        """Where a row says its process."""
        return next((column for column in ("globalTid", "globalPid") if column in self._columns[table]), None)

    def _note_recorded_processes(self, kept):
        """An export lists every process of the machine; those with an event are the recorded ones."""
        self._base.execute("CREATE TEMP TABLE recorded (process UNIQUE)")
        self._base.execute("INSERT INTO recorded VALUES (0)")
        for table in kept:
            if "start" in self._columns[table] and self._owner(table) and table not in OF_EVERY_PROCESS:
                self._base.execute(f"INSERT OR IGNORE INTO recorded SELECT DISTINCT {self._owner(table)} >> 24 "
                                   f"FROM source.{name(table)} WHERE {self._owner(table)} IS NOT NULL")

    def _rows_that_stay(self, table):
        if table in OF_THE_EXPORT:
            return "name LIKE 'EXPORT_PRODUCT%' OR name LIKE 'EXPORT_SCHEMA%'" if "name" in self._columns[table] else "0"
        if table in OF_EVERY_PROCESS and self._owner(table):
            return f"coalesce({self._owner(table)}, 0) >> 24 IN (SELECT process FROM recorded)"
        return "1"

    def _copy(self, table, condition):
        columns = self._columns[table]
        self._base.execute(f"CREATE TABLE main.{name(table)} ({', '.join(f'{name(one)} {kind}' for one, kind in columns.items())})")
        self._base.execute(f"INSERT INTO main.{name(table)} SELECT {', '.join(map(cleaned, columns))} "
                           f"FROM source.{name(table)} WHERE {condition}")

    def _text(self, raw):
        try:
            return self._cleaner.checked(raw.decode("utf-8", "replace"))
        except LeftOver as problem:  # an exception would not come through SQLite
            self.problem = self.problem or str(problem)
            return None

    @staticmethod
    def _payload(raw):
        """Numbers of a range stay, as bytes or pairs of digits; a structure with a text in it goes."""
        try:
            content = bytes.fromhex(raw.decode("ascii"))
        except ValueError:
            content = raw
        if LETTERS.search(content):
            return None
        return raw if content is raw else raw.decode("ascii")


def cleaned(column):
    """A column declared as a number may hold a text all the same."""
    value = name(column)
    if column in DROPPED_COLUMNS:
        return "NULL"
    if column == PAYLOAD:
        return f"CASE WHEN typeof({value}) IN ('text', 'blob') THEN clean_payload(CAST({value} AS BLOB)) ELSE {value} END"
    return f"CASE typeof({value}) WHEN 'text' THEN clean_text(CAST({value} AS BLOB)) WHEN 'blob' THEN NULL ELSE {value} END"
