"""Lines that are shown of files that PTX names: those that the user named, or works on."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from warploom.errors import DeviceError
from warploom.ptx import load
from warploom.without_gpu.prepared import moved_texts, python_files

PTX = """.version 8.0
.target sm_90
.address_size 64
.file 1 "{file}"
.visible .entry k(.param .u64 p) {{
.reg .u64 %a; .reg .u32 %r;
.loc 1 2 1
ld.param.u64 %a, [p];
.loc 1 2 1
ld.global.u32 %r, [%a];
st.global.u32 [%a], %r;
ret;
}}
"""
SECRET = "first\nroot:secret\nthird\n"


def said(file: str, **named: object) -> str:
    """What an error of a launch shows: the load reads through no address."""
    kernel = load(PTX.format(file=file), "k.ptx", **named).kernel()  # type: ignore[arg-type]
    with pytest.raises(DeviceError) as error:
        kernel.launch(1, 1, [0])
    return str(error.value)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (tmp_path / "outside.cu").write_text(SECRET)
    (folder / "src" / "inside.cu").write_text(SECRET)
    monkeypatch.chdir(folder)
    return folder


def test_files_under_the_working_folder_are_shown(here: Path) -> None:
    assert "root:secret" in said("src/inside.cu")
    assert "root:secret" in said(str(here / "src" / "inside.cu"))


def test_files_elsewhere_are_not(here: Path) -> None:
    (here / "link.cu").symlink_to(here.parent / "outside.cu")
    (here / "folder").symlink_to(here.parent)
    (here / ".hidden").mkdir()
    (here / ".hidden" / "key").write_text(SECRET)
    outside = here.parent / "outside.cu"
    others = (str(outside), "../outside.cu", "src/../../outside.cu", "link.cu",
              "folder/outside.cu", ".hidden/key", f"{here}/.hidden/key")  # fmt: skip
    for name in others:
        assert "secret" not in said(name), name
        assert f"{Path(name).name}:2" in said(name)  # the place is told all the same
    assert "root:secret" in said(str(outside), named=[str(outside)])
    assert "root:secret" in said("link.cu", named=[str(outside)])
    assert "root:secret" in said(str(outside), texts={str(outside): SECRET})


def test_all_of_the_machine_is_no_working_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("/")
    assert "root:" not in said("/etc/passwd")
    assert "root:" not in said("etc/passwd")


def test_what_is_no_plain_file_is_not_waited_for(here: Path) -> None:
    os.mkfifo(here / "pipe.cu")
    with (here / "huge.cu").open("wb") as file:
        file.truncate(1 << 40)
    for name in ("pipe.cu", "huge.cu", "src", "/dev/zero", "no\\0file", "x" * 5000):
        assert "secret" not in said(name)


def test_a_folder_that_is_gone(here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert "secret" not in said(str(here / "src" / "inside.cu"))
    monkeypatch.chdir(here)


def test_the_file_of_a_python_kernel_is_one_that_the_user_named(tmp_path: Path) -> None:
    """Triton's and Numba's kernels: also where their file was imported in a way of its own."""
    file = tmp_path / "own.py"
    space: dict[str, object] = {}
    exec(compile("def f(): pass\n", str(file), "exec"), space)
    assert {str(file), __file__} <= python_files(space["f"])


def test_a_python_kernel_whose_file_was_moved_is_shown_where_it_lies_now(tmp_path: Path) -> None:
    """Triton's cache gives PTX of the same function that was compiled in another folder."""
    file = tmp_path / "own.py"
    file.write_text("def f(): pass\n")
    space: dict[str, object] = {}
    exec(compile(file.read_text(), str(file), "exec"), space)
    ptx = f'\t.file\t1 "/gone/own.py"\n.file 2 "/gone/other.py"\n.file 3 "{file}"\n'
    assert moved_texts(ptx, space["f"]) == {"/gone/own.py": "def f(): pass\n"}
