// On another device than the CPU the batches and targets of tasks follow the model there.

#include <gtest/gtest.h>
#include <torch/types.h>

#include <sstream>

#include "quatrain/tasks/run.h"
#include "tasks/settings.h"
#include "train/other_device.h"

namespace quatrain::tasks {
namespace {

// A recipe's twins, small. Tasks that look at numbers on the device (where the words are, how long a sound
// is) are left to scripts/device_tests.
struct Case {
  std::string recipe, twins;
  std::vector<std::string> settings;
};

const std::vector<Case> kCases{
    {"agreement",
     "real quaternion quaternion-real-attention phm4",
     {"agreement.train=40", "model.width=16", "model.feed_forward=16", "model.heads=2", "model.layers=1"}},
    {"entailment_generated",
     "deatt q-att q-att-real-attention",
     {"entailment.train=60", "model.width=40", "model.word_width=40", "train.batch=8"}},
    {"copy_memory", "real quaternion phm4 real-rnn quaternion-gru", {}},
    {"shapes", "real quaternion phm4 phydi", {"shapes.train=20", "model.widths=8 8 8 8", "train.batch=4"}},
    {"hamilton", "real phm4", {}},
    {"rotation", "real phm3", {}},
};

TEST(TaskOnADevice, BatchesFollowTheModelThere) {
  const auto shapes = test::shapes_of_all();
  for (const Case& one : kCases) {
    const Recipe recipe = read_recipe(std::string(QUATRAIN_RECIPES) + "/" + one.recipe + ".toml",
                                      settings_of_tests(one.settings));
    const auto data = load_data(recipe, {});
    std::istringstream names(one.twins);
    for (std::string name; names >> name;) {
      SCOPED_TRACE(one.recipe + " " + name);
      const auto task = make_task(twin_recipe(data->recipe(), find_twin(data->recipe(), name)), *data);
      test::to_meta(task->model());
      task->model().train();
      try {
        const at::Tensor loss = task->loss(0, 0).loss;
        EXPECT_TRUE(loss.is_meta());
        loss.backward();
      } catch (const c10::Error& error) {
        ADD_FAILURE() << error.what_without_backtrace();
      }
    }
  }
}

}  // namespace
}  // namespace quatrain::tasks
