"""Models that other people wrote, converted: torch's Transformers, a small vision transformer, Hugging Face classes."""

import copy
import pickle
import warnings

import pytest
import quatrain
import torch
from quatrain.nn import Linear, TorchMultiheadAttention

nn = torch.nn


def real_and_opened(**options):
    """A torch attention, and ours with the same weights: converted to n = 1, where nothing is lost."""
    real = nn.MultiheadAttention(16, 4, **options)
    with torch.no_grad():
        for parameter in real.parameters():
            parameter.normal_(std=0.3)
    opened, report = quatrain.convert(copy.deepcopy(real), "real")
    assert isinstance(opened, TorchMultiheadAttention) and report.converted == 4
    return real, opened


def inputs(real, length=5, keys=7, batch=3):
    x = [torch.randn(batch, size, width) for size, width in ((length, 16), (keys, real.kdim), (keys, real.vdim))]
    return x if real.batch_first else [t.transpose(0, 1) for t in x]


def test_what_torch_refuses_is_refused():
    real, opened = real_and_opened(batch_first=True)
    Q, K, V = inputs(real)
    for shapes in ((Q[None], K, V), (Q[0], K, V), (Q, K[0], V[0]), (Q, K, V[:, :3]), (Q, K, V[:1]), (Q, K[:1], V[:1]), (Q, K[..., :8], V)):
        for need_weights in (True, False):
            with pytest.raises(ValueError, match="TorchMultiheadAttention: "):
                opened(*shapes, need_weights=need_weights)
    for sizes in ((3, 4), (3, 9), (7,), (1, 7)):
        with pytest.raises(ValueError, match="key_padding_mask must have the shape \\(3, 7\\)"):
            opened(Q, K, V, key_padding_mask=torch.zeros(sizes, dtype=torch.bool))
    for sizes in ((5, 5), (5, 9), (1, 7), (3, 5, 7)):
        with pytest.raises(ValueError, match="attn_mask must have the shape \\(5, 7\\) or \\(12, 5, 7\\)"):
            opened(Q, K, V, attn_mask=torch.zeros(sizes))
    for dtype in (torch.uint8, torch.int64):
        for mask in (dict(key_padding_mask=torch.zeros(3, 7, dtype=dtype)), dict(attn_mask=torch.zeros(5, 7, dtype=dtype))):
            with pytest.raises(TypeError, match="must be bool \\(True: hidden\\) or floating point"):
                opened(Q, K, V, **mask)


def masks(kind, length=5, keys=7, batch=3, heads=4):
    boolean = torch.rand(length, keys) < 0.3
    boolean[:, 0] = False
    padding = torch.zeros(batch, keys, dtype=torch.bool)
    padding[1, 4:] = True
    return {
        "none": {},
        "bool": {"attn_mask": boolean},
        "float": {"attn_mask": torch.randn(length, keys)},
        "heads": {"attn_mask": torch.randn(batch * heads, length, keys)},
        "padding": {"key_padding_mask": padding},
        "both": {"attn_mask": boolean, "key_padding_mask": padding},
    }[kind]


@pytest.mark.parametrize("mask", ["none", "bool", "float", "heads", "padding", "both"])
@pytest.mark.parametrize(
    "options",
    [{"batch_first": True}, {}, {"kdim": 8, "vdim": 12, "bias": False}, {"add_bias_kv": True, "add_zero_attn": True}],
    ids=["batch_first", "length_first", "kdim_vdim", "bias_kv"],
)
def test_attention_is_the_function_of_torch(options, mask):
    real, opened = real_and_opened(**options)
    x, given = inputs(real), masks(mask)
    for need_weights, average in ((True, True), (True, False), (False, True)):
        for training in (True, False):
            real.train(training), opened.train(training)
            expected = real(*x, need_weights=need_weights, average_attn_weights=average, **given)
            found = opened(*x, need_weights=need_weights, average_attn_weights=average, **given)
            torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


