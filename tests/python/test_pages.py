"""Every Python block of README.md and docs/ runs as it is printed, page by page, one block after the other."""

import math
import os
import re
import runpy
import struct
import subprocess
import wave
import zlib
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parent.parent.parent
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
BLOCKS = {page.name: re.findall(r"^```(python|sh)\n(.*?)^```", page.read_text(), re.DOTALL | re.MULTILINE) for page in PAGES}
# Here Python goes on from what the program made: blocks that begin with a call of it run too.
BOTH = ["python.md"]


@pytest.mark.parametrize("page", [name for name, blocks in BLOCKS.items() if any(language == "python" for language, _ in blocks)])
def test_blocks_run_as_printed(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    one_process = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "0"}  # what torchrun sets
    for name, value in one_process.items():
        monkeypatch.setenv(name, value)
    names = {"__name__": "page"}
    for number, (language, block) in enumerate(BLOCKS[page], 1):
        if language == "python":
            exec(compile(block, f"{page}, block {number}", "exec"), names)
        elif page in BOTH and block.startswith("quatrain "):
            if not PROGRAM:
                pytest.skip("QUATRAIN_PROGRAM names no program")
            subprocess.run(["bash", "-ec", f"quatrain() {{ '{PROGRAM}' \"$@\"; }}\n{block}"], check=True)
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        torch.distributed.destroy_process_group()


def test_names_of_the_package_are_the_present_ones():
    names = runpy.run_path(str(ROOT / "scripts" / "python_api"))
    assert (ROOT / "docs" / "python_api.md").read_text() == names["page"](), "print the page anew with scripts/python_api"


def test_arguments_that_go_by_name_alone_stand_behind_a_star():
    arguments = runpy.run_path(str(ROOT / "scripts" / "python_api"))["arguments"]
    assert arguments(lambda a, b=1, *, c=2, d: 0) == "(a, b, *, c, d)"
    assert arguments(lambda *, c, **rest: 0) == "(*, c, **rest)"
    assert arguments(lambda a, *others, c=2, **rest: 0) == "(a, *others, c, **rest)"
    assert arguments(lambda a: 0) == "(a)" and arguments(lambda: 0) == "()"


def test_links_lead_somewhere():
    """Files that pages name are there, and so are the headings."""

    def headings(page):
        titles = re.findall(r"^#+ (.*)$", page.read_text(), re.MULTILINE)
        return {re.sub(r"[^\w\- ]", "", title.strip().lower()).replace(" ", "-") for title in titles}

    for page in [*PAGES, *ROOT.glob("*.md")]:
        for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            if not name.startswith(("https:", "http:")):
                assert target.exists(), f"{page.name}: {link}"
                assert not heading or heading in headings(target), f"{page.name}: {link}"


