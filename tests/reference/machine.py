"""What a measurement was taken on."""
import datetime
import os
import pathlib

# Models of AMD's processors by family, as Linux tells them apart (arch/x86/kernel/cpu/amd.c): many call themselves "AMD EPYC" only.
GENERATIONS = {"Zen 3": (25, ((0x00, 0x0F), (0x20, 0x5F))),
               "Zen 4": (25, ((0x10, 0x1F), (0x60, 0xAF))),
               "Zen 5": (26, ((0x00, 0x2F), (0x40, 0x4F), (0x60, 0x7F)))}
WHOLE_ZEN_5 = ((0x00, 0x1F), (0x40, 0x4F))  # servers and desktops; some of the others have units of 256 bits


def fields(cpuinfo):
    """What the text of /proc/cpuinfo says about the first processor."""
    pairs = (line.partition(":") for line in cpuinfo.partition("\n\n")[0].splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}


def lies_in(ranges, model):
    return any(first <= model <= last for first, last in ranges)


def of_amd(family, model, flags):
    """'Zen 4: AVX-512 in two halves of 256 bits, with dot products of bf16'"""
    generation = next((name for name, (its, ranges) in GENERATIONS.items() if its == family and lies_in(ranges, model)), "")
    if "avx512f" not in flags:
        units = "AVX2, no units for bf16" if "avx2" in flags else ""
    else:
        width = {"Zen 4": " in two halves of 256 bits", "Zen 5": " in units of 512 bits" if lies_in(WHOLE_ZEN_5, model) else ""}
        units = "AVX-512" + width.get(generation, "") + (", with dot products of bf16" if "avx512_bf16" in flags else "")
    return ": ".join(filter(None, (generation, units)))


def of_intel(flags):
    if "amx_bf16" in flags:
        return "AMX"
    if "avx512f" in flags:
        return "AVX-512" + (" with dot products of bf16" if "avx512_bf16" in flags else "") + ", no AMX"
    return "AVX2, no units for bf16" if "avx2" in flags else ""


def described(cpuinfo):
    """The processor's name, and in brackets what it multiplies with where the name leaves that open."""
    known = fields(cpuinfo)
    flags = set(known.get("flags", "").split())
    vendor, units = known.get("vendor_id"), ""
    if vendor == "AuthenticAMD":
        units = of_amd(int(known.get("cpu family", 0)), int(known.get("model", 0)), flags)
    elif vendor == "GenuineIntel":
        units = of_intel(flags)
    return known.get("model name", "unknown processor") + (f" ({units})" if units else "")


def cpuinfo_here():
    return pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")


def processor():
    """As the programs write it into run.json."""
    return fields(cpuinfo_here()).get("model name", "unknown processor")


def today_here():
    """'2026-01-31, Some Processor (its units), 2 cores'"""
    return f"{datetime.date.today()}, {described(cpuinfo_here())}, {os.cpu_count()} cores"
