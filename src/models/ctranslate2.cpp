#include "quatrain/models/ctranslate2.h"

#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <unordered_map>

#include "nn/check.h"
#include "nn/head_order.h"
#include "quatrain/models/positions.h"
#include "support/atomic_file.h"
#include "support/atomic_folder.h"
#include "support/text.h"

namespace quatrain::models {
namespace {

namespace fs = std::filesystem;

constexpr uint32_t kBinaryVersion = 6, kSpecificationRevision = 7;
// Texts that CTranslate2 takes unless it is asked for more have 1,024 tokens, and some marks.
constexpr int64_t kSinusoidalPlaces = 2048;

// The numbers of ctranslate2/ops/activation.h.
int8_t number_of_activation(const std::string& name) {
  static const std::map<std::string, int8_t> kNumbers{{"relu", 0}, {"gelu_tanh", 1}, {"silu", 2},
                                                      {"gelu", 3}, {"tanh", 5},      {"sigmoid", 6}};
  const auto found = kNumbers.find(name);
  nn::require(found != kNumbers.end(), "write_ctranslate2: CTranslate2 has no activation ", name,
              "; it has relu, gelu, gelu_tanh, silu, tanh and sigmoid");
  return found->second;
}

// A linear map as CTranslate2 keeps it.
struct RealMap {
  at::Tensor weight, bias;  // (out, in), (out) or undefined
};

RealMap written_out(const nn::Linear& layer) {
  return {layer->matrix(), layer->bias};
}

// The same map with its outputs, or its inputs, in another order; undefined: as they are.
RealMap with_outputs(const RealMap& map, const at::Tensor& order) {
  if (!order.defined()) return map;
  return {map.weight.index_select(0, order), map.bias.defined() ? map.bias.index_select(0, order) : map.bias};
}
RealMap with_inputs(const RealMap& map, const at::Tensor& order) {
  return order.defined() ? RealMap{map.weight.index_select(1, order), map.bias} : map;
}

// The outputs of tokens, without those that fill an algebra.
RealMap of_tokens(const RealMap& map, int64_t tokens) {
  return {map.weight.narrow(0, 0, tokens), map.bias.defined() ? map.bias.narrow(0, 0, tokens) : map.bias};
}

RealMap one_behind_the_other(const std::vector<RealMap>& maps) {
  std::vector<at::Tensor> weights, biases;
  for (const auto& map : maps) {
    weights.push_back(map.weight);
    if (map.bias.defined()) biases.push_back(map.bias);
  }
  return {torch::cat(weights), biases.empty() ? at::Tensor() : torch::cat(biases)};
}

// The variables of a Transformer by their names in CTranslate2's specification.
class Specification {
 public:
  explicit Specification(Seq2Seq& model) : options_(model->options) {
    const bool shares = options_.share_embeddings();
    TokenInputs& source = model->source_inputs();
    const int64_t targets = options_.target_vocabulary();
    add("decoder/embeddings/weight", model->target->embedding->matrix().narrow(0, 0, targets));
    if (shares)
      aliases_["encoder/embeddings_0/weight"] = "decoder/embeddings/weight";
    else
      add("encoder/embeddings_0/weight",
          source->embedding->matrix().narrow(0, 0, options_.source_vocabulary()));
    if (model->output)
      add_linear("decoder/projection", of_tokens(written_out(model->output), targets));
    else
      aliases_["decoder/projection/weight"] = "decoder/embeddings/weight";
    add_stack("encoder", source);
    add_number<int8_t>("encoder/embeddings_merge", 0);
    add_number<int8_t>("encoder/multi_query_attention", 0);
    add_stack("decoder", model->target);
    add_number<int16_t>("decoder/alignment_layer", -1);
    add_number<int16_t>("decoder/alignment_heads", 1);
    for (const char* name :
         {"alibi", "alibi_use_positive_positions", "scale_alibi", "start_from_zero_embedding"})
      add_number<int8_t>(std::string("decoder/") + name, 0);
    for (size_t i = 0; i < model->encoder->layers->size(); ++i)
      add_encoder_layer("encoder/layer_" + std::to_string(i),
                        *model->encoder->layers[i]->as<nn::TransformerEncoderLayerImpl>());
    for (size_t i = 0; i < model->decoder->layers->size(); ++i)
      add_decoder_layer("decoder/layer_" + std::to_string(i),
                        *model->decoder->layers[i]->as<nn::TransformerDecoderLayerImpl>());
    if (model->encoder->norm) add_norm("encoder/layer_norm", model->encoder->norm);
    if (model->decoder->norm) add_norm("decoder/layer_norm", model->decoder->norm);
  }

