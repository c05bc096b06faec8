"""Files that a call should not be able to use against the machine, as texts."""

from __future__ import annotations

TWICE = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry twice(.param .u64 p, .param .u64 q) {
  .reg .b32 %r1; .reg .f32 %f1; .reg .b64 %rd<6>;
  ld.param.u64 %rd1, [p]; ld.param.u64 %rd2, [q];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3; add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f1, [%rd4];
  add.f32 %f1, %f1, %f1;
  st.global.f32 [%rd5], %f1;
  ret;
}
"""
ENDLESS = """
.version 7.0
.target sm_80
.address_size 64
.visible .entry endless(.param .u64 p) {
  .reg .b64 %rd1; .reg .pred %p1;
  mov.u64 %rd1, 1;
AGAIN:
  add.u64 %rd1, %rd1, 1;
  setp.ne.u64 %p1, %rd1, 0;
  @%p1 bra AGAIN;
  ret;
}
"""
REFERENCES = """
import numpy as np

def twice(x):
    return 2 * x

def thrice(x):
    return 3 * x

def huge(x):
    return 2 * x + np.ones(10 * 2**30 // 8)[0] * 0

def endless(x):
    while True:
        pass
"""
# Each line that is printed says what was tried, and whether it could be done.
TRIES = """
import ctypes, os, resource, signal, socket, sys
from pathlib import Path

OUTSIDE, PORT = Path({outside!r}), {port}

def reads(): (OUTSIDE / "secret").read_text()
def reads_through_proc(): Path(f"/proc/self/root{{OUTSIDE}}/secret").read_text()
def reads_connections(): Path("/proc/self/net/tcp").read_text()
def reads_mounts(): Path("/proc/self/mountinfo").read_text()
def reads_passwords(): Path("/etc/passwd").read_text()
def reads_the_servers_environment(): Path(f"/proc/{{os.getppid()}}/environ").read_bytes()
def lists(): os.listdir(OUTSIDE)
def writes_outside(): (OUTSIDE / "made").write_text("made")
def writes_inside(): Path("made").write_text("made")
def writes_over(): Path("twice.ptx").write_text("")
def appends(): Path("twice.ptx").open("a").write("x")
def truncates(): os.truncate("twice.ptx", 0)
def removes(): os.remove("twice.ptx")
def renames(): os.rename("twice.ptx", "other.ptx")
def links(): os.link("twice.ptx", os.environ["TMPDIR"] + "/linked")
def makes_a_link(): os.symlink("/etc/passwd", os.environ["TMPDIR"] + "/record.json")
def makes_a_pipe(): os.mkfifo(os.environ["TMPDIR"] + "/pipe")
def changes_modes(): os.chmod("twice.ptx", 0o777)
def changes_times(): os.utime("twice.ptx", (0, 0))
def changes_owners(): os.chown("twice.ptx", os.getuid(), os.getgid())
def sets_attributes(): os.setxattr("twice.ptx", "user.made", b"made")
def connects(): socket.create_connection(("127.0.0.1", PORT), 2)
def opens_a_socket(): socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
def opens_a_local_socket(): socket.socket(socket.AF_UNIX)
def ends_the_server(): os.kill(os.getppid(), signal.SIGKILL)
def asks_whether_the_server_is_there(): os.kill(os.getppid(), 0)
def raises_its_limits(): resource.setrlimit(resource.RLIMIT_AS, (-1, -1))
def limits_the_server(): resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (9, 9))
def goes_first(): os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
def leaves_the_group(): os.setpgid(0, 0)
def hides_its_files():
    if ctypes.CDLL(None, use_errno=True).prctl(4, 0, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")
def leaves_a_child_to_the_server():
    child = ctypes.CDLL(None, use_errno=True).syscall({clone}, 0x8000 | 17, 0, 0, 0, 0)
    if child < 0:
        raise OSError(ctypes.get_errno(), "clone")
    if child == 0:
        os._exit(0)
def makes_memory_without_a_limit(): os.memfd_create("made")
def traces():
    if ctypes.CDLL(None, use_errno=True).ptrace(16, os.getppid(), 0, 0):
        raise OSError(ctypes.get_errno(), "ptrace")
def makes_a_namespace():
    if ctypes.CDLL(None, use_errno=True).unshare(0x10000000):
        raise OSError(ctypes.get_errno(), "unshare")

for each in list(globals().values()):
    if callable(each) and getattr(each, "__module__", "") == __name__:
        try:
            each()
        except (OSError, ValueError) as error:
            print(f"refused: {{each.__name__}}", flush=True)
        else:
            print(f"done: {{each.__name__}}", flush=True)
"""
TRIED = TRIES.count("\ndef ")
FORKS = """
import os
while True:
    try:
        os.fork()
    except OSError:
        pass
"""
# A process of a group and session of its own, as daemons make one.
STAYS = """
import os
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.execv("/bin/sleep", ["sleep", {seconds!r}])
"""
FLOODS = """
while True:
    print("x" * 65536, flush=True)
"""
FILLS = """
import os
from pathlib import Path
folder = Path(os.environ["TMPDIR"])
for number in range(10**9):
    (folder / f"file{number}").write_bytes(bytes(1 << 20))
"""
MANY_FILES = """
import os
from pathlib import Path
folder = Path(os.environ["TMPDIR"])
for number in range(10**9):
    (folder / f"file{number}").touch()
"""
GROWS = """
import os
blocks = []
for _ in range(4):
    os.fork()
while True:
    blocks.append(b"x" * (1 << 24))
"""

# Files without a name, which are in no folder: their sizes are those of the limit each.
_HELD = """
import mmap, os, time
folder = os.environ["TMPDIR"]
held = []
for number in range(60):
    HOW
    os.posix_fallocate(file, 0, 15 << 20)
    KEEP
    time.sleep(0.02)
print("held all of them", flush=True)
"""
_OPENED = (
    "file = os.open(f'{folder}/{number}', os.O_RDWR | os.O_CREAT); os.unlink(f'{folder}/{number}')"
)
UNLINKED = _HELD.replace("HOW", _OPENED).replace("KEEP", "held.append(file)")
NAMELESS = _HELD.replace("HOW", "file = os.open(folder, os.O_RDWR | os.O_TMPFILE)").replace(
    "KEEP", "held.append(file)"
)
MAPPED = NAMELESS.replace("held.append(file)", "held.append(mmap.mmap(file, 4096)); os.close(file)")
THREADS = """
import threading, time
threading.stack_size(65536)
for _ in range(20000):
    threading.Thread(target=time.sleep, args=(100,), daemon=True).start()
"""
# It does without the signal that its parent's end is, and so do its children.
DETACHED = """
import ctypes, os, time
for _ in range(3):
    os.fork()
ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
while True:
    time.sleep(1)
"""
