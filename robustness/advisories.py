"""Ask for known holes in the packages that are installed here; say so where nobody can be asked.

pip-audit asks the registry. On a machine without a way to it, or with a registry that does not know, there is no
answer: that is said, and is no failure. A hole that is known is one.
"""

import json
import subprocess
import sys

PATIENCE = 600  # seconds


def main() -> int:
    """Run pip-audit and tell what it found."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return _nobody(f"it had no answer after {PATIENCE} seconds", "")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return _nobody(f"it ended with {done.returncode} and without a list of packages", done.stderr)
    asked = [package for package in packages if "vulns" in package]
    if not asked:
        reasons = sorted({package.get("skip_reason", "").partition(":")[0] for package in packages})
        return _nobody(f"it has no answer on any of {len(packages)} packages ({', '.join(reasons)})", done.stderr)
    holes = [(package, hole) for package in asked for hole in package["vulns"]]
    for package, hole in holes:
        print(
            f"{package['name']} {package['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or '-'}"
        )
    print(f"pip-audit: {len(holes)} known holes in {len(asked)} packages; no answer on {len(packages) - len(asked)}.")
    return bool(holes)


def _nobody(why: str, complained: str) -> int:
    """Say that known holes could not be asked for, and why, with the end of what pip-audit said."""
    print(f"NOBODY COULD BE ASKED for known holes in the packages that are installed. Of pip-audit: {why}.")
    print(*(f"  pip-audit: {line}" for line in complained.splitlines()[-10:]), sep="\n", end="\n" if complained else "")
    return 0


if __name__ == "__main__":
    sys.exit(main())
