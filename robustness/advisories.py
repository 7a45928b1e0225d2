"""Look up known vulnerabilities of the installed packages with pip-audit.

Without an answer from the registry this is reported and is no failure. A known vulnerability is a failure.
"""

import json
import subprocess
import sys

TIMEOUT = 600  # seconds
COMMAND = ["pip_audit", "--format", "json", "--progress-spinner", "off", "--skip-editable"]


def main() -> int:
    """Run pip-audit, and print what it found."""
    try:
        done = subprocess.run(
            [sys.executable, "-m", *COMMAND], capture_output=True, text=True, check=False, timeout=TIMEOUT
        )
    except subprocess.TimeoutExpired:
        return _no_answer(f"no answer after {TIMEOUT} seconds", "")
    try:
        packages = json.loads(done.stdout)["dependencies"]
    except (ValueError, KeyError, TypeError):
        return _no_answer(f"exit code {done.returncode}, no list of packages", done.stderr)
    answered = [package for package in packages if "vulns" in package]
    if not answered:
        reasons = sorted({package.get("skip_reason", "").partition(":")[0] for package in packages})
        return _no_answer(f"no answer for any of {len(packages)} packages ({', '.join(reasons)})", done.stderr)
    known = [(package, found) for package in answered for found in package["vulns"]]
    for package, found in known:
        fixed = ", ".join(found["fix_versions"]) or "no version"
        print(f"{package['name']} {package['version']}: {found['id']}, fixed in {fixed}")
    unknown = len(packages) - len(answered)
    print(f"pip-audit: {len(known)} known vulnerabilities in {len(answered)} packages; no answer for {unknown}.")
    return bool(known)


def _no_answer(reason: str, output: str) -> int:
    """Print why there is no answer, and the end of the output of pip-audit."""
    print(f"VULNERABILITIES NOT CHECKED: pip-audit: {reason}.")
    for line in output.splitlines()[-10:]:
        print(f"  pip-audit: {line}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