def test_attention_unbatched_and_causal():
    real, opened = real_and_opened()
    x = torch.randn(5, 16)
    padding = torch.tensor([False, False, False, True, True])
    torch.testing.assert_close(opened(x, x, x, padding), real(x, x, x, padding), rtol=1e-4, atol=1e-5)
    x, mask = torch.randn(5, 2, 16), nn.Transformer.generate_square_subsequent_mask(5)
    for need_weights in (True, False):
        given = {"attn_mask": mask, "is_causal": True, "need_weights": need_weights}
        torch.testing.assert_close(opened(x, x, x, **given), real(x, x, x, **given), rtol=1e-4, atol=1e-5)
    with pytest.raises(ValueError, match="hint about attn_mask"):
        opened(x, x, x, is_causal=True)


def test_attention_drops_weights_in_training_alone():
    _, attention = real_and_opened(dropout=0.5, batch_first=True)
    x = torch.randn(2, 6, 16)
    for need_weights in (True, False):
        twice = [attention.train()(x, x, x, need_weights=need_weights)[0] for _ in range(2)]
        assert not torch.equal(*twice)
        torch.testing.assert_close(*[attention.eval()(x, x, x, need_weights=need_weights)[0] for _ in range(2)])


def test_attention_is_replaced_whole_or_not_at_all():
    attention = nn.MultiheadAttention(16, 4)
    same, report = quatrain.convert(attention, "quaternion", where=lambda name, layer: False)
    assert same is attention and report.converted == 0 and [layer.name for layer in report.layers][::3] == ["q_proj", "out_proj"]
    some, report = quatrain.convert(attention, "quaternion", where=lambda name, layer: name == "v_proj")
    assert isinstance(some.v_proj, Linear) and isinstance(some.out_proj, nn.Linear) and report.converted == 1
    x = torch.randn(5, 2, 16)
    torch.testing.assert_close(some(x, x, x)[1], attention(x, x, x)[1])  # Q and K are what they were
    pair = nn.ModuleList(nn.MultiheadAttention(16, 4) for _ in range(2))
    pair[0].in_proj_weight = pair[1].in_proj_weight
    _, report = quatrain.convert(pair, "quaternion")
    assert type(pair[0]) is type(pair[1]) is nn.MultiheadAttention and report.converted == 0
    twice = nn.ModuleList([attention, attention])
    quatrain.convert(twice, "quaternion")
    assert isinstance(twice[0], TorchMultiheadAttention) and twice[0] is twice[1]


