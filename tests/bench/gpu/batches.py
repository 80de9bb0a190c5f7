"""The batch that a side is fastest with: doubled until memory does not suffice."""


MEMORY_CODE = 8  # of the trainer, and of the peer


class OutOfMemory(Exception):
    pass


def search(measure, tried, first, largest):
    """Fills `tried`, tokens per second by batch, up to the batch that does not fit (None) or the largest one. What is there
    already is not measured again, so that a search that was cut off goes on."""
    batch = first
    while batch <= largest:
        if batch not in tried:
            try:
                tried[batch] = measure(batch)
            except OutOfMemory:
                tried[batch] = None
        if tried[batch] is None:
            return
        batch *= 2


def fastest(tried):
    """None where nothing fits."""
    fitting = {batch: speed for batch, speed in tried.items() if speed is not None}
    return max(fitting, key=fitting.get, default=None)


def shared(tried_by_side):
    """The largest batch that every side has room for; sides that have room for none are left out."""
    fitting = [{batch for batch, speed in tried.items() if speed is not None} for tried in tried_by_side]
    fitting = [batches for batches in fitting if batches]
    return max(set.intersection(*fitting), default=None) if fitting else None
