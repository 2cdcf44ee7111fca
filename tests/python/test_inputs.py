"""Run.inputs and Run.texts: what a model takes for lines, from which Python makes the answers that the program gives."""

import os
import subprocess

import pytest
import quatrain
import torch
from test_pages import write_png
from test_runs import write_tones

PROGRAM = os.environ.get("QUATRAIN_PROGRAM")
if not PROGRAM:
    pytest.skip("the trainer is not built", allow_module_level=True)


def trained(folder, recipe, *settings, data=None):
    changes = [part for setting in (*settings, "train.threads=1") for part in ("--set", setting)]
    command = [PROGRAM, "train", recipe, "--out", folder, *changes, *(["--data", data] if data else [])]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return quatrain.load(folder)


def shares_of(answers):
    """Of lines "label, tab, probability of each class"."""
    return torch.tensor([list(map(float, answer.split("\t")[1:])) for answer in answers])


def test_words(tmp_path):
    run = trained(tmp_path / "run", "agreement", "agreement.train=200", "agreement.dev=50", "agreement.test=50", "train.steps=20", "model.layers=1")
    lines = [" ".join(run.vocabulary[2:7]), "", "the zzz"]
    tokens, padding = run.inputs(lines)
    assert padding.sum(1).tolist() == [0, 4, 3]
    assert tokens.tolist() == [[2, 3, 4, 5, 6], [1, 0, 0, 0, 0], [run.vocabulary.index("the"), 1, 0, 0, 0]]
    with torch.no_grad():
        shares = run.model(tokens, padding).softmax(1)
    torch.testing.assert_close(shares, shares_of(run.predict(lines)), atol=2e-4, rtol=0)
    assert [run.labels[int(best)] for best in shares.argmax(1)] == [answer.split("\t")[0] for answer in run.predict(lines)]


def test_pairs_of_texts(tmp_path):
    sizes = ["entailment.train=200", "entailment.dev=50", "entailment.test=50", "train.steps=20", "train.evaluate_every=20"]
    run = trained(tmp_path / "run", "entailment_generated", *sizes)
    lines = ["every dog runs\tsome dog runs", "no cat sleeps here\ta cat"]
    first, second = run.inputs(lines)
    assert first.shape == (2, 4) and second.shape == (2, 3) and first[0, 3] == second[1, 2] == 0
    with torch.no_grad():
        torch.testing.assert_close(run.model(first, second).softmax(1), shares_of(run.predict(lines)), atol=2e-4, rtol=0)
    with pytest.raises(ValueError, match="^inputs: line 2: a line must be two texts with one tab between, got 0 tabs$"):
        run.inputs([lines[0], "one text"])


