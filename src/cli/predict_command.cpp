#include <torch/torch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <numeric>

#include "cli/commands.h"
#include "cli/lines.h"
#include "cli/text_task.h"
#include "quatrain/train/session.h"
#include "support/text.h"
#include "train/autocast.h"

namespace quatrain::cli {
namespace {

constexpr size_t kPortion = 2048;       // lines that are sorted by length together
constexpr int64_t kBatchTexts = 128;    // largest batch ..
constexpr int64_t kBatchTokens = 8192;  // .. and its padded size

// The probabilities (texts, labels) of a portion, in its order. Texts of about equal length go together.
at::Tensor probabilities(const TrainedText& trained, const std::vector<std::vector<int64_t>>& texts) {
  std::vector<size_t> order(texts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return texts[a].size() < texts[b].size(); });
  const auto labels = static_cast<int64_t>(trained.labels.size());
  at::Tensor result = at::empty({static_cast<int64_t>(texts.size()), labels});
  for (size_t begin = 0, end = 0; begin < order.size(); begin = end) {
    std::vector<std::vector<int64_t>> batch;
    std::vector<int64_t> places;
    for (; end < order.size(); ++end) {
      const auto count = static_cast<int64_t>(batch.size());
      const auto length = static_cast<int64_t>(texts[order[end]].size());
      if (count > 0 && (count >= kBatchTexts || (count + 1) * length > kBatchTokens)) break;
      batch.push_back(texts[order[end]]);
      places.push_back(static_cast<int64_t>(order[end]));
    }
    const auto collated = data::collate(batch).to(train::device_of(*trained.model));
    auto model = trained.model;
    const at::Tensor logits = model->forward(collated.tokens, collated.padding);
    result.index_copy_(0, at::tensor(places, at::kLong), logits.to(at::kFloat).softmax(1).cpu());
  }
  return result;
}

void write(const std::string& text) {
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size() || std::fflush(stdout) != 0)
    throw std::runtime_error("cannot write the standard output");
}

// A line out for each text: its label, and the probability of every label.
void answer(const TrainedText& trained, const std::vector<std::vector<int64_t>>& texts) {
  if (texts.empty()) return;
  const at::Tensor all = probabilities(trained, texts);
  const at::Tensor best = all.argmax(1);
  const auto winner = best.accessor<int64_t, 1>();
  const auto share = all.accessor<float, 2>();
  std::string out;
  for (size_t i = 0; i < texts.size(); ++i) {
    const auto row = static_cast<int64_t>(i);
    out += trained.labels[static_cast<size_t>(winner[row])];
    for (int64_t label = 0; label < all.size(1); ++label) {
      std::array<char, 32> number{};
      std::snprintf(number.data(), number.size(), "\t%.4f", static_cast<double>(share[row][label]));
      out += number.data();
    }
    out += '\n';
  }
  write(out);
}

}  // namespace

int predict_command(const PredictArguments& arguments) {
  const train::Session session(arguments.device);
  TrainedText trained = load_trained(arguments.run);
  session.move(*trained.model);
  set_threads(trained.recipe);
  const auto tokenizer = data::parse_tokenizer(trained.recipe.task.tokenizer);
  const auto longest = static_cast<size_t>(trained.recipe.task.max_length);
  const torch::NoGradGuard no_grad;
  const train::Autocast autocast(trained.recipe.train.precision == "bfloat16", session.device().type());
  LineReader reader(STDIN_FILENO, kLongestLine);
  int64_t number = 0;
  if (::isatty(STDIN_FILENO)) std::fprintf(stderr, "a text a line; end with Ctrl-D\n");
  for (;;) {
    const auto lines = reader.next(kPortion);
    if (lines.empty()) return kSuccess;
    std::vector<std::vector<int64_t>> texts;
    std::string problem;
    for (const auto& line : lines) {
      problem = line_problem(line);
      if (!problem.empty()) break;
      texts.push_back(trained.vocabulary.encode(data::split(line, tokenizer)));
      if (longest > 0 && texts.back().size() > longest) texts.back().resize(longest);
    }
    answer(trained, texts);
    number += static_cast<int64_t>(texts.size());
    if (!problem.empty())
      throw std::runtime_error("standard input, line " + std::to_string(number + 1) + ": " + problem);
  }
}

}  // namespace quatrain::cli