def train(model, batch, steps=200, rate=3e-3):
    """The mean losses of the first and of the last ten steps; ``batch`` gives a loss."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    losses = []
    for _ in range(steps):
        loss = batch(model.train())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[:10]) / 10, sum(losses[-10:]) / 10


def check_reload(make, model, outputs, tmp_path, algebra):
    """A state dict and a file go into a model that is converted anew, and give the same outputs."""
    expected = outputs(model.eval())
    other, _ = quatrain.convert(make(), algebra, fresh=True)
    assert not torch.allclose(outputs(other.eval()), expected)
    other.load_state_dict(model.state_dict(), strict=True)
    assert torch.equal(outputs(other), expected)
    quatrain.save_model(model, tmp_path / "model.safetensors")
    other, _ = quatrain.convert(make(), algebra, fresh=True)
    quatrain.load_model(other.eval(), tmp_path / "model.safetensors")
    assert torch.equal(outputs(other), expected)
    assert torch.equal(outputs(copy.deepcopy(model)), expected)


def largest(batch=32, length=6):
    """Sequences; the target, everywhere, is the largest number of the first channel."""
    x = torch.randn(batch, length, 16)
    return x, x[:, :, :1].amax(1, keepdim=True).expand(-1, length, 1)


class Regression(nn.Module):
    def __init__(self, norm_first):
        super().__init__()
        layer = nn.TransformerEncoderLayer(16, 4, 32, dropout=0.0, batch_first=True, norm_first=norm_first)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch says that norm_first has no nested tensors
            self.encoder = nn.TransformerEncoder(layer, 2)
        self.head = nn.Linear(16, 1)

    def forward(self, x, padding=None):
        return self.head(self.encoder(x, src_key_padding_mask=padding))


@pytest.mark.parametrize("algebra, norm_first", [("quaternion", False), ("phm(4)", True)])
def test_transformer_encoder(algebra, norm_first, tmp_path):
    def make():
        torch.manual_seed(1)
        return Regression(norm_first)

    model, report = quatrain.convert(make(), algebra)
    assert report.converted == 12 and report.layers[-1].skipped == "n = 4 does not divide 1"

    def batch(model):
        x, target = largest()
        return (model(x) - target).square().mean()

    first, last = train(model, batch)
    assert last < 0.2 * first
    x, _ = largest()
    check_reload(make, model, lambda model: model(x).detach(), tmp_path, algebra)

    # Torch's fast path and its nested tensors would come in here: eval mode, no gradients, padding.
    padding = torch.zeros(32, 6, dtype=torch.bool)
    padding[::2, 4:] = True
    with_gradients = model.eval()(x, padding)
    with torch.no_grad():
        without = model(x, padding)
    with torch.inference_mode():
        inferred = model(x, padding)
    for y in (without, inferred):
        torch.testing.assert_close(y[~padding], with_gradients[~padding], rtol=1e-4, atol=1e-5)
    # A layer outside its encoder, and one whose attention stays real, ask for no weight either.
    layer = model.encoder.layers[0]
    mixed, _ = quatrain.convert(make().encoder, algebra, where=lambda name, layer: "linear" in name)
    assert type(mixed.layers[0].self_attn) is nn.MultiheadAttention
    built = []
    weight = Linear.weight
    try:
        Linear.weight = property(lambda self: built.append(self) or weight.fget(self))
        with torch.no_grad():
            layer(x, src_key_padding_mask=padding)
            model(x, padding)
            found = mixed.eval()(x, src_key_padding_mask=padding)
    finally:
        Linear.weight = weight
    assert not built
    torch.testing.assert_close(found[~padding], mixed(x, src_key_padding_mask=padding)[~padding], rtol=1e-4, atol=1e-5)


def test_converted_encoders_compile_export_and_pickle():
    encoder, _ = quatrain.convert(Regression(norm_first=False), "phm(4)")
    x, _ = largest(4)
    expected = encoder.eval()(x)
    for twin in (
        torch.compile(encoder, fullgraph=True, backend="aot_eager"),
        torch.export.export(encoder, (x,)).module(),
        pickle.loads(pickle.dumps(encoder)),
    ):
        torch.testing.assert_close(twin(x), expected, rtol=1e-4, atol=1e-5)


def test_a_whole_transformer():
    model = nn.Transformer(16, 4, 1, 1, 32, dropout=0.0, batch_first=True)
    source, target = torch.randn(2, 5, 16), torch.randn(2, 4, 16)
    mask = model.generate_square_subsequent_mask(4)
    expected = model(source, target, tgt_mask=mask, tgt_is_causal=True)
    same, _ = quatrain.convert(copy.deepcopy(model), "real")
    torch.testing.assert_close(same(source, target, tgt_mask=mask), expected, rtol=1e-4, atol=1e-5)
    model, report = quatrain.convert(model, "quaternion")
    assert report.converted == 16 and model.eval()(source, target, tgt_mask=mask, tgt_is_causal=True).shape == expected.shape


class VisionTransformer(nn.Module):
    """As people write it: patches by a convolution, a class token, torch's attention."""

    def __init__(self, width=32, depth=2):
        super().__init__()
        self.patches = nn.Conv2d(1, width, 4, stride=4)
        self.token = nn.Parameter(torch.zeros(1, 1, width))
        self.places = nn.Parameter(0.1 * torch.randn(1, 17, width))
        self.blocks = nn.ModuleList(nn.ModuleDict({
            "norm1": nn.LayerNorm(width), "attention": nn.MultiheadAttention(width, 4, batch_first=True),
            "norm2": nn.LayerNorm(width),
            "mlp": nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width)),
        }) for _ in range(depth))  # fmt: skip
        self.head = nn.Linear(width, 4)

    def forward(self, images):
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.places
        for block in self.blocks:
            y = block["norm1"](x)
            x = x + block["attention"](y, y, y, need_weights=False)[0]
            x = x + block["mlp"](block["norm2"](x))
        return self.head(x[:, 0])


