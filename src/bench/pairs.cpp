#include "bench/pairs.h"

#include <torch/nn/functional/loss.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/rnn.h>
#include <torch/nn/utils/rnn.h>
#include <torch/optim.h>
#include <torch/types.h>
#include <torch/utils.h>

#include "quatrain/models/pair_attention.h"
#include "quatrain/models/pair_encoder.h"
#include "quatrain/nn/factorize.h"
#include "quatrain/nn/parameters.h"

namespace quatrain::bench {
namespace {

constexpr int64_t kVocabulary = 10000, kClasses = 3;

using PairForward = std::function<at::Tensor(const at::Tensor&, const at::Tensor&)>;

at::Tensor random_texts(const PairsCase& asked) {
  return torch::randint(1, kVocabulary, {asked.batch, asked.words}, torch::kLong);
}

Candidate candidate(const char* name, const PairsCase& asked, torch::nn::Module& model,
                    const PairForward& forward) {
  const at::Tensor first = random_texts(asked), second = random_texts(asked);
  Candidate one{.name = name, .parameters = nn::parameter_report(model).trainable};
  if (!asked.training) {
    one.call = [=] {
      const torch::NoGradGuard no_grad;
      forward(first, second);
    };
    return one;
  }
  std::vector<at::Tensor> trained;
  for (const at::Tensor& parameter : model.parameters())
    if (parameter.requires_grad()) trained.push_back(parameter);
  // A step so short that nothing is learned: where the loss vanished, gradients would be denormal, and slow.
  const auto adam = std::make_shared<torch::optim::Adam>(trained, 1e-9);
  const at::Tensor labels = torch::randint(0, kClasses, {asked.batch}, torch::kLong);
  one.call = [=] {
    adam->zero_grad();
    torch::nn::functional::cross_entropy(forward(first, second), labels).backward();
    adam->step();
  };
  return one;
}

// Words' vectors of the size that pretrained ones have: of larger ones no softmax would share out anything.
template <class Model>
void prepare(const PairsCase& asked, Model& model) {
  model->set_words(0.4 * torch::randn({kVocabulary, asked.word_width}));
  model->eval();
  if (!asked.training) nn::factorize(*model);
  model->train(asked.training);
}

models::PairEncoder encoder_of(const PairsCase& asked, const std::string& algebra) {
  torch::manual_seed(0);
  models::PairEncoder model(models::PairEncoderOptions(kVocabulary, kClasses, asked.word_width, asked.width)
                                .algebra(algebra)
                                .gates(nn::parse_gates(asked.gates)));
  prepare(asked, model);
  return model;
}

Candidate ours(const PairsCase& asked, const char* name, const std::string& algebra) {
  const auto forward_of = [](auto model) {
    return [model](const at::Tensor& first, const at::Tensor& second) mutable {
      return model->forward(first, second);
    };
  };
  if (asked.model == "encoder") {
    const models::PairEncoder model = encoder_of(asked, algebra);
    return candidate(name, asked, *model.ptr(), forward_of(model));
  }
  torch::manual_seed(0);
  models::PairAttention model(models::PairAttentionOptions(kVocabulary, kClasses)
                                  .width(asked.width)
                                  .word_width(asked.word_width)
                                  .algebra(algebra));
  prepare(asked, model);
  return candidate(name, asked, *model, forward_of(model));
}

// The same model around torch's layer, which takes texts of one length as one tensor: that is faster than a
// PackedSequence.
Candidate with_torchs_encoder(const PairsCase& asked) {
  models::PairEncoder model = encoder_of(asked, "real");
  torch::nn::LSTM lstm(asked.word_width, asked.width);
  model->unregister_module("encoder");
  model->register_module("encoder", lstm);
  model->train(asked.training);
  const auto forward = [=](const at::Tensor& first, const at::Tensor& second) mutable {
    const auto words = model->embed(first, second);
    const at::Tensor y =
        std::get<0>(lstm->forward(words.data().view({asked.words, 2 * asked.batch, asked.word_width})));
    return model->classify(torch::nn::utils::rnn::PackedSequence(
        y.flatten(0, 1), words.batch_sizes(), words.sorted_indices(), words.unsorted_indices()));
  };
  return candidate("torch", asked, *model, forward);
}

Contest contest_of(const PairsCase& asked) {
  Contest contest{.candidates = {ours(asked, "ours", asked.algebra), ours(asked, "real", "real")}};
  if (asked.model == "encoder") contest.candidates.push_back(with_torchs_encoder(asked));
  Contender contender;
  contender.asked = {field("model", asked.model),
                     field("algebra", asked.algebra),
                     field("width", asked.width),
                     column("batch", std::to_string(asked.batch) + "x" + std::to_string(asked.words), true),
                     hidden("word_width", asked.word_width),
                     hidden("batch", asked.batch),
                     hidden("words", asked.words),
                     hidden("gates", asked.gates),
                     hidden("dtype", "float32")};
  contender.more = [](const Found& found) {
    return std::vector<Field>{ratio_to(found, "torch", "torch's LSTM")};
  };
  contest.contenders.push_back(std::move(contender));
  return contest;
}

}  // namespace

Subject pairs(const std::vector<PairsCase>& cases, double seconds) {
  Subject subject;
  subject.title = "Models of pairs of texts, float32";
  subject.notes =
      "batch: pairs x words of each text. Words are looked up and projected in each call. training: a step "
      "with Adam.\nparameters: without the words' vectors, which are fixed. Beside the real twin: an encoder "
      "whose LSTM is torch::nn::LSTM.\n";
  subject.timing = {.seconds = seconds, .turn = 300e-6};
  for (const auto& asked : cases) {
    Case one{.threads = asked.threads, .training = asked.training};
    one.memory.emplace_back("ours", [asked] { return ours(asked, "ours", asked.algebra).call; });
    one.memory.emplace_back("real", [asked] { return ours(asked, "real", "real").call; });
    one.make = [asked] { return contest_of(asked); };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

}  // namespace quatrain::bench
