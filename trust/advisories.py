"""Ask for known holes in the packages that are installed here; say so where nobody can be asked.

pip-audit asks the registry. On a machine without a way to it, or with a registry that does not know, there is no
answer: that is said, and is no failure. A hole that is known is one.
"""

import json
import subprocess
import sys


def main() -> int:
    """Run pip-audit and tell what it found."""
    command = [sys.executable, "-m", "pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
        packages = json.loads(done.stdout)["dependencies"]
    except (subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        print(f"pip-audit could not ask: {error}.")
        return 0
    asked = [package for package in packages if "vulns" in package]
    holes = [(package, hole) for package in asked for hole in package["vulns"]]
    for package, hole in holes:
        print(
            f"{package['name']} {package['version']}: {hole['id']}, mended in {', '.join(hole['fix_versions']) or '-'}"
        )
    print(f"pip-audit: {len(holes)} known holes in {len(asked)} packages; no answer on {len(packages) - len(asked)}.")
    return bool(holes)


if __name__ == "__main__":
    sys.exit(main())
