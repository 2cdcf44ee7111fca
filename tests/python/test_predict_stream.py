"""`quatrain predict` as a stream: a stop in the middle, and a million lines."""

import os
import signal
import subprocess
import time

import pytest

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
if not PROGRAM:
    pytest.skip("the program is not built", allow_module_level=True)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A model that writes lines of lines."""
    folder = tmp_path_factory.mktemp("predict") / "run"
    settings = "model.width=32 model.feed_forward=32 train.steps=2 train.evaluate_every=0 train.threads=1 decode.longest=8"
    words = [word for key in settings.split() for word in ("--set", key)]
    done = subprocess.run([PROGRAM, "train", "reverse", "--out", folder, *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return folder


def lines_of(count):
    return "".join(f"{'abcdefgh'[i % 8]} {'hgfedcba'[i % 7]}\n" for i in range(count))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_stop_leaves_whole_lines(run, tmp_path, how):
    count = 20000
    whole = subprocess.run([PROGRAM, "predict", run], input=lines_of(3000), capture_output=True, text=True, check=True).stdout
    (tmp_path / "lines.txt").write_text(lines_of(count))
    answers = tmp_path / "answers.txt"
    with open(tmp_path / "lines.txt") as source, open(answers, "w") as out:
        process = subprocess.Popen([PROGRAM, "predict", run], stdin=source, stdout=out, stderr=subprocess.PIPE, text=True)
        while answers.stat().st_size == 0:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(how)
        error = process.communicate()[1]
    written = answers.read_text()
    assert process.returncode != 0, error
    assert 0 < written.count("\n") < count
    assert written.endswith("\n")
    shorter = min(len(written), len(whole))
    assert written[:shorter] == whole[:shorter]


def peak(run, portion, count, *settings):
    """Memory (kB) that as many portions of 1,000 lines take, one after the other."""
    process = subprocess.Popen([PROGRAM, "predict", run, *settings], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    answers = 0
    for _ in range(count):
        process.stdin.write(portion)
        process.stdin.flush()
        for _ in range(1000):
            answers += process.stdout.readline().endswith("\n")
    with open(f"/proc/{process.pid}/status") as status:
        seen = next(int(line.split()[1]) for line in status if line.startswith("VmHWM"))
    process.communicate()
    assert process.returncode == 0
    assert answers == 1000 * count
    return seen


def test_a_million_lines_need_the_memory_of_a_few(run):
    """Most are empty, lest it take an hour: what is read, answered and written is as much for each."""
    portion = "a b c\n" + "\n" * 999
    few = peak(run, portion, 10)
    assert peak(run, portion, 1000) < few + 16_000  # kB


def test_fifty_thousand_translations_need_the_memory_of_a_few(run):
    """Their answers alone, if they were kept, would take 3,000 kB."""
    few = peak(run, lines_of(1000), 5, "--set", "decode.longest=2")
    assert peak(run, lines_of(1000), 50, "--set", "decode.longest=2") < few + 2_000  # kB
