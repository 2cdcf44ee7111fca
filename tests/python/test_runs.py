"""A run of the C++ program, loaded in Python: the C++ model itself."""

import copy
import json
import os
import pickle
import subprocess
import sys
import wave
from pathlib import Path

import pytest
import quatrain
import torch
import torch.nn.utils.parametrize
import torch.nn.utils.prune
from safetensors.torch import load_file, save_file

PROGRAM, TWIN = os.environ.get("QUATRAIN_PROGRAM"), os.environ.get("QUATRAIN_TWIN")
if not PROGRAM or not TWIN:
    pytest.skip("the trainer is not built", allow_module_level=True)

SMALL = ["agreement.train=200", "agreement.dev=50", "agreement.test=50", "train.steps=3", "train.evaluate_every=3", "model.layers=1"]


def train(folder, *settings):
    changes = [part for setting in (*SMALL, *settings) for part in ("--set", setting)]
    done = subprocess.run([PROGRAM, "train", "agreement", "--out", folder, *changes], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("settings", [["model.algebra=quaternion"], ["model.algebra=phm(4)", "model.norm=post", "model.packed=true", "model.dropout=0.1"]])
def test_the_same_logits(tmp_path, settings):
    train(tmp_path / "run", *settings)
    run = quatrain.load(tmp_path / "run")
    assert not run.model.training and len(run.labels) == 2 and run.vocabulary[:2] == ["<pad>", "<unk>"]
    with pytest.raises(ValueError, match="quatrain convert RUN"):
        quatrain.convert(run.model, "quaternion")
    tokens = torch.randint(1, len(run.vocabulary), (4, 9))
    tokens[1, 5:] = 0
    save_file({"x": tokens}, tmp_path / "input")
    done = subprocess.run([TWIN, "run", tmp_path / "run", tmp_path], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    with torch.no_grad():
        torch.testing.assert_close(run.model(tokens), load_file(tmp_path / "output")["y"], rtol=1e-6, atol=1e-6)


def write_tones(folder, **parts):
    """train.tsv and so on, of so many utterances of one to three words. Each speaker says one."""
    words, random = {"low": 400, "high": 2300}, torch.Generator().manual_seed(1)
    for part, count in parts.items():
        lines = []
        for i in range(count):
            said = [list(words)[k] for k in torch.randint(2, (1 + i % 3,), generator=random)]
            time = torch.arange(1200) / 8000
            tones = torch.cat([torch.cat([6000 * torch.sin(2 * torch.pi * words[word] * time), torch.zeros(400)]) for word in said])
            samples = (tones + 200 * torch.randn(tones.shape, generator=random)).to(torch.int16)
            with wave.open(str(folder / f"{part}{i}.wav"), "wb") as file:
                file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000), file.writeframes(samples.numpy().tobytes())
            lines.append(f"{part}{i}.wav\t{' '.join(said)}\t{part}{i}")
        (folder / f"{part}.tsv").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("by", ["training", "speaker", "utterance"])
def test_speech_is_normalised_as_in_training(tmp_path, by):
    """Files are answered as the evaluation heard them: all that is known of a file's speaker is the file."""
    write_tones(tmp_path, train=24, test=4)
    changes = ["task.data=tsv", f"features.normalise={by}", "features.bands=24", "features.stack=2", "model.hidden=32", "model.bidirectional=false"]
    changes += ["train.epochs=20", "train.batch=2", "train.rate=1e-2", "train.threads=1", "decode.beam=1"]
    command = [PROGRAM, "train", "yesno", "--data", tmp_path, "--out", tmp_path / "run", *(part for change in changes for part in ("--set", change))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run, files = quatrain.load(tmp_path / "run"), [tmp_path / f"test{i}.wav" for i in range(4)]
    answers = run.predict([str(file) for file in files])
    assert run.predict(files) == answers
    heard = (tmp_path / "run" / "test.hyp.trn").read_text().splitlines()
    assert [line.rsplit("(", 1)[0].rstrip() for line in heard] == answers
    assert any(answers)


def test_a_run_is_trained_further(tmp_path):
    """What torch trains are the C++ model's own parameters."""
    train(tmp_path / "run", "model.algebra=quaternion", "model.dropout=0")
    run = quatrain.load(tmp_path / "run")
    names = dict(run.model.named_parameters())
    assert set(names) == set(run.model.state_dict()) and "encoder.layers.0.attention.query.S" in names
    assert names["head.bias"] is run.model.head.bias and all(value.requires_grad for value in names.values())
    tokens, labels = torch.randint(1, 30, (8, 6)), torch.arange(8) % 2
    run.model.train()
    assert run.model.training
    optimizer = torch.optim.Adam(run.model.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        loss = torch.nn.functional.cross_entropy(run.model(tokens), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
    assert all(value.grad is not None for value in names.values())
    run.model.eval()
    with torch.no_grad():
        trained = run.model(tokens)
    other = quatrain.load(tmp_path / "run").model
    other.load_state_dict(run.model.state_dict())
    with torch.no_grad():
        torch.testing.assert_close(other(tokens, tokens == 0), trained, rtol=0, atol=0)
    with pytest.raises(TypeError, match="load the run once more"):
        copy.deepcopy(run.model)


def test_answers_are_the_programs(tmp_path):
    train(tmp_path / "run", "model.algebra=quaternion")
    lines = ["the keys to the cabinet", "", "a key"]
    done = subprocess.run([PROGRAM, "predict", tmp_path / "run"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    run = quatrain.load(tmp_path / "run")
    assert run.predict(lines) == done.stdout.splitlines()
    many = [f"{line} number {i}" for i in range(201) for line in lines]  # of several portions
    together = run.predict(many)
    assert len(together) == len(many)
    for i in (1, 300, 602):
        (label, *shares), (alone, *others) = together[i].split("\t"), run.predict(many[i : i + 1])[0].split("\t")
        assert label == alone and list(map(float, shares)) == pytest.approx(list(map(float, others)), abs=2e-4)
    with pytest.raises(ValueError, match="predict: line 601: .*NUL"):
        run.predict([*many[:600], "a\0b"])
    assert run.kind == "text_classification" and run.recipe["agreement"]["train"] == 200


def test_a_run_in_bfloat16_answers_in_bfloat16(tmp_path):
    train(tmp_path / "run", "model.algebra=quaternion", "train.precision=bfloat16", "train.steps=60", "train.evaluate_every=60")
    lines = [f"the keys to the cabinet {word}" for word in ("", "of", "and the key", "near the keys of", "the the the")]

    def programs():
        done = subprocess.run([PROGRAM, "predict", tmp_path / "run"], input="\n".join(lines) + "\n", capture_output=True, text=True)
        return done.stdout.splitlines()

    answers = programs()
    assert quatrain.load(tmp_path / "run").predict(lines) == answers
    # In single precision they are others, so that the comparison says something.
    recipe = tmp_path / "run" / "best" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("bfloat16", "float32"))
    subprocess.run([PROGRAM, "check", tmp_path / "run", "--accept"], capture_output=True, check=True)
    assert quatrain.load(tmp_path / "run").predict(lines) == programs() != answers


def test_what_is_no_text_is_refused(tmp_path):
    train(tmp_path / "run", "model.algebra=quaternion")
    run = quatrain.load(tmp_path / "run")
    for lines, said in (("abc", "a list of texts, got a single str"), ([None], "line 1 must be a text, got NoneType"), (["a", 3], "line 2 must be a text, got int")):
        with pytest.raises(TypeError, match=said) as error:
            run.predict(lines)
        assert "\n" not in str(error.value)
    with pytest.raises(TypeError, match="a list of texts, got a single PosixPath"):
        run.predict(tmp_path)
    for line in ("ab\udcff", Path("ab\udcff")):
        with pytest.raises(ValueError, match=r"^predict: line 2 is not valid Unicode: its character 3 is '\\udcff', a lone surrogate$"):
            run.predict(["the keys", line])
    for line, said in (("a\0b", "NUL"), ("a" * ((1 << 20) + 1), "at most 1048576 bytes")):
        with pytest.raises(ValueError, match="predict: line 2: .*" + said):
            run.predict(["the keys", line])
    with torch.no_grad():
        run.model.head.bias.fill_(float("inf"))
    with pytest.raises(ValueError, match="predict: line 1: the answer is not finite"):
        run.predict(["the keys"])


def replaced_by_prune(model):
    torch.nn.utils.prune.l1_unstructured(model.head, "bias", amount=1)


def replaced_by_parametrization(model):
    torch.nn.utils.parametrize.register_parametrization(model.head, "bias", torch.nn.Identity())


@pytest.mark.parametrize(
    "replace",
    [
        replaced_by_prune,
        replaced_by_parametrization,
        lambda model: model.load_state_dict({name: value.clone() for name, value in model.state_dict().items()}, assign=True),
        lambda model: setattr(model.head, "bias", torch.nn.Parameter(model.head.bias.detach().clone())),
        lambda model: setattr(model, "head", torch.nn.Linear(4, 4)),
    ],
)
def test_replaced_parameters_are_refused(tmp_path, replace):
    """C++ would go on with its own, whatever state_dict() says."""
    train(tmp_path / "run", "model.algebra=quaternion")
    run = quatrain.load(tmp_path / "run")
    tokens = torch.tensor([[2, 3, 4]])
    before = run.model(tokens)
    values = {name: value * 2 for name, value in run.model.state_dict().items()}
    with pytest.raises(RuntimeError, match="was replaced, and the C\\+\\+ model computes with its own"):
        torch.func.functional_call(run.model, values, (tokens,))
    assert torch.equal(run.model(tokens), before)
    replace(run.model)
    with pytest.raises(RuntimeError, match="was replaced"):
        run.model(tokens)
    with pytest.raises(RuntimeError, match="was replaced"):
        run.predict(["the keys"])


def test_what_cannot_be_done_to_a_run_is_refused_and_changes_nothing(tmp_path):
    train(tmp_path / "run", "model.algebra=quaternion")
    model = quatrain.load(tmp_path / "run").model
    tokens = torch.tensor([[2, 3, 4]])
    before = model(tokens)
    for move in (lambda: model.to("meta"), lambda: model.to_empty(device="meta")):
        with pytest.raises(TypeError, match="RunModel: the C\\+\\+ model cannot be moved to meta"):
            move()
    for copied in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="RunModel: the model of a run cannot be"):
            copied(model)
    head = copy.deepcopy(model.head).train()  # values alone
    assert torch.equal(head.bias, model.head.bias) and head.training and not model.head.training
    assert pickle.loads(pickle.dumps(model.head)).bias.shape == head.bias.shape
    for hook in ("forward_hook", "forward_pre_hook", "full_backward_hook", "full_backward_pre_hook"):
        with pytest.raises(RuntimeError, match="'head' is computed in C\\+\\+, which would call no hook on it"):
            getattr(model.head, "register_" + hook)(lambda *args: None)
    assert torch.equal(model.to("cpu").share_memory()(tokens), before)
    assert (model.double()(tokens) - before).abs().max() < 1e-5 and model(tokens).dtype == torch.float64
    assert torch.equal(model.float()(tokens), before)


def test_a_part_is_trained_or_evaluated_by_itself(tmp_path):
    changes = ["shapes.train=60", "shapes.dev=20", "shapes.test=20", "train.steps=2", "train.epochs=0", "train.batch=10", "train.evaluate_every=0"]
    command = [PROGRAM, "train", "shapes", "--out", tmp_path / "run", *(part for setting in changes for part in ("--set", setting))]
    assert subprocess.run(command, capture_output=True, text=True).returncode == 0
    model = quatrain.load(tmp_path / "run").model
    x = torch.randn(2, 4, 32, 32)
    with torch.no_grad():
        before = model(x)
        torch.testing.assert_close(model.double()(x.double()), before.double(), rtol=1e-4, atol=1e-4)  # its buffers too
        assert torch.equal(model.float()(x), before)
    norms = [part for name, part in model.named_modules() if "running_mean" in dict(part.named_buffers(recurse=False))]
    means = [part.running_mean.clone() for part in norms]
    model.train()
    for part in norms[1:]:
        part.eval()  # batch statistics that stay as they are
    model(x)
    assert [torch.equal(part.running_mean, mean) for part, mean in zip(norms, means)] == [False] + [True] * (len(norms) - 1)


@pytest.mark.parametrize("name", ["model.safetensors", "vocabulary.txt", "recipe.toml", "labels.txt"])
def test_damaged_files_are_refused(tmp_path, name):
    train(tmp_path / "run", "model.algebra=quaternion")
    file = tmp_path / "run" / "best" / name
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(RuntimeError, match=f"{name} has changed since it was written"):
        quatrain.load(tmp_path / "run")


def test_another_kind_is_loaded_alike(tmp_path):
    """The Hamilton product: A itself is what was learned."""
    run = [PROGRAM, "train", "hamilton", "--out", tmp_path / "run", "--set", "train.steps=600"]
    assert subprocess.run(run, capture_output=True).returncode == 0
    run = quatrain.load(tmp_path / "run")
    assert run.kind == "regression" and run.vocabulary == run.labels == []
    torch.testing.assert_close(run.model.map.A.round(), quatrain.algebra.get("quaternion").table.float())
    with torch.no_grad():
        product = run.model(torch.tensor([[0.0, 1, 0, 0, 0, 0, 1, 0]]))
    torch.testing.assert_close(product, torch.tensor([[0.0, 0, 0, 1]]), atol=1e-3, rtol=0)
    assert not run.model.map.S.requires_grad
    with pytest.raises(ValueError, match="line 1: a line must have 8 numbers"):
        run.predict(["1 2"])


@pytest.mark.parametrize("algebra", ["phm(4, trained_rank=6)", "phm(quaternion, trained_rank=8)", "wkp(4)", "tessarine"])
def test_every_notation_of_an_algebra_is_read(tmp_path, algebra):
    run = [PROGRAM, "train", "agreement", "--out", tmp_path / "run", "--set", f"model.algebra={algebra}"]
    run += [part for change in ("train.steps=1", "agreement.train=40", "agreement.dev=20", "agreement.test=20") for part in ("--set", change)]
    done = subprocess.run(run, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    specs = [part.layer_spec for part in quatrain.load(tmp_path / "run").model.modules() if hasattr(part, "layer_spec")]
    assert quatrain.algebra.Spec.parse(algebra) in specs


@pytest.mark.parametrize("kind", ["seq2seq", "language_model"])
def test_runs_of_pieces_answer_lines(tmp_path, kind):
    """What docs/python.md says of them: their words are C++'s alone, and the model takes numbers."""
    lines = ["a b c d", "", "d b"]
    changes = ["model.width=16", "model.heads=2", "model.feed_forward=16", "train.steps=2", "train.evaluate_every=2", "train.threads=1"]
    if kind == "seq2seq":
        command = ["train", "reverse"]
        changes += ["reverse.train=50", "reverse.dev=5", "reverse.test=5"]
    else:
        for part in ("train", "dev", "test"):
            (tmp_path / f"{part}.txt").write_text("a b c d e f g\n" * 200)
        command = ["train", "language_model", "--data", tmp_path]
        changes += ["task.data=text", "vocabulary.pieces=words", "model.layers=1", "model.algebra=real", "generate.tokens=5"]
    command = [PROGRAM, *command, "--out", tmp_path / "run", *(part for change in changes for part in ("--set", change))]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = quatrain.load(tmp_path / "run")
    assert run.kind == kind and run.vocabulary == run.labels == []
    done = subprocess.run([PROGRAM, "predict", tmp_path / "run"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    assert run.predict(lines) == done.stdout.splitlines() and len(lines) == 3
    tokens = torch.tensor([[2, 3, 4], [4, 3, 2]])
    scores = run.model(tokens, tokens[:, :2]) if kind == "seq2seq" else run.model(tokens)
    assert scores.shape[:2] == (2, 2 if kind == "seq2seq" else 3) and scores.requires_grad
    if kind == "seq2seq":
        nothing = torch.zeros(2, 3, dtype=torch.bool)
        torch.testing.assert_close(run.model(tokens, tokens[:, :2], nothing, nothing[:, :2]), scores)


def test_importing_leaves_the_trainer_alone():
    code = "import quatrain; print(open('/proc/self/maps').read().count('quatrain_training'))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.strip() == "0"


def test_metrics_for_tensorboard(tmp_path):
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    train(tmp_path / "run", "train.log_every=1")
    count = quatrain.write_tensorboard(tmp_path / "run", tmp_path / "events")
    events = reader.EventAccumulator(str(tmp_path / "events"))
    events.Reload()
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    losses = [(line["step"], line["loss"]) for line in lines if line["kind"] == "training"]
    shown = [(event.step, event.value) for event in events.Scalars("training/loss")]
    assert [step for step, _ in shown] == [step for step, _ in losses] == [1, 2, 3]
    assert [loss for _, loss in shown] == pytest.approx([loss for _, loss in losses], rel=1e-6)
    assert events.Scalars("dev/accuracy")[0].step == 3
    assert count == sum(len(events.Scalars(tag)) for tag in events.Tags()["scalars"])
    with pytest.raises(FileNotFoundError, match="holds no metrics.jsonl"):
        quatrain.write_tensorboard(tmp_path, tmp_path / "events")


def test_what_is_no_run_is_refused(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no 'best'"):
        quatrain.load(tmp_path)


def test_the_program_reads_what_python_saved(tmp_path):
    train(tmp_path / "run", "model.algebra=quaternion")
    run = quatrain.load(tmp_path / "run")
    with torch.no_grad():
        run.model.head.bias.copy_(torch.tensor([-50.0, 50.0]))  # always the second label
    weights = tmp_path / "run" / "best" / "model.safetensors"
    size = weights.stat().st_size
    quatrain.save_model(run.model, weights)
    assert weights.stat().st_size == size
    predict = [PROGRAM, "predict", tmp_path / "run"]
    done = subprocess.run(predict, input="the keys\n", capture_output=True, text=True)
    assert done.returncode == 1 and "model.safetensors has changed since it was written" in done.stderr
    subprocess.run([PROGRAM, "check", tmp_path / "run", "--accept"], check=True)
    done = subprocess.run(predict, input="the keys\n", capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == run.labels[1]
