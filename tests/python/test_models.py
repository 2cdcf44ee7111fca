"""Whole networks of Python's layers: beside the C++ models of runs, and by themselves."""

import copy
import os
import shutil
import subprocess
import sys
import wave

import pytest
import quatrain
import torch
from quatrain import models
from torch.nn.utils.rnn import PackedSequence, pack_sequence

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
trainer = pytest.mark.skipif(not PROGRAM, reason="the trainer is not built")

SMALL = "model.width=16 model.heads=2 model.feed_forward=24 model.dropout=0"
TEXT = "task.data=text vocabulary.pieces=words model.layers=2 model.algebra=quaternion"
SPEECH = "task.data=tsv features.bands=24 features.stack=2 model.hidden=16 model.bidirectional=false"
# The network, its recipe, and what differs from it.
RUNS = {
    "classifier": ("TextClassifier", "agreement", f"{SMALL} model.algebra=quaternion"),
    "classifier-learned": ("TextClassifier", "agreement", f"{SMALL} model.algebra=phm(2) model.norm=post model.embedding_scale=false"),
    "language": ("LanguageModel", "language_model", f"{SMALL} {TEXT}"),
    "language-algebra": ("LanguageModel", "language_model", f"{SMALL} {TEXT} model.embedding_in_algebra=true model.norm=phydi"),
    "language-places": ("LanguageModel", "language_model", f"{SMALL} {TEXT} model.output=real model.positions=learned model.max_positions=64"),
    "pairs": ("Seq2Seq", "reverse", f"{SMALL} model.algebra=quaternion"),
    "pairs-algebra": ("Seq2Seq", "reverse", f"{SMALL} model.algebra=phm(4) model.embedding_in_algebra=true model.output=algebra"),
    "pairs-apart": ("Seq2Seq", "reverse", f"{SMALL} vocabulary.joint=false model.share_embeddings=false model.packed=true model.scope=partial"),
    "speech": ("RecurrentNetwork", "yesno", f"{SPEECH} model.algebra=quaternion model.layers=2 model.dropout=0"),
    "speech-gru": ("RecurrentNetwork", "yesno", f"{SPEECH} model.cell=gru model.algebra=phm(2) model.dense=8 model.dropout=0"),
    "speech-both": ("RecurrentNetwork", "yesno", "task.data=tsv features.bands=24 model.hidden=16 model.cell=rnn_tanh"),
}  # fmt: skip
SIZES = {
    "agreement": "agreement.train=200 agreement.dev=50 agreement.test=50",
    "reverse": "reverse.train=50 reverse.dev=5 reverse.test=5",
    "language_model": "",
    "yesno": "",
}
LINES = {
    "agreement": ["the keys to the cabinet", "", "a key"],
    "reverse": ["a b c d\td c b a", "d b\tb"],
    "language_model": ["a b c", "g f e d c b a"],
}


