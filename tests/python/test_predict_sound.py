"""`quatrain predict` on long recordings."""

import array
import os
import random
import subprocess
import wave

import pytest

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
if not PROGRAM:
    pytest.skip("the program is not built", allow_module_level=True)

RATE = 8000


def record(file, seconds):
    """Noise that is as loud as speech."""
    draw = random.Random(seconds)
    second = array.array("h", (draw.randint(-3000, 3000) for _ in range(RATE))).tobytes()
    with wave.open(str(file), "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(RATE)
        for _ in range(seconds):
            out.writeframesraw(second)


@pytest.fixture(scope="module")
def sounds(tmp_path_factory):
    """A corpus of two words, and recordings of two minutes, which are several pieces of a network that hears both ways, and of half an hour."""
    folder = tmp_path_factory.mktemp("sounds")
    for name, seconds in {"one": 1, "two": 2, "short": 120, "long": 1800}.items():
        record(folder / f"{name}.wav", seconds)
    (folder / "train.tsv").write_text("one.wav\tyes\ntwo.wav\tno\n")
    (folder / "test.tsv").write_text("short.wav\tyes\n")
    return folder


@pytest.mark.parametrize("directions", [1, 2])
def test_half_an_hour_needs_the_memory_of_two_minutes(sounds, tmp_path, directions):
    settings = f"task.data=tsv model.hidden=16 train.steps=2 train.threads=1 model.bidirectional={str(directions == 2).lower()}"
    words = [word for key in settings.split() for word in ("--set", key)]
    run = tmp_path / "run"
    done = subprocess.run([PROGRAM, "train", "yesno", "--data", sounds, "--out", run, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

    def peak(name):
        process = subprocess.Popen([PROGRAM, "predict", run], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        process.stdin.write(f"{sounds / name}.wav\n")
        process.stdin.flush()
        assert process.stdout.readline().endswith("\n")
        with open(f"/proc/{process.pid}/status") as status:
            seen = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
        process.communicate()
        assert process.returncode == 0
        return seen

    short, long = peak("short"), peak("long")
    print(f"{directions}: {short} kB, {long} kB")
    assert long < short + 8_000  # kB
