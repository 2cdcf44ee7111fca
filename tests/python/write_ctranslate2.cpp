// The C++ side of test_ctranslate2.py: writes a Seq2Seq model with random weights for CTranslate2, and prints
// what our own decoding makes of random sentences. Also what scripts/bench_ctranslate2 is tried with.
//
// usage: quatrain_write_ctranslate2 FOLDER [KEY=VALUE ...]
#include <torch/types.h>
#include <torch/utils.h>

#include <cstdio>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "quatrain/models/ctranslate2.h"
#include "quatrain/models/seq2seq.h"
#include "quatrain/models/seq2seq_decoder.h"

namespace {

namespace nn = quatrain::nn;
namespace models = quatrain::models;
using Json = nlohmann::json;

constexpr int64_t kStart = 2, kEnd = 3, kFirstWord = 4;

struct Settings {
  Settings(int count, char** words) {
    for (int i = 0; i < count; ++i) {
      const std::string word = words[i];
      const size_t equals = word.find('=');
      values.insert_or_assign(word.substr(0, equals), word.substr(equals + 1));
    }
  }
  std::string text(const std::string& key, const std::string& otherwise) const {
    const auto found = values.find(key);
    return found == values.end() ? otherwise : found->second;
  }
  int64_t number(const std::string& key, int64_t otherwise) const {
    return std::stoll(text(key, std::to_string(otherwise)));
  }
  std::map<std::string, std::string> values;
};

models::Seq2Seq make_model(const Settings& settings) {
  const int64_t vocabulary = settings.number("vocabulary", 48);
  auto options = models::Seq2SeqOptions(settings.number("source_vocabulary", vocabulary), vocabulary)
                     .width(settings.number("width", 32))
                     .heads(settings.number("heads", 4))
                     .feed_forward(settings.number("feed_forward", 64))
                     .encoder_layers(settings.number("layers", 2))
                     .decoder_layers(settings.number("layers", 2))
                     .algebra(settings.text("algebra", "real"))
                     .scope(nn::parse_scope(settings.text("scope", "full")))
                     .norm(nn::parse_norm_style(settings.text("norm", "post")))
                     .attention(nn::AttentionKind::real)
                     .split(nn::parse_head_split(settings.text("split", "inside")))
                     .packed(settings.number("packed", 0))
                     .bias(settings.number("bias", 1))
                     .activation(settings.text("activation", "relu"))
                     .output(models::parse_output_layer(settings.text("output", "tied")))
                     .positions(models::parse_positions(settings.text("positions", "sinusoidal")))
                     .embedding_in_algebra(settings.number("embedding_in_algebra", 0))
                     .embedding_scale(settings.number("embedding_scale", 1));
  options.share_embeddings(settings.number("share_embeddings", 0));
  torch::manual_seed(static_cast<uint64_t>(settings.number("seed", 0)));
  models::Seq2Seq model(options);
  const torch::NoGradGuard no_grad;
  // Biases begin at 0 and norms at 1: one in a wrong place would not be seen. Larger weights let the layers
  // decide over the next word, which with tied embeddings would else be the last one again.
  for (const auto& item : model->named_parameters()) {
    if (item.value().dim() == 1) item.value().add_(0.2 * torch::randn_like(item.value()));
    if (item.key().find("layers.") != std::string::npos && item.key().ends_with(".S")) item.value().mul_(3);
  }
  model->eval();
  return model;
}

std::vector<std::string> pieces_of(int64_t tokens) {
  std::vector<std::string> pieces{"<pad>", "<unk>", "<s>", "</s>"};
  for (int64_t i = kFirstWord; i < tokens; ++i) pieces.push_back("w" + std::to_string(i));
  return pieces;
}

at::Tensor row(const std::vector<int64_t>& tokens) {
  return torch::tensor(tokens, torch::kLong).unsqueeze(0);
}

std::vector<int64_t> random_words(int64_t length, int64_t vocabulary) {
  const at::Tensor words = torch::randint(kFirstWord, vocabulary, {length}, torch::kLong);
  return {words.const_data_ptr<int64_t>(), words.const_data_ptr<int64_t>() + length};
}

// Of each word that follows the start, and of the end.
std::vector<double> log_probabilities(models::Seq2Seq& model, const std::vector<int64_t>& source,
                                      const std::vector<int64_t>& target) {
  std::vector<int64_t> begun{kStart}, answers = target;
  begun.insert(begun.end(), target.begin(), target.end());
  answers.push_back(kEnd);
  const at::Tensor scores = model(row(source), row(begun)).log_softmax(-1).to(torch::kDouble);
  const at::Tensor chosen = scores.squeeze(0).gather(1, row(answers).t()).squeeze(1).contiguous();
  return {chosen.const_data_ptr<double>(), chosen.const_data_ptr<double>() + chosen.numel()};
}

std::vector<int64_t> greedy(models::Seq2Seq& model, const std::vector<int64_t>& source, int64_t longest) {
  models::Seq2SeqDecoder decoder(model, row(source), {}, 1, longest + 1);
  std::vector<int64_t> words;
  for (int64_t token = kStart; static_cast<int64_t>(words.size()) < longest;) {
    token = decoder.step(torch::tensor({token}), torch::tensor({int64_t{0}})).argmax().item<int64_t>();
    if (token == kEnd) break;
    words.push_back(token);
  }
  return words;
}

}  // namespace

int main(int count, char** words) {
  try {
    if (count < 2) throw std::invalid_argument("usage: quatrain_write_ctranslate2 FOLDER [KEY=VALUE ...]");
    const torch::NoGradGuard no_grad;
    const Settings settings(count - 2, words + 2);
    models::Seq2Seq model = make_model(settings);
    const auto& options = model->options;
    models::write_ctranslate2(words[1], model, pieces_of(options.source_vocabulary()),
                              pieces_of(options.target_vocabulary()));
    const int64_t longest = settings.number("longest", 12);
    Json report{{"longest", longest}, {"sentences", Json::array()}};
    for (const int64_t length : {1, 3, 7, 12}) {
      auto source = random_words(length, options.source_vocabulary());
      source.push_back(kEnd);
      const auto target = random_words(length, options.target_vocabulary());
      report["sentences"].push_back({{"source", source},
                                     {"target", target},
                                     {"log_probabilities", log_probabilities(model, source, target)},
                                     {"greedy", greedy(model, source, longest)}});
    }
    std::puts(report.dump().c_str());
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "quatrain_write_ctranslate2: %s\n", error.what());
    return 1;
  }
}