def pictures(batch=32):
    """Noise with a bright square in one of four corners; the label is the corner."""
    corner = torch.randint(4, (batch,))
    images = torch.randn(batch, 1, 16, 16)
    for image, place in zip(images, corner.tolist()):
        row, column = 8 * (place // 2), 8 * (place % 2)
        image[0, row + 1 : row + 7, column + 1 : column + 7] += 2
    return images, corner


def test_vision_transformer(tmp_path):
    def make():
        torch.manual_seed(2)
        return VisionTransformer()

    model, report = quatrain.convert(make(), "quaternion")
    assert report.converted == 2 * 6 + 1 and report.after < 0.4 * report.before

    def batch(model):
        images, labels = pictures()
        return nn.functional.cross_entropy(model(images), labels)

    first, last = train(model, batch)
    assert first > 0.5 and last < 0.1
    images, labels = pictures(200)
    with torch.no_grad():
        assert (model.eval()(images).argmax(1) == labels).float().mean() > 0.95
    check_reload(make, model, lambda model: model(images).detach(), tmp_path, "quaternion")


def hugging_face(kind):
    """Makes a tiny model from its configuration; nothing is downloaded."""
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    sizes = dict(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=64)
    torch.manual_seed(3)
    if kind == "bert":
        return transformers.BertForSequenceClassification(transformers.BertConfig(vocab_size=20, num_labels=2, **sizes))
    if kind == "vit":
        config = transformers.ViTConfig(image_size=16, patch_size=4, num_channels=1, num_labels=4, **sizes)
        return transformers.ViTForImageClassification(config)
    return transformers.LlamaForCausalLM(transformers.LlamaConfig(vocab_size=20, num_key_value_heads=2, **sizes))


def hugging_face_loss(kind, model):
    if kind == "vit":
        images, labels = pictures()
        return model(pixel_values=images, labels=labels).loss
    tokens = torch.randint(2, 20, (32, 8))
    if kind == "llama":  # the sequence comes twice: the second half can be told from the first
        tokens = torch.cat([tokens[:, :4], tokens[:, :4]], 1)
        return model(input_ids=tokens, labels=torch.cat([torch.full((32, 4), -100), tokens[:, 4:]], 1)).loss
    return model(input_ids=tokens, labels=(tokens == 5).any(1).long()).loss


@pytest.mark.parametrize("kind, algebra, bound", [("bert", "quaternion", 0.1), ("vit", "phm(4)", 0.1), ("llama", "complex", 0.2)])
def test_hugging_face(kind, algebra, bound, tmp_path):
    model, report = quatrain.convert(hugging_face(kind), algebra)
    assert report.converted >= 12, str(report)
    first, last = train(model, lambda model: hugging_face_loss(kind, model), steps=200)
    assert first > 0.5 and last < bound
    generator = torch.Generator().manual_seed(0)
    if kind == "vit":
        given = {"pixel_values": torch.randn(4, 1, 16, 16, generator=generator)}
    else:
        given = {"input_ids": torch.randint(2, 20, (4, 8), generator=generator)}
    check_reload(lambda: hugging_face(kind), model, lambda model: model(**given).logits.detach(), tmp_path, algebra)
    with torch.no_grad():
        torch.testing.assert_close(model.eval()(**given).logits, model(**given).logits)
    if kind == "llama":
        assert model.generate(given["input_ids"], max_new_tokens=4, do_sample=False, pad_token_id=0).shape == (4, 12)
