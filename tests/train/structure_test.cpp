// What a checkpoint keeps of the factors of learned algebras.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "quatrain/nn/safetensors.h"
#include "quatrain/nn/weights.h"
#include "quatrain/ops.h"
#include "train/state.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

class StructureFileTest : public FolderTest {
 protected:
  static constexpr const char* kName = "first.A";
  static at::Tensor A_of(torch::nn::Module& module) { return module.named_parameters()[kName]; }
  static at::Tensor state_of(ToyTask& task) { return ops::structure_state(A_of(task.model())); }

  /// Trains by factors, which are those of the weights at each evaluation; the first is the best.
  void train(const char* algebra = "phm(4)") {
    ToyTask task(algebra);
    task.scripted = {1, 2};
    task.test = false;
    TrainerOptions options;
    options.steps = 8;
    options.evaluate_every = 4;
    const ops::WayGuard factored(ops::Way::factored);
    Trainer(task, options, {.folder = folder_ / "run"}).run();
  }
  fs::path checkpoint(const char* name) const { return folder_ / "run" / name; }

  static constexpr int64_t kValues = 11, kCells = 64;  // where a state has A's values
  static at::Tensor values_of(const at::Tensor& state) {
    return state.slice(0, kValues, kValues + kCells).view({4, 4, 4}).to(torch::kFloat);
  }

  static std::string error_of_load(ToyTask& task, const fs::path& folder) {
    try {
      load_structures(task.model(), folder);
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "no error";
  }
};

class StructureFileOf : public StructureFileTest, public testing::WithParamInterface<const char*> {};

TEST_P(StructureFileOf, EachCheckpointHasThoseOfItsWeights) {
  train(GetParam());
  std::vector<at::Tensor> states;
  for (const char* name : {"best", "last"}) {
    ToyTask task(GetParam());
    nn::load_weights(task.model(), checkpoint(name) / "model.safetensors");
    EXPECT_FALSE(state_of(task).defined());
    load_structures(task.model(), checkpoint(name));
    states.push_back(state_of(task));
    ASSERT_TRUE(states.back().defined());
    EXPECT_GT(ops::structure_report(A_of(task.model())).rank, 0);
    EXPECT_TRUE(torch::equal(values_of(states.back()), A_of(task.model()).detach())) << name;
    task.model().eval();
    const torch::NoGradGuard no_grad;
    const at::Tensor x = torch::randn({5, 8});
    auto& layer = *task.model().named_modules()["first"]->as<nn::Linear>();
    const at::Tensor H = layer.forward(x);
    const ops::WayGuard factored(ops::Way::factored);
    EXPECT_TRUE(torch::allclose(layer.forward(x), H, 1e-4, 1e-5));
    EXPECT_TRUE(torch::equal(state_of(task), states.back()));  // no search
  }
  EXPECT_FALSE(torch::equal(states[0], states[1]));
}

INSTANTIATE_TEST_SUITE_P(Learned, StructureFileOf, testing::Values("phm(4)", "wkp(4)"));

TEST_F(StructureFileTest, ModelsOfFixedAlgebrasHaveNone) {
  ToyTask task("quaternion");
  TrainerOptions options;
  options.steps = 2;
  Trainer(task, options, {.folder = folder_ / "run"}).run();
  for (const char* name : {"best", "last"}) {
    EXPECT_TRUE(fs::exists(checkpoint(name) / "model.safetensors"));
    EXPECT_FALSE(fs::exists(checkpoint(name) / "structure.safetensors"));
  }
  load_structures(task.model(), checkpoint("best"));
}

TEST_F(StructureFileTest, CheckpointsOfOlderVersionsAreResumed) {
  train();
  const fs::path last = checkpoint("last");
  const at::Tensor state = *nn::read_safetensors(last / "structure.safetensors").find(kName);
  auto training = nn::read_safetensors(last / "training.safetensors").tensors;
  training.emplace_back(std::string(kName) + "/structure", state);
  nn::write_safetensors(last / "training.safetensors", training);
  fs::remove(last / "structure.safetensors");
  ToyTask task("phm(4)");
  const auto optimizer = make_optimizer(TrainerOptions().optimizer, task.model());
  load_state({}, *optimizer, trained_parameters(task.model()), last);
  EXPECT_TRUE(torch::equal(state_of(task), state));
}

TEST_F(StructureFileTest, ThoseOfOtherWeightsAreRefusedInASentence) {
  train();
  const fs::path best = checkpoint("best"), file = best / "structure.safetensors";
  ToyTask other("phm(2)");
  EXPECT_THAT(error_of_load(other, best),
              AllOf(HasSubstr("'" + file.string() +
                              "' does not belong to the weights beside it: its factors of 'first.A'"),
                    HasSubstr("quatrain check RUN --accept")));
  ToyTask task("phm(4)");
  auto stored = nn::read_safetensors(file).tensors;
  stored[0].second[kValues] += 1;
  nn::write_safetensors(file, stored);
  EXPECT_THAT(error_of_load(task, best), HasSubstr("are not theirs"));
  fs::remove(file);
  EXPECT_EQ(error_of_load(task, best), "no error");
}

}  // namespace
}  // namespace quatrain::train