  void write(const fs::path& path) const {
    AtomicFile file(path);
    const auto number = [&](auto value) { file.write(&value, sizeof value); };
    const auto text = [&](const std::string& value) {  // its length and its end, both counted
      number(static_cast<uint16_t>(value.size() + 1));
      file.write(value.c_str(), value.size() + 1);
    };
    number(kBinaryVersion);
    text("TransformerSpec");
    number(kSpecificationRevision);
    number(static_cast<uint32_t>(variables_.size()));
    for (const auto& [name, tensor] : variables_) {
      text(name);
      number(static_cast<uint8_t>(tensor.dim()));
      for (const int64_t size : tensor.sizes()) number(static_cast<uint32_t>(size));
      const auto type = tensor.scalar_type();
      number(static_cast<uint8_t>(type == torch::kFloat ? 0 : type == torch::kChar ? 1 : 2));
      number(static_cast<uint32_t>(tensor.nbytes()));
      file.write(tensor.const_data_ptr(), tensor.nbytes());
    }
    number(static_cast<uint32_t>(aliases_.size()));
    for (const auto& [alias, name] : aliases_) {
      text(alias);
      text(name);
    }
    file.commit();
  }

 private:
  void add(const std::string& name, const at::Tensor& value) {
    variables_[name] = value.detach().to(torch::kCPU, torch::kFloat).contiguous();
  }
  template <class Number>
  void add_number(const std::string& name, Number value) {
    variables_[name] = torch::scalar_tensor(value, torch::CppTypeToScalarType<Number>::value);
  }

  void add_linear(const std::string& name, const RealMap& map) {
    add(name + "/weight", map.weight);
    if (map.bias.defined()) add(name + "/bias", map.bias);
  }

  void add_norm(const std::string& name, const nn::LayerNorm& norm) {
    add(name + "/gamma", norm->weight);
    add(name + "/beta", norm->bias);
  }

  void add_stack(const std::string& name, const TokenInputs& inputs) {
    add_number<int16_t>(name + "/num_heads", static_cast<int16_t>(options_.heads()));
    add_number<int8_t>(name + "/pre_norm", options_.norm() == nn::NormStyle::pre);
    add_number<int8_t>(name + "/activation", number_of_activation(options_.activation()));
    add_number<int8_t>(name + "/scale_embeddings", options_.embedding_scale());
    add(name + "/position_encodings/encodings",
        inputs->positions
            ? inputs->positions->weight
            : sinusoidal_positions(std::max(kSinusoidalPlaces, options_.max_length()), options_.width()));
  }

  // Self-attention has one map for Q, K and V; cross-attention one for Q, and one for K and V.
  void add_attention(const std::string& name, const nn::MultiheadAttention& attention, bool self) {
    auto plain = attention->options;
    plain.split(nn::HeadSplit::printed);
    const at::Tensor order = nn::head_order(attention->options, plain, 1);
    const auto part = [&](const nn::Linear& layer) { return with_outputs(written_out(layer), order); };
    int maps = 0;
    const auto next = [&](const RealMap& map) {
      add_linear(name + "/linear_" + std::to_string(maps++), map);
    };
    if (attention->options.packed()) {
      next(with_outputs(written_out(attention->packed), nn::head_order(attention->options, plain, 3)));
    } else {
      const RealMap Q = part(attention->query), K = part(attention->key), V = part(attention->value);
      if (!self) next(Q);
      next(one_behind_the_other(self ? std::vector{Q, K, V} : std::vector{K, V}));
    }
    next(with_inputs(written_out(attention->output), order));
  }

  void add_feed_forward(const std::string& name, const nn::FeedForward& feed_forward,
                        const nn::LayerNorm& norm) {
    add_linear(name + "/ffn/linear_0", written_out(feed_forward->linear1));
    add_linear(name + "/ffn/linear_1", written_out(feed_forward->linear2));
    add_norm(name + "/ffn/layer_norm", norm);
  }

