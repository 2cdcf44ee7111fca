// Where a run computes: devices by name, everything on the model's device, and checkpoints of another one.
// The tests called Cuda run where scripts/device_tests asks for it and are skipped elsewhere.

#include "quatrain/train/session.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <nlohmann/json.hpp>

#include "quatrain/data/loader.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/train/checkpoint.h"
#include "support/atomic_file.h"
#include "train/checkpoint.h"
#include "train/other_device.h"
#include "train/toy_task.h"

namespace quatrain::train {
namespace {

namespace fs = std::filesystem;
using testing::AllOf, testing::HasSubstr;

// Before the tests, since torch must not have been used when its CUDA libraries are loaded.
class WantedDevice : public testing::Environment {
 public:
  void SetUp() override {
    if (const char* name = std::getenv("QUATRAIN_TEST_DEVICE"); name && *name) session = Session(name);
  }
  static inline Session session;
};
[[maybe_unused]] const auto* const kWanted = testing::AddGlobalTestEnvironment(new WantedDevice);

TEST(Session, KnowsDevicesByName) {
  EXPECT_EQ(parse_device("cpu"), at::Device(at::kCPU));
  EXPECT_EQ(parse_device("cuda"), at::Device(at::kCUDA, 0));
  EXPECT_EQ(parse_device("cuda:3"), at::Device(at::kCUDA, 3));
  for (const char* name : {"", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:1 ", "cuda:128", "cuda1", "meta"})
    EXPECT_THAT(message_of([&] { parse_device(name); }), HasSubstr("must be cpu, cuda or cuda:N, got '"))
        << name;
  const Session session;
  EXPECT_TRUE(session.device().is_cpu());
  EXPECT_EQ(session.rank(), 0);
  EXPECT_EQ(session.processes(), 1);
}

TEST(Session, ADeviceThatIsNotThereIsRefused) {
  if (!WantedDevice::session.device().is_cpu()) GTEST_SKIP() << "there is one";
  EXPECT_THAT(message_of([] { Session("cuda:5"); }),
              AllOf(HasSubstr("--device cuda:5: "), HasSubstr("; use cpu")));
}

TEST(Session, GivesItsGeneratorsBack) {
  const Session session;
  session.seed(7);
  const auto states = session.generators();
  ASSERT_EQ(states.size(), 1u);
  const at::Tensor drawn = torch::rand({5});
  torch::manual_seed(8);
  EXPECT_TRUE(session.set_generators(states, 0));
  EXPECT_TRUE(at::equal(torch::rand({5}), drawn));
}

TEST(Session, NothingOfAModelStaysBehind) {
  const auto shapes = test::shapes_of_all();
  for (const std::string algebra : {"real", "quaternion", "phm(4)", "wkp(4)"})
    for (const bool training : {false, true})
      for (const bool pretrained : {false, true}) {
        SCOPED_TRACE(algebra + (training ? ", training" : "") + (pretrained ? ", pretrained" : ""));
        models::TextClassifier model(models::TextClassifierOptions(11, 3)
                                         .width(16)
                                         .heads(2)
                                         .feed_forward(32)
                                         .layers(1)
                                         .max_length(4)
                                         .packed(pretrained)
                                         .pretrained_width(pretrained ? 8 : 0)
                                         .algebra(algebra));
        model->train(training);
        test::to_meta(*model);
        EXPECT_EQ(device_of(*model), at::Device(at::kMeta));
        for (const int64_t length : {3, 6}) {  // within max_length, and beyond
          const std::vector<std::vector<int64_t>> texts(2,
                                                        std::vector<int64_t>(static_cast<size_t>(length), 5));
          const data::Batch batch = data::collate(texts).to(device_of(*model));
          EXPECT_TRUE(batch.tokens.is_meta() && batch.padding.is_meta() && batch.labels.is_meta());
          EXPECT_TRUE(batch.groups.is_cpu());
          const at::Tensor logits = model->forward(batch.tokens, batch.padding);
          EXPECT_TRUE(logits.is_meta());
          EXPECT_EQ(logits.sizes(), (at::IntArrayRef{2, 3}));
        }
      }
}

class DeviceTest : public FolderTest {
 protected:
  // Trains until `stop_at`, or to the end.
  Result train(ToyTask& task, const TrainerOptions& options, const std::string& name,
               const Session& session = {}, int64_t stop_at = -1) {
    std::atomic<bool> stop{false};
    RunOptions run;
    run.folder = folder_ / name;
    run.existing = Existing::resume;
    run.stop = &stop;
    run.on_progress = [&](const Progress& p) { stop = p.step == stop_at; };
    run.on_message = [&](const std::string& text) { told_ += text + "\n"; };
    return Trainer(task, options, run, session).run();
  }

  // Changes what training.json says, as if it had been written so.
  void rewrite(const fs::path& checkpoint, const std::function<void(nlohmann::ordered_json&)>& change) const {
    auto state = nlohmann::ordered_json::parse(contents(checkpoint / "training.json"));
    change(state);
    write_text(checkpoint / "training.json", state.dump(2) + "\n");
    seal_checkpoint(checkpoint, state["step"], run_of(checkpoint));
  }

  std::string told_;
};

TEST_F(DeviceTest, ACheckpointOfAnotherDeviceIsGoneOnFromAndToldOf) {
  ToyTask straight, begun, resumed;
  train(straight, toy_options(), "whole");
  train(begun, toy_options(), "run", {}, 9);
  rewrite(folder_ / "run" / "last", [](auto& state) { state["device"] = "cuda"; });
  EXPECT_TRUE(train(resumed, toy_options(), "run").finished);
  EXPECT_EQ(told_,
            "the checkpoint was made on cuda and the run continues on cpu, so its figures are not, bit for "
            "bit, those "
            "of a run that stayed there\n");
  expect_same_bits(copies(resumed.model()), copies(straight.model()));  // the CPU's generator was there, too
}

// Older versions had the CPU alone.
TEST_F(DeviceTest, ACheckpointThatNamesNoDeviceIsOfTheCpu) {
  ToyTask straight, begun, resumed;
  train(straight, toy_options(), "whole");
  train(begun, toy_options(), "run", {}, 9);
  rewrite(folder_ / "run" / "last", [](auto& state) {
    for (const char* key : {"device", "figure", "metrics_lines"}) state.erase(key);
  });
  EXPECT_TRUE(train(resumed, toy_options(), "run").finished);
  EXPECT_EQ(told_, "");
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
}

TEST_F(DeviceTest, IsTheSessionsOrRefused) {
  ToyTask task;
  TrainerOptions o = toy_options();
  for (const char* device : {"cuda", "banana"}) {
    o.device = device;
    EXPECT_THROW(Trainer(task, o, {.folder = folder_ / "run"}), std::invalid_argument) << device;
  }
  EXPECT_FALSE(std::filesystem::exists(folder_ / "run"));
}

class CudaTest : public DeviceTest {
 protected:
  void SetUp() override {
    if (!there_.device().is_cuda())
      GTEST_SKIP() << "needs a CUDA device: scripts/device_tests runs it where there is one";
  }
  const Session& there_ = WantedDevice::session;
};

TEST_F(CudaTest, TrainingGivesWhatTheCpuGives) {
  for (const std::string algebra : {"real", "quaternion", "phm(4)"})
    for (const bool bf16 : {false, true}) {
      SCOPED_TRACE(algebra + (bf16 ? ", bf16" : ""));
      ToyTask here(algebra, 0), there(algebra, 0);
      TrainerOptions options = toy_options(6);
      options.bf16 = bf16;
      options.optimizer.kind = OptimizerKind::sgd;  // Adam's first steps are signs of gradients near zero
      const std::string name = algebra + (bf16 ? "-bf16" : "");
      const Result a = train(here, options, name + "-here");
      const Result b = train(there, options, name + "-there", there_);
      EXPECT_NEAR(a.dev.at("loss"), b.dev.at("loss"), bf16 ? 1e-2 : 1e-4);
      EXPECT_EQ(there.last_dtype, bf16 ? at::kBFloat16 : at::kFloat);
      const auto ours = copies(here.model()), theirs = copies(there.model());
      for (size_t i = 0; i < ours.size(); ++i) {
        EXPECT_TRUE(theirs[i].is_cuda());
        EXPECT_TRUE(at::allclose(ours[i], theirs[i].cpu(), bf16 ? 2e-2 : 1e-4, bf16 ? 1e-2 : 1e-5)) << i;
      }
    }
}

TEST_F(CudaTest, TheSameBitsWhereARunIsResumedOnTheDevice) {
  ToyTask straight, begun, resumed;
  train(straight, toy_options(), "whole", there_);
  train(begun, toy_options(), "run", there_, 9);
  there_.seed(99);
  train(resumed, toy_options(), "run", there_);
  EXPECT_EQ(told_, "");
  expect_same_bits(copies(resumed.model()), copies(straight.model()));
}

TEST_F(CudaTest, ACheckpointGoesToTheDeviceAndBack) {
  const std::string algebra = "phm(4, trained_rank=8)";  // whose factors are parameters
  ToyTask here(algebra), there(algebra), back(algebra);
  train(here, toy_options(), "run", {}, 7);
  train(there, toy_options(), "run", there_, 15);
  EXPECT_THAT(told_, HasSubstr("made on cpu and the run continues on cuda"));
  EXPECT_TRUE(train(back, toy_options(), "run").finished);
  EXPECT_THAT(told_, HasSubstr("made on cuda and the run continues on cpu"));
  for (const at::Tensor& parameter : copies(back.model())) EXPECT_TRUE(parameter.is_cpu());
  EXPECT_LT(back.evaluated.size(), 4u);
}

}  // namespace
}  // namespace quatrain::train
