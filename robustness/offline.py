"""Run a command without a network: python robustness/offline.py make test-all.

The command runs in a network namespace with a loopback interface only. Needs Linux and root.
"""

import fcntl
import os
import shutil
import socket
import struct
import sys

SIOCGIFFLAGS, SIOCSIFFLAGS, IFF_UP = 0x8913, 0x8914, 0x1
INSIDE = "--inside"


def main(command: list[str]) -> None:
    """Enter a namespace, then set loopback up and execute the command."""
    if command[:1] != [INSIDE]:
        unshare = shutil.which("unshare")
        if unshare is None or os.geteuid() != 0:
            sys.exit("A network namespace needs Linux, unshare (util-linux) and root.")
        os.execv(unshare, [unshare, "--net", sys.executable, __file__, INSIDE, *command])
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        request = fcntl.ioctl(any_socket, SIOCGIFFLAGS, struct.pack("16sh14x", b"lo", 0))
        flags = struct.unpack("16sh14x", request)[1]
        fcntl.ioctl(any_socket, SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags | IFF_UP))
    os.environ["DHKAPPA_OFFLINE"] = "1"
    os.execvp(command[1], command[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