def lines_of(recipe, folder):
    return LINES.get(recipe) or [str(folder / name) for name in ("two.wav", "one.wav")]


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A text, and recordings of noise."""
    folder = tmp_path_factory.mktemp("data")
    for part in ("train", "dev", "test"):
        (folder / f"{part}.txt").write_text("a b c d e f g\n" * 200)
    for name, seconds in (("one", 1), ("two", 2), ("three", 1)):
        noise = torch.randint(-3000, 3000, (8000 * seconds,), dtype=torch.int16, generator=torch.Generator().manual_seed(seconds))
        with wave.open(str(folder / f"{name}.wav"), "wb") as file:
            file.setnchannels(1), file.setsampwidth(2), file.setframerate(8000), file.writeframes(noise.numpy().tobytes())
    (folder / "train.tsv").write_text("one.wav\tyes\ntwo.wav\tno\n")
    (folder / "test.tsv").write_text("three.wav\tyes\n")
    return folder


@pytest.fixture(scope="module")
def loaded(tmp_path_factory, data):
    """Trains a run of RUNS once; of rate nearly 0 the weights are those that were drawn."""
    made = {}

    def get(name, rate="1e-2"):
        if (name, rate) not in made:
            _, recipe, settings = RUNS[name]
            folder = tmp_path_factory.mktemp("runs") / name
            settings += f" {SIZES[recipe]} train.threads=1 train.rate={rate} train.steps=3 train.evaluate_every=3 train.seed=7"
            changes = [part for setting in settings.split() for part in ("--set", setting)]
            where = ["--data", data] if recipe in ("language_model", "yesno") else []
            done = subprocess.run([PROGRAM, "train", recipe, "--out", folder, *where, *changes], capture_output=True, text=True)
            assert done.returncode == 0, done.stderr
            made[name, rate] = folder
        return made[name, rate]

    return get


def called(network, inputs):
    return network(PackedSequence(*inputs)) if isinstance(network, models.RecurrentNetwork) else network(*inputs)


@trainer
@pytest.mark.parametrize("name", RUNS)
def test_the_scores_and_gradients_are_those_of_the_run(loaded, data, name):
    network_of, recipe, _ = RUNS[name]
    run = quatrain.load(loaded(name))
    network = getattr(models, network_of).from_run(run)
    assert not network.training and set(network.state_dict()) == set(run.model.state_dict())
    inputs = run.inputs(lines_of(recipe, data))
    for training in (False, True):
        network.train(training), run.model.train(training)
        ours, theirs = called(network, inputs), run.model(*inputs)
        weights = torch.randn_like(ours)
        if recipe == "reverse":  # what stands at padding is left open
            weights = weights.masked_fill(inputs[3].unsqueeze(-1), 0)
        if not training:
            torch.testing.assert_close(ours.masked_fill(weights == 0, 0), theirs.masked_fill(weights == 0, 0), rtol=1e-4, atol=1e-5)
        for model, y in ((network, ours), (run.model, theirs)):
            model.zero_grad()
            (y * weights).sum().backward()
        for (key, mine), (_, its) in zip(sorted(network.named_parameters()), sorted(run.model.named_parameters()), strict=True):
            torch.testing.assert_close(mine.grad, its.grad, rtol=1e-3, atol=1e-4, msg=lambda text, key=key: f"{key}: {text}")


@trainer
def test_what_is_frozen_in_a_run_is_frozen(tmp_path):
    words = ["the", "key", "keys", "cabinet", "to", "is", "are"]
    (tmp_path / "vectors.txt").write_text("".join(f"{word} " + " ".join([str(i)] * 10) + "\n" for i, word in enumerate(words)))
    settings = f"{RUNS['classifier'][2]} {SIZES['agreement']} task.freeze_vectors=true train.steps=2 train.evaluate_every=2 train.threads=1"
    changes = [part for setting in (*settings.split(), f"task.vectors={tmp_path / 'vectors.txt'}") for part in ("--set", setting)]
    done = subprocess.run([PROGRAM, "train", "agreement", "--out", tmp_path / "run", *changes], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    run = quatrain.load(tmp_path / "run")
    run.model.head.bias.requires_grad_(False)
    network = models.TextClassifier.from_run(run)
    frozen = {name for name, parameter in network.named_parameters() if not parameter.requires_grad}
    assert frozen == {"embedding.weight", "head.bias"} and network.projection is not None
    with torch.no_grad():
        torch.testing.assert_close(network(*run.inputs(["the keys to"])), run.model(*run.inputs(["the keys to"])), rtol=1e-4, atol=1e-5)


@trainer
@pytest.mark.parametrize("name", [name for name in RUNS if name != "classifier-learned"])
def test_the_same_seed_draws_the_same_weights(loaded, monkeypatch, name):
    cls = getattr(models, RUNS[name][0])
    run = quatrain.load(loaded(name, rate="1e-12"))
    kept = cls.from_run(run)
    monkeypatch.setattr(sys.modules[cls.__module__], "with_state_of", lambda run, drawn: drawn)
    torch.manual_seed(7)
    drawn = cls.from_run(run)
    for (key, value), (_, its) in zip(sorted(drawn.named_parameters()), sorted(kept.named_parameters()), strict=True):
        torch.testing.assert_close(value, its, rtol=0, atol=1e-9, msg=lambda text, key=key: f"{key}: {text}")


@trainer
@pytest.mark.parametrize("name", ["classifier", "language", "pairs", "speech"])
def test_the_program_answers_with_what_was_trained_here(loaded, data, tmp_path, name):
    network_of, recipe, _ = RUNS[name]
    folder = tmp_path / "run"
    shutil.copytree(loaded(name), folder)
    run = quatrain.load(folder)
    network = getattr(models, network_of).from_run(run).train()
    lines = lines_of(recipe, data)
    inputs = run.inputs(lines)
    optimizer = torch.optim.AdamW(quatrain.nn.parameter_groups(network, 0.01), lr=1e-2)
    for _ in range(3):
        optimizer.zero_grad()
        called(network, inputs).square().mean().backward()
        optimizer.step()
    quatrain.save_model(network, folder / "best" / "model.safetensors")
    subprocess.run([PROGRAM, "check", folder, "--accept"], capture_output=True, check=True)
    again = quatrain.load(folder)
    network.eval()
    with torch.no_grad():
        left_open = inputs[3].unsqueeze(-1) if recipe == "reverse" else torch.zeros((), dtype=torch.bool)
        ours, theirs = called(network, inputs), again.model(*inputs)
        torch.testing.assert_close(ours.masked_fill(left_open, 0), theirs.masked_fill(left_open, 0), rtol=1e-4, atol=1e-5)
    answers = subprocess.run([PROGRAM, "predict", folder], input="\n".join(line.split("\t")[0] for line in lines) + "\n", capture_output=True, text=True)
    assert again.predict([line.split("\t")[0] for line in lines]) == answers.stdout.splitlines()


def small():
    tokens, other = torch.randint(1, 20, (2, 6)), torch.randint(1, 20, (2, 5))
    layer = {"width": 16, "heads": 2, "feed_forward": 24, "dropout": 0.0}
    return {
        "TextClassifier": (models.TextClassifier(20, 3, layers=1, **layer), (tokens,)),
        "LanguageModel": (models.LanguageModel(20, layers=1, algebra="phm(4)", **layer), (tokens,)),
        "Seq2Seq": (models.Seq2Seq(20, 20, encoder_layers=1, decoder_layers=1, share_embeddings=True, **layer), (tokens, other)),
        "RecurrentNetwork": (models.RecurrentNetwork(8, 16, 3, cell="gru", num_layers=2, dense=8), (torch.randn(6, 2, 8),)),
    }


@pytest.mark.parametrize("name", ["TextClassifier", "LanguageModel", "Seq2Seq", "RecurrentNetwork"])
def test_torchs_tools_take_them(name):
    """Copies, types, the meta device, export."""
    network, inputs = small()[name]
    network.eval()
    with torch.no_grad():
        y = network(*inputs)
        torch.testing.assert_close(copy.deepcopy(network)(*inputs), y)
        for move in (torch.nn.Module.double, torch.nn.Module.bfloat16):
            moved = move(copy.deepcopy(network))
            x = [t.to(next(moved.parameters()).dtype) if t.is_floating_point() else t for t in inputs]
            torch.testing.assert_close(moved(*x).float(), y, rtol=0.1, atol=0.1)
        with torch.device("meta"):
            meta, _ = small()[name]
        assigned = copy.deepcopy(meta)
        assigned.load_state_dict(network.state_dict(), assign=True)
        torch.testing.assert_close(assigned.eval()(*inputs), y)
        empty = meta.to_empty(device="cpu")
        empty.load_state_dict(network.state_dict())
        torch.testing.assert_close(empty.eval()(*inputs), y)
        exported = torch.export.export(network, inputs).module()
        torch.testing.assert_close(exported(*inputs), y, rtol=1e-4, atol=1e-5)


def test_a_language_model_sees_what_came_before():
    network, (tokens,) = small()["LanguageModel"]
    network.eval()
    other = tokens.clone()
    other[:, 4:] = 7
    with torch.no_grad():
        torch.testing.assert_close(network(tokens)[:, :4], network(other)[:, :4])
        assert not torch.allclose(network(tokens)[:, 4:], network(other)[:, 4:])


def test_places_go_on_in_parts_and_beyond_those_that_are_kept():
    inputs = models.TokenInputs(20, 16, max_length=4, algebra="quaternion").eval()
    longer = models.TokenInputs(20, 16, max_length=40, algebra="quaternion").eval()
    longer.load_state_dict(inputs.state_dict())
    tokens = torch.randint(20, (2, 10))
    with torch.no_grad():
        whole = inputs(tokens)
        torch.testing.assert_close(whole, longer(tokens), rtol=0, atol=0)
        torch.testing.assert_close(torch.cat([inputs(tokens[:, :3]), inputs(tokens[:, 3:], first=3)], 1), whole, rtol=0, atol=0)
    learned = models.TokenInputs(20, 16, positions="learned", max_length=4)
    with pytest.raises(ValueError, match="positions are learned for 4 tokens, got a text of 5"):
        learned(tokens[:, :3], first=2)
    with pytest.raises(ValueError, match=r"tokens must be \(batch, length\), got \[3\]"):
        inputs(tokens[0, :3])


def test_packed_and_padded_sequences_score_alike():
    network, _ = small()["RecurrentNetwork"]
    network.eval()
    sequences = [torch.randn(5, 8), torch.randn(3, 8)]
    packed = pack_sequence(sequences)
    with torch.no_grad():
        rows = network(packed)
        for i, sequence in enumerate(sequences):
            alone = network(sequence.unsqueeze(1)).squeeze(1)
            of_packed, _ = torch.nn.utils.rnn.pad_packed_sequence(packed._replace(data=rows))
            torch.testing.assert_close(of_packed[: len(sequence), i], alone)


def test_pretrained_vectors():
    model = models.TextClassifier(20, 3, width=16, heads=2, layers=1, pretrained_width=10, freeze_pretrained=True)
    model.set_embeddings(torch.ones(20, 10))
    assert model.embedding.weight[0].eq(0).all() and model.embedding.weight[1:].eq(1).all()
    model(torch.randint(1, 20, (2, 6))).sum().backward()
    assert model.embedding.weight.grad is None and model.projection.S.grad is not None
    with pytest.raises(ValueError, match=r"embeddings must be \[20, 10\], got \[20, 16\]"):
        model.set_embeddings(torch.ones(20, 16))


def test_sizes_that_do_not_fit_are_refused():
    for call, said in (
        (lambda: models.Seq2Seq(20, 30, share_embeddings=True), "share_embeddings needs one vocabulary for source and target, got 20 and 30"),
        (lambda: models.LanguageModel(0), "vocabulary_size must be at least 1, got 0"),
        (lambda: models.LanguageModel(20, output="complex"), "output"),
        (lambda: models.TextClassifier(20, 2, padding_id=20), "padding_id must be a token of the vocabulary of 20, got 20"),
        (lambda: models.TextClassifier(20, 2, freeze_pretrained=True), "freeze_pretrained needs pretrained embeddings"),
        (lambda: models.RecurrentNetwork(8, 16, 3, cell="qru"), "cell"),
        (lambda: models.RecurrentNetwork(8, 16, 3, dropout=5.0), "dropout"),
        (lambda: models.RecurrentNetwork(8, 16, 3, dense=-4), "dense"),
        (lambda: models.RecurrentNetwork(8, 16, 3, proj_size=8), "proj_size is not one of its options"),
        (lambda: models.TextClassifier(20, 2, pretrained_width=-4), "pretrained_width"),
        (lambda: models.TextClassifier(20, 2, max_length=0), "max_length must be at least 1"),
        (lambda: small()["TextClassifier"][0](torch.ones(2, 3, dtype=torch.long), torch.zeros(2, 2, dtype=torch.bool)), "padding must be bool"),
        (lambda: models.TokenInputs(20, 16, positions="none"), "positions"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


@trainer
def test_a_run_of_another_kind_is_refused(loaded):
    run = quatrain.load(loaded("pairs"))
    with pytest.raises(ValueError, match="LanguageModel.from_run: the run must be of the kind language_model, got seq2seq"):
        models.LanguageModel.from_run(run)
    with pytest.raises(TypeError, match="Seq2Seq.from_run: run must be what quatrain.load gives, got str"):
        models.Seq2Seq.from_run("runs/mine")