def test_translation(tmp_path):
    """Greedy search by hand: the model is given what it has written so far."""
    sizes = ["reverse.train=2000", "reverse.dev=20", "reverse.test=20", "train.steps=300", "train.evaluate_every=300"]
    model = ["model.width=32", "model.heads=4", "model.feed_forward=64", "decode.beam=1", "decode.longest=20"]
    run = trained(tmp_path / "run", "reverse", *sizes, *model)
    lines = ["a b c d", "d b", "c c a b d a"]
    source, target, *paddings = run.inputs(lines)
    begin, end = int(target[0, 0]), int(source[0, -3])
    assert target.shape == (3, 1) and source.shape == (3, 7) and (source == end).sum(1).tolist() == [1, 1, 1]
    torch.testing.assert_close(paddings[0], source == 0)
    written = target
    with torch.no_grad():
        for _ in range(20):
            scores = run.model(source, written, paddings[0], torch.zeros_like(written, dtype=torch.bool))[:, -1]
            scores[:, [0, begin]] = -torch.inf  # which no translation has
            written = torch.cat([written, scores.argmax(1, keepdim=True)], 1)
    rows = [row[: row.index(end)] if end in row else row for row in written.tolist()]
    assert run.texts(rows) == run.predict(lines) and len(set(run.predict(lines))) == 3

    # With both sides it is what training and the scores of given pairs read.
    source, target, *paddings = run.inputs(["a b\td c b a", "d b\tb"])
    assert target[:, 0].tolist() == [begin, begin] and paddings[1].tolist() == [[False] * 5, [False] * 2 + [True] * 3]
    assert run.texts(target) == ["d c b a", "b"] == run.texts([row[row != 0] for row in target])
    following = torch.nn.functional.pad(target[:, 1:], (0, 1))
    following[torch.arange(2), (target != 0).sum(1) - 1] = end
    losses = torch.nn.functional.cross_entropy(run.model(source, target, *paddings).transpose(1, 2), following, ignore_index=0, reduction="none")
    recipe = tmp_path / "run" / "best" / "recipe.toml"
    recipe.write_text(recipe.read_text().replace("reads = 'source'", "reads = 'pair'"))
    subprocess.run([PROGRAM, "check", tmp_path / "run", "--accept"], capture_output=True, check=True)
    for answer, loss in zip(quatrain.load(tmp_path / "run").predict(["a b\td c b a", "d b\tb"]), losses.sum(1), strict=True):
        assert float(answer.split("\t")[0]) == pytest.approx(-loss.item(), abs=1e-3)

    for line, said in (("a\tb\tc", "this one has more tabs"), ("", "the source is empty"), ("\tb", "the source is empty")):
        with pytest.raises(ValueError, match="^inputs: line 2: .*" + said):
            run.inputs(["a", line])
    for numbers, error, said in (
        ([[4, 1000]], ValueError, "^texts: ids must be from 0 to .*, got 1000$"),
        ([[4, -1]], ValueError, "^texts: no piece has the number -1$"),
        ([[2**70]], ValueError, "^texts: no piece has the number"),
        ([4], TypeError, "^texts: numbers must be rows of whole numbers: 'int' object is not iterable$"),
        ([[4.7]], TypeError, "^texts: numbers must be rows of whole numbers: 'float' object"),
        (torch.tensor([4, 5]), TypeError, r"^texts: numbers must be rows \(B, L\) of whole numbers, got torch.int64 \[2\]$"),
        (torch.tensor([[4.0]]), TypeError, "of whole numbers, got torch.float32"),
    ):
        with pytest.raises(error, match=said):
            run.texts(numbers)


def test_a_target_beyond_the_places_is_refused(tmp_path):
    sizes = ["reverse.train=50", "reverse.dev=5", "reverse.test=5", "train.steps=1", "train.evaluate_every=1", "model.width=16"]
    places = ["model.heads=2", "model.feed_forward=16", "model.positions=learned", "model.max_positions=33"]
    run = trained(tmp_path / "run", "reverse", *sizes, *places)
    fits = "a\t" + " ".join(["b"] * 32)
    source, target, *paddings = run.inputs([fits])
    run.model(source, target, *paddings)
    with pytest.raises(ValueError, match=r"^inputs: line 2: a target may have at most 32 tokens \(model.max_positions\), this one has 33$"):
        run.inputs([fits, fits + " b"])


@pytest.mark.parametrize("marks", ["true", "false"])
def test_language_model(tmp_path, marks):
    for part in ("train", "dev", "test"):
        (tmp_path / f"{part}.txt").write_text("a b c d e f g\nb d f\n" * 200)
    settings = ["task.data=text", "vocabulary.pieces=words", f"task.mark_ends={marks}", "model.layers=1", "model.algebra=real", "model.width=16"]
    settings += ["model.heads=2", "model.feed_forward=16", "train.steps=30", "train.evaluate_every=30", "generate.score=true"]
    run = trained(tmp_path / "run", "language_model", *settings, data=tmp_path)
    lines = ["a b c d", "d b"]
    (tokens,) = run.inputs(lines)
    assert run.texts(tokens) == lines and tokens.shape == (2, 5 if marks == "true" else 4)
    scores = run.model(tokens).log_softmax(-1)
    for row, answer in enumerate(run.predict(lines)):
        read = tokens[row][tokens[row] != 0]
        following = torch.cat([read[1:], read[:1]]) if marks == "true" else read[1:]  # the first is the mark of an end
        sum_of_logs = scores[row, torch.arange(len(following)), following].sum().item()
        assert sum_of_logs == pytest.approx(float(answer.split("\t")[0]), abs=1e-3)
    with pytest.raises(ValueError, match="^inputs: line 1: the line is empty$"):
        run.inputs([""])


