"""The sides of a row in turn: first the batches, then every repeat one round. What was measured before is not measured again."""
import batches
from batches import OutOfMemory
from devices import today
from session import Failed
from sides import Shape, measure, start, wait_until_started

PILOT = {"groups": 2, "every": 4}
FULL = {"groups": 4, "every": 8}


def search_batches(session, row, found, save):
    for side in row.sides:
        tried = found["tried"].setdefault(side.name, {})

        def speed(batch):
            try:
                return measure(session, side, Shape(row.model, row.length, batch, **PILOT))["tokens_per_s"]
            finally:
                session.close_peers()  # one that rests holds weights

        try:
            batches.search(speed, tried, row.first_batch, row.largest_batch)
            if batches.fastest(tried) is None:
                found["failed"][side.name] = f"out of memory at B = {row.first_batch}"
        except Failed as failure:
            found["failed"][side.name] = str(failure)
        finally:
            save()


def cases_of(row, found):
    """Which sides run at which batch: at its own best, and at the one that all have room for."""
    if row.batches:
        return [(side, batch) for batch in row.batches for side in row.sides]
    cases = []
    same = batches.shared(found["tried"].values())
    for side in row.sides:
        own = batches.fastest(found["tried"].get(side.name, {}))
        cases += [(side, batch) for batch in sorted({own, same} - {None})] if own else []
    return cases


def samples_of(found, side, batch):
    return [one for one in found["samples"] if one["side"] == side.name and one["batch"] == batch]


def run_round(session, row, found, repeat, save, grouping):
    for side, batch in cases_of(row, found):
        if len(samples_of(found, side, batch)) > repeat or side.name in found["failed"]:
            continue
        try:
            sample = measure(session, side, Shape(row.model, row.length, batch, **grouping))
            found["samples"].append({"side": side.name, "batch": batch, "date": today(), **sample})
        except OutOfMemory:
            found["failed"][side.name] = f"out of memory at B = {batch}"
        except Failed as failure:
            found["failed"][side.name] = str(failure)
        finally:
            save()


def start_all(session, row, found, repeats, grouping):
    """One after the other would take as long as their compilations together; the rounds begin when all are there. One that found no
    room beside the others starts again when its turn comes."""
    wanted = [(side, Shape(row.model, row.length, batch, **grouping)) for side, batch in cases_of(row, found)
              if len(samples_of(found, side, batch)) < repeats]
    for act in (start, wait_until_started):
        for side, shape in wanted:
            act(session, side, shape)


def sides_of(row):
    return [{"name": side.name, "kind": side.kind, "flags": list(side.flags), "against": list(side.against)} for side in row.sides]


def compare(session, row, found, repeats, save, every=FULL["every"]):
    """Fills `found`: what the batches' search tried, the samples in the order they were taken, and what failed. Raises NoTime."""
    grouping = {**FULL, "every": every}
    found.update({"tried": found.get("tried", {}), "samples": found.get("samples", []), "failed": {}})
    known = {side["name"]: side for side in (*found.get("sides", []), *sides_of(row))}
    found.update(model=row.model, length=row.length, wanted=row.wanted, sides=list(known.values()))
    if not row.batches:
        search_batches(session, row, found, save)
    try:
        start_all(session, row, found, repeats, grouping)
        for repeat in range(repeats):
            run_round(session, row, found, repeat, save, grouping)
    finally:
        session.close_peers()