def commands(text):
    """The lines that call the program: indented, in a block, or after a prompt; \\ goes on."""
    text = text.replace("\\\n", " ")
    for line in re.findall(r"^(?:    |\$ |)(?:\$ )?(?:[\w/.]*/)?(quatrain [a-z].*)$", text, re.MULTILINE):
        yield line.split("  #")[0].split("|")[0].strip()


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_commands_have_the_options_that_pages_give_them():
    """No page shows a command or an option that there is not: each is looked for in the command's own help."""
    helps = {}
    seen = 0
    for page in PAGES:
        for line in commands(page.read_text()):
            words = line.split()[1:]
            command = words[:2] if words[0] in ("bench", "recipes", "info") and len(words) > 1 and words[1].isalpha() else words[:1]
            key = " ".join(command)
            if key not in helps:
                done = subprocess.run([PROGRAM, *command, "--help"], capture_output=True, text=True)
                assert done.returncode == 0, f"{page.name}: {line}"
                helps[key] = done.stdout
            for option in re.findall(r"(?<=\s)--[a-z-]+", " " + line):
                assert re.search(rf"{option}\b", helps[key]), f"{page.name}: '{line}': {key} has no {option}"
            seen += 1
    assert seen >= 15


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_the_commands_of_translating_run_as_printed(tmp_path):
    """The first block of translation.md, on letters and the same letters in capitals. Only sizes are smaller."""
    words = [a + b + c for a in "abcdefgh" for b in "ijklmnop" for c in "qrstuvwx"]
    for number, (split, count) in enumerate([("train", 300), ("dev", 10), ("test", 10)]):
        lines = [" ".join(words[(31 * i + 7 * j + number) % len(words)] for j in range(2 + i % 4)) for i in range(count)]
        (tmp_path / "corpus").mkdir(exist_ok=True)
        (tmp_path / f"corpus/{split}.de").write_text("\n".join(lines) + "\n")
        (tmp_path / f"corpus/{split}.en").write_text("\n".join(lines).upper() + "\n")
    block = re.search(r"^```sh\n(.*?)^```", (ROOT / "docs" / "translation.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    lines = block.replace("\\\n", " ").splitlines()
    assert len(lines) == 5
    small = {"vocabulary.size": 80, "model.width": 32, "model.feed_forward": 32, "train.steps": 30, "train.evaluate_every": 6, "train.threads": 1}
    lines[0] += "".join(f" --set {key}={value}" for key, value in small.items())
    script = f"set -e\nquatrain() {{ '{PROGRAM}' \"$@\"; }}\n" + "\n".join(lines)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mean of" in done.stdout and "5 checkpoints, of steps 6, 12, 18, 24 and 30" in done.stdout and "BLEU" in done.stdout
    assert len((tmp_path / "translated.en").read_text().splitlines()) == 10
    assert {"model.bin", "source.spm", "target.spm"} <= {file.name for file in (tmp_path / "made").iterdir()}


def write_tones(folder, splits):
    """Recordings of three words that are tones, as train.tsv, dev.tsv and test.tsv."""
    hertz = {"low": 400, "mid": 1000, "high": 2300}
    folder.mkdir()
    for split, count in splits.items():
        lines = []
        for number in range(count):
            words = [list(hertz)[(number * 5 + i * i) % 3] for i in range(1 + number % 3)]
            samples = [0] * 400
            for word in words:
                samples += [round(8000 * math.sin(2 * math.pi * hertz[word] * i / 8000)) for i in range(1200)] + [0] * 400
            name = f"{split}{number}.wav"
            with wave.open(str(folder / name), "wb") as file:
                file.setparams((1, 2, 8000, 0, "NONE", ""))
                file.writeframes(struct.pack(f"<{len(samples)}h", *samples))
            lines.append(f"{name}\t{' '.join(words)}\n")
        (folder / f"{split}.tsv").write_text("".join(lines))


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_the_commands_of_speech_run_as_printed(tmp_path):
    """The first block of speech.md, on tones. Only sizes are smaller."""
    write_tones(tmp_path / "corpus", {"train": 12, "dev": 3, "test": 3})
    for new, old in {"first": "test0", "second": "test1"}.items():
        (tmp_path / f"corpus/{new}.wav").write_bytes((tmp_path / f"corpus/{old}.wav").read_bytes())
    block = re.search(r"^```sh\n(.*?)^```", (ROOT / "docs" / "speech.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    lines = block.splitlines()
    assert len(lines) == 3
    small = {"model.hidden": 16, "features.bands": 24, "train.epochs": 1, "train.threads": 1}
    lines[0] += "".join(f" --set {key}={value}" for key, value in small.items())
    script = f"set -e\nquatrain() {{ '{PROGRAM}' \"$@\"; }}\n" + "\n".join(lines)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "error rate" in done.stdout
    assert (tmp_path / "runs/mine/test.errors.txt").read_text().startswith("%WER ")


def write_png(file, side, colour):
    """A square of one colour."""
    rows = (b"\0" + bytes(colour) * side) * side
    chunks = {b"IHDR": struct.pack(">2I5B", side, side, 8, 2, 0, 0, 0), b"IDAT": zlib.compress(rows), b"IEND": b""}
    parts = [struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data)) for name, data in chunks.items()]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"\x89PNG\r\n\x1a\n" + b"".join(parts))


@pytest.mark.skipif(not PROGRAM, reason="QUATRAIN_PROGRAM names no program")
def test_the_commands_of_images_run_as_printed(tmp_path):
    """The first block of images.md, on pictures of one colour each. Only sizes are smaller."""
    for number in range(1, 21):
        write_png(tmp_path / f"pets/cat/{number:04}.png", 8, (200 + number, 40, 40))
        write_png(tmp_path / f"pets/dog/{number:04}.png", 8, (40, 40, 200 + number))
    for name in ("cat", "dog"):
        (tmp_path / f"pets/{name}/0001.png").rename(tmp_path / f"pets/{name}/0001.jpg")  # the first bytes tell what it is
    block = re.search(r"^```sh\n(.*?)^```", (ROOT / "docs" / "images.md").read_text(), re.DOTALL | re.MULTILINE)[1]
    lines = block.splitlines()
    assert len(lines) == 3
    small = {"task.side": 8, "augmentation.padding": 2, "model.widths": "'4 4 4 4'", "train.steps": 2, "train.batch": 8, "train.threads": 1}
    lines[0] += "".join(f" --set {key}={value}" for key, value in small.items())
    script = f"set -e\nquatrain() {{ '{PROGRAM}' \"$@\"; }}\n" + "\n".join(lines)
    done = subprocess.run(["bash", "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "class=dog" in done.stdout
    assert (tmp_path / "runs/pets/test.confusions.tsv").read_text().startswith("class\tanswer\tcount\n")


def test_every_page_with_cpp_is_compiled():
    """The tests of CMake compile and run C++ blocks: tests/readme lists the pages."""
    listed = (ROOT / "tests" / "readme" / "CMakeLists.txt").read_text()
    pages = [page for page in PAGES if "```cpp\n" in page.read_text()]
    assert [page.name for page in pages if page.name not in listed.split("endfunction()")[1]] == []
