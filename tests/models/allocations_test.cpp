// Searches and generated texts take no memory of their own after their third step.

#include <gtest/gtest.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <memory>
#include <span>

#include "counted_new.h"
#include "models/sampler.h"
#include "models/translators.h"
#include "quatrain/models/generate.h"
#include "system_memory.h"
#include "threads.h"

namespace quatrain {
namespace {

using test::Tokens;

TEST(Allocations, ASearchTakesNoMemoryFromStepToStep) {
  const test::Threads one(1);
  for (const auto type : {torch::kFloat, torch::kDouble}) {
    const at::Tensor logits = torch::randn({8, 3000}, type);
    int64_t steps = 0, before = 0, taken = 0;
    const auto step = [&](const Tokens& tokens, const Tokens&) {
      if (++steps > 3) taken += test::allocations - before;
      const at::Tensor scores = logits.narrow(0, 0, std::ssize(tokens));
      before = test::allocations;
      return scores;
    };
    models::SearchOptions options;
    options.shortest = 50;
    options.banned = {{5}, {6, 7}};
    models::beam_search(step, {{.longest = 50, .prefix = {}}, {.longest = 50, .prefix = {}}}, options);
    EXPECT_EQ(steps, 51);
    EXPECT_EQ(taken, 0) << type;
  }
}

TEST(Allocations, DrawingATokenTakesNoMemory) {
  const at::Tensor logits = torch::randn({3000}, torch::kDouble);
  const std::span<const double> scores(logits.const_data_ptr<double>(), 3000);
  for (const models::SamplingOptions& options :
       {models::SamplingOptions{}, {.temperature = 0}, {.top_k = 40}, {.top_p = 0.9}}) {
    models::Sampler sampler(options);
    sampler(scores, 0.5);
    const int64_t before = test::allocations;
    for (const double draw : {0.0, 0.1, 0.7, 0.99999}) EXPECT_GE(sampler(scores, draw), 0);
    EXPECT_EQ(test::allocations - before, 0);
  }
}

// What ATen takes for each tensor has less than a KiB; vectors of the rows, or of a large vocabulary, have
// more.
int64_t large_allocations_of(const std::function<void()>& work) {
  work();  // prepares weights
  const int64_t before = test::large_allocations;
  work();
  return test::large_allocations - before;
}

TEST(Allocations, MoreStepsOfATranslationTakeNoMoreMemory) {
  const test::Threads one(1);
  torch::manual_seed(7);
  const models::Ensemble single(test::trained_like("quaternion")),
      several({test::trained_like("real"), test::trained_like("quaternion")});
  const auto sources = test::random_sources(40);
  for (const models::Ensemble* ensemble : {&single, &several})
    for (const bool shortlist : {false, true}) {
      const auto taken = [&](int64_t length) {
        auto options = test::translation(4, 1, 1, models::LengthPenalty::power, length);
        options.longest = length;
        options.batch = 40;
        options.exact = false;
        if (shortlist)
          options.shortlist =
              std::make_shared<models::Shortlist>(std::vector<Tokens>(24), Tokens{4, 5, 6, 7, 8}, 24);
        return large_allocations_of([&] { models::translate(*ensemble, sources, options); });
      };
      EXPECT_EQ(taken(60), taken(20)) << ensemble->models.size() << " " << shortlist;
    }
}

TEST(Allocations, MoreTokensOfATextTakeNoMoreMemory) {
  const test::Threads one(1);
  torch::manual_seed(8);
  models::LanguageModel model(
      models::LanguageModelOptions(3000).width(32).heads(2).feed_forward(48).layers(2).algebra("quaternion"));
  model->eval();
  const std::vector<Tokens> prompts(8, {4, 5, 6});
  const std::vector<uint64_t> seeds{1, 2, 3, 4, 5, 6, 7, 8};
  const auto write = [&](int64_t tokens) {
    models::GenerationOptions options{.tokens = tokens, .context = 16};
    options.never.push_back(options.end);
    for (const auto& text : models::generate(model, prompts, seeds, options))
      EXPECT_EQ(std::ssize(text.tokens), tokens);
  };
  EXPECT_EQ(large_allocations_of([&] { write(60); }), large_allocations_of([&] { write(12); }));
  // Nor do tensors, those of the contexts that were full among them.
  const auto blocks = [&](int64_t tokens) {
    const test::SystemMemory system;
    write(tokens);
    return system.blocks();
  };
  EXPECT_EQ(blocks(60), blocks(12));
}

}  // namespace
}  // namespace quatrain
