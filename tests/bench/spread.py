"""A figure of several measurements as tables write it: the median, and in brackets how far the measurements lie apart."""
import statistics


def interval(values, form="{:.2f}", unit=""):
    """'1.19x (1.17 to 1.20)'. A single measurement has no brackets."""
    values = list(values)
    middle = form.format(statistics.median(values)) + unit
    return middle if len(values) < 2 else f"{middle} ({form.format(min(values))} to {form.format(max(values))})"


def ratios(values, others):
    """Round by round: each side's figure beside the one that was taken next to it."""
    return [value / other for value, other in zip(values, others)]
