"""Unpacks a wheel into an environment without pip: unpack_wheel.py FILE.whl ENVIRONMENT SITE_PACKAGES."""
import pathlib
import sys
import zipfile

wheel, environment, packages = sys.argv[1:4]
with zipfile.ZipFile(wheel) as archive:
    for item in archive.infolist():
        if item.is_dir():
            continue
        parts = pathlib.PurePosixPath(item.filename).parts
        target = pathlib.Path(packages, *parts)
        if parts[0].endswith(".data") and len(parts) > 2:
            roots = {"data": environment, "scripts": f"{environment}/bin", "purelib": packages, "platlib": packages}
            target = pathlib.Path(roots[parts[1]], *parts[2:])
        target.parent.mkdir(parents=True, exist_ok=True)
        mode = (item.external_attr >> 16) & 0o777
        target.write_bytes(archive.read(item))
        target.chmod(mode or 0o644)
    names = archive.namelist()
    entries = [name for name in names if name.endswith(".dist-info/entry_points.txt")]
    text = archive.read(entries[0]).decode() if entries else ""

# Console scripts, as pip would write them.
section = None
for line in text.splitlines():
    line = line.strip()
    if line.startswith("["):
        section = line
    elif section == "[console_scripts]" and "=" in line:
        name, place = (word.strip() for word in line.split("=", 1))
        module, function = place.split(":")
        script = pathlib.Path(environment, "bin", name)
        script.write_text(f"#!{environment}/bin/python\nimport sys\nfrom {module} import {function}\nsys.exit({function}())\n")
        script.chmod(0o755)