@pytest.mark.parametrize("by", ["training", "speaker", "none"])
def test_recordings(tmp_path, by):
    """The best path of ctc by hand, from the rows of files of different lengths in any order."""
    write_tones(tmp_path, train=12, test=3)
    settings = ["task.data=tsv", f"features.normalise={by}", "features.bands=24", "features.stack=2", "model.hidden=32", "model.bidirectional=true"]
    settings += ["train.epochs=30", "train.batch=2", "train.rate=1e-2", "decode.beam=1"]
    run = trained(tmp_path / "run", "yesno", *settings, data=tmp_path)
    files = [tmp_path / f"test{i}.wav" for i in (0, 2, 1)]
    packed = torch.nn.utils.rnn.PackedSequence(*run.inputs(files))
    assert packed.data.size(1) == 2 * 4 * 24
    with torch.no_grad():
        scores = run.model(packed.data, packed.batch_sizes)
        torch.testing.assert_close(run.model(*run.inputs(files)), scores)
    scores, lengths = torch.nn.utils.rnn.pad_packed_sequence(packed._replace(data=scores))
    assert lengths[0] < lengths[2] < lengths[1]
    answers = []
    for i, length in enumerate(lengths):
        best = scores[:length, i].argmax(1).unique_consecutive()
        answers.append(" ".join(run.labels[int(number)] for number in best if number != 0))
    assert answers == run.predict(files)
    if by == "none":  # from which so small a network learns nothing
        assert packed.data[:, : 2 * 24].mean() > 5
    else:
        assert any(answers) and abs(packed.data[:, : 2 * 24].mean()) < 0.5
    if by == "training":  # whose sums are float64, whatever the type of the model
        expected = run.inputs(files)[0]
        run.model.bfloat16()
        rows = run.inputs(files)[0]
        assert rows.dtype == torch.bfloat16
        torch.testing.assert_close(rows.float(), expected, rtol=0.05, atol=0.2)
    (tmp_path / "text.wav").write_text("no sound")
    with pytest.raises(ValueError, match="^inputs: line 2: .*text.wav"):
        run.inputs([files[0], tmp_path / "text.wav"])


def test_pictures(tmp_path):
    run = trained(tmp_path / "run", "shapes", "shapes.train=64", "shapes.dev=16", "shapes.test=16", "train.steps=4", "train.evaluate_every=4")
    files = []
    for i in range(3):
        files.append(tmp_path / f"{i}.png")
        write_png(files[-1], 24 + 8 * i, (250 - 60 * i, 90 * i, 20))
    (pixels,) = run.inputs(files)
    net = quatrain.models.ResNet.from_run(run)
    with torch.no_grad():
        scores = run.model(pixels)
        torch.testing.assert_close(net(pixels), scores, atol=1e-4, rtol=1e-4)
    best = scores.softmax(1).max(1)
    answers = [answer.split("\t") for answer in run.predict(files)]
    assert [run.labels[int(number)] for number in best.indices] == [answer[0] for answer in answers]
    torch.testing.assert_close(best.values, torch.tensor([float(answer[1]) for answer in answers]), atol=2e-4, rtol=0)
    with pytest.raises(RuntimeError, match="models of kind images write no pieces of texts"):
        run.texts([[1]])


def test_inputs_have_the_type_of_the_model(tmp_path):
    run = trained(tmp_path / "run", "hamilton", "train.steps=1")
    run.model.double()
    (x,) = run.inputs(["0 1 0 0 0 0 1 0"])
    assert x.dtype == torch.float64 and run.model(x).dtype == torch.float64