  void add_encoder_layer(const std::string& name, const nn::TransformerEncoderLayerImpl& layer) {
    add_attention(name + "/self_attention", layer.attention, true);
    add_norm(name + "/self_attention/layer_norm", layer.norm1);
    add_feed_forward(name, layer.feed_forward, layer.norm2);
  }

  void add_decoder_layer(const std::string& name, const nn::TransformerDecoderLayerImpl& layer) {
    add_attention(name + "/self_attention", layer.attention, true);
    add_norm(name + "/self_attention/layer_norm", layer.norm1);
    add_attention(name + "/attention", layer.cross_attention, false);
    add_norm(name + "/attention/layer_norm", layer.norm2);
    add_feed_forward(name, layer.feed_forward, layer.norm3);
  }

  const Seq2SeqOptions& options_;
  std::map<std::string, at::Tensor> variables_;
  std::map<std::string, std::string> aliases_;
};

// Refuses what CTranslate2 does not compute.
void check_model(Seq2Seq& model) {
  const auto& options = model->options;
  nn::require(options.norm() != nn::NormStyle::phydi && !options.printed(),
              "write_ctranslate2: CTranslate2 has norm = post and norm = pre, got norm = ",
              nn::name(options.norm()), options.printed() ? " with printed" : "");
  nn::require(!options.norm_per_component() || options.algebra().n == 1,
              "write_ctranslate2: CTranslate2 normalises the whole width, got norm_per_component");
  const auto& layer = *model->decoder->layers[0]->as<nn::TransformerDecoderLayerImpl>();
  nn::require(layer.attention->kind() == nn::AttentionKind::real,
              "write_ctranslate2: CTranslate2 has real attention, got attention = componentwise over ",
              options.algebra().text(), " (train with attention = real)");
}

void check_pieces(const std::vector<std::string>& pieces, int64_t tokens, const char* side) {
  nn::require(static_cast<int64_t>(pieces.size()) == tokens, "write_ctranslate2: the ", side,
              " must have a piece for each of the model's ", tokens, " tokens, got ", pieces.size());
  constexpr std::array kMarks{"<unk>", "<s>", "</s>"};
  for (size_t i = 0; i < kMarks.size(); ++i)
    nn::require(pieces.size() > i + 1 && pieces[i + 1] == kMarks[i], "write_ctranslate2: piece ", i + 1,
                " of the ", side, " must be ", kMarks[i], ", got ",
                pieces.size() > i + 1 ? quote(pieces[i + 1]) : "none");
  std::unordered_map<std::string_view, size_t> seen;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const auto [first, is_new] = seen.emplace(pieces[i], i);
    nn::require(is_new, "write_ctranslate2: pieces of the ", side, " must differ, but ", quote(pieces[i]),
                " is token ", first->second, " and token ", i);
    nn::require(find_bad_utf8(pieces[i]) == std::string::npos, "write_ctranslate2: piece ", i, " of the ",
                side, " must be UTF-8");
  }
}

}  // namespace

void write_ctranslate2(const fs::path& folder, Seq2Seq model, const std::vector<std::string>& source_pieces,
                       const std::vector<std::string>& target_pieces) {
  check_model(model);
  check_pieces(source_pieces, model->options.source_vocabulary(), "source");
  check_pieces(target_pieces, model->options.target_vocabulary(), "target");
  const torch::NoGradGuard no_grad;
  const Specification specification(model);
  AtomicFolder made(folder, /*replaces_empty=*/true);
  const auto write_json = [&](const char* name, const nlohmann::ordered_json& json) {
    write_text(made.path() / name, json.dump(2) + "\n");
  };
  if (source_pieces == target_pieces) {
    write_json("shared_vocabulary.json", source_pieces);
  } else {
    write_json("source_vocabulary.json", source_pieces);
    write_json("target_vocabulary.json", target_pieces);
  }
  write_json("config.json", {{"add_source_bos", false},
                             {"add_source_eos", true},
                             {"bos_token", "<s>"},
                             {"decoder_start_token", "<s>"},
                             {"eos_token", "</s>"},
                             {"layer_norm_epsilon", nn::LayerNormOptions(1).eps()},
                             {"multi_query_attention", false},
                             {"unk_token", "<unk>"}});
  specification.write(made.path() / "model.bin");
  made.commit();
}

}  // namespace quatrain::models