def test_predict_answers_in_eval_mode_and_leaves_the_mode(tmp_path):
    settings = ["shapes.train=64", "shapes.dev=16", "shapes.test=16", "train.steps=4", "train.evaluate_every=4"]
    run = trained(tmp_path / "run", "shapes", *settings)
    write_png(tmp_path / "one.png", 32, (200, 30, 60))
    answers, state = run.predict([tmp_path / "one.png"]), {name: value.clone() for name, value in run.model.state_dict().items()}
    run.model.train()
    run.model.stem_norm.eval()
    assert run.predict([tmp_path / "one.png"]) == answers
    assert run.model.training and run.model.blocks.training and not run.model.stem_norm.training
    for name, value in run.model.state_dict().items():
        torch.testing.assert_close(value, state[name], rtol=0, atol=0)
    run.model(*run.inputs([tmp_path / "one.png"]))
    assert not torch.equal(run.model.state_dict()["blocks.0.norm1.running_mean"], state["blocks.0.norm1.running_mean"])
    torch.testing.assert_close(run.model.state_dict()["stem_norm.running_mean"], state["stem_norm.running_mean"], rtol=0, atol=0)


def test_settings_of_answers(tmp_path):
    sizes = ["reverse.train=50", "reverse.dev=5", "reverse.test=5", "train.steps=2", "train.evaluate_every=2", "model.width=16"]
    trained(tmp_path / "run", "reverse", *sizes, "model.heads=2", "model.feed_forward=16", "decode.longest=5")
    run = quatrain.load(tmp_path / "run", settings={"decode.beam": 3, "decode.best": 2, "decode.scores": True})
    done = subprocess.run(
        [PROGRAM, "predict", tmp_path / "run", "a b", "--set", "decode.beam=3", "--set", "decode.best=2", "--set", "decode.scores=true"],
        capture_output=True, text=True,
    )  # fmt: skip
    assert run.predict(["a b"]) == done.stdout.splitlines() and done.stdout.count("\t") == 3
    assert run.recipe["decode"]["beam"] == 3 and repr(run).startswith("Run(seq2seq, ") and repr(run).endswith(" parameters, quaternion)")
    for settings, error, said in (
        ({"model.width": 8}, ValueError, "^load: model.width cannot be changed in a run that is trained"),
        ({"decode.beam": 0}, ValueError, "^load: decode.beam must be at least 1, got 0"),
        ({"beam": 3}, ValueError, "^load: a setting must be of the form table.key, got 'beam'$"),
        ([("decode.beam", 3)], TypeError, "^load: settings must be a dictionary such as"),
    ):
        with pytest.raises(error, match=said):
            quatrain.load(tmp_path / "run", settings=settings)


def test_numbers_and_symbols(tmp_path):
    run = trained(tmp_path / "hamilton", "hamilton", "train.steps=10")
    lines = ["0 1 0 0 0 0 1 0", "1 2 3 4 5 6 7 8"]
    torch.testing.assert_close(run.inputs(lines)[0], torch.tensor([list(map(float, line.split())) for line in lines]))
    answers = torch.tensor([list(map(float, answer.split("\t"))) for answer in run.predict(lines)])
    torch.testing.assert_close(run.model(*run.inputs(lines)), answers, atol=1e-4, rtol=1e-4)

    run = trained(tmp_path / "copy", "copy_memory", "task.lag=3", "train.steps=5", "model.hidden=16", "train.evaluate_every=5")
    lines = ["0123456701", "7777777777"]
    (symbols,) = run.inputs(lines)
    assert symbols.T.tolist() == [list(map(int, line)) for line in lines]
    best = run.model(symbols)[-10:].argmax(2).T.tolist()
    assert ["".join(str(symbol) if symbol < 8 else "." for symbol in row) for row in best] == run.predict(lines)


def test_what_is_no_list_of_lines_is_refused(tmp_path):
    run = trained(tmp_path / "run", "hamilton", "train.steps=1")
    with pytest.raises(TypeError, match="^inputs: lines must be a list of texts, got a single str: put it into a list$"):
        run.inputs("1 2")
    with pytest.raises(TypeError, match="^inputs: line 2 must be a text, got int$"):
        run.inputs(["1", 3])
    with pytest.raises(ValueError, match="^inputs: there must be at least one line$"):
        run.inputs([])
    with pytest.raises(ValueError, match="^inputs: line 2: a line must have 8 numbers"):
        run.inputs(["0 1 0 0 0 0 1 0", "1 2"])
