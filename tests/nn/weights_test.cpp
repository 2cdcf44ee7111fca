#include "quatrain/nn/weights.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/nn/module.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/container/modulelist.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <functional>
#include <map>

#include "nn/layers.h"
#include "quatrain/models/text_classifier.h"
#include "quatrain/nn.h"
#include "quatrain/nn/safetensors.h"
#include "temporary_folder.h"

namespace quatrain::nn {
namespace {

using test::linear;
using ::testing::AllOf;
using ::testing::HasSubstr;
using Metadata = std::map<std::string, std::string>;

class WeightsTest : public test::FolderTest {
 protected:
  void SetUp() override { torch::manual_seed(1); }

  std::filesystem::path path_ = folder_ / "model.safetensors";

  // Writes the file anew with changed tensors or metadata.
  void edit(const std::function<void(NamedTensors&, Metadata&)>& change) {
    Safetensors file = read_safetensors(path_);
    change(file.tensors, file.metadata);
    write_safetensors(path_, file.tensors, file.metadata);
  }

  // The sentence with which the file is refused; the module must keep every bit.
  std::string refusal(torch::nn::Module& module) {
    const NamedTensors before = state_of(module);
    std::string text = "not refused";
    try {
      load_weights(module, path_);
    } catch (const std::runtime_error& error) {
      text = error.what();
      EXPECT_EQ(text.find('\n'), std::string::npos);
      EXPECT_THAT(text, HasSubstr(path_.string()));
    }
    expect_same(state_of(module), before);
    return text;
  }

  static NamedTensors state_of(const torch::nn::Module& module) {
    NamedTensors result;
    for (const auto& item : module.named_parameters())
      result.emplace_back(item.key(), item.value().detach().clone());
    for (const auto& item : module.named_buffers()) result.emplace_back(item.key(), item.value().clone());
    return result;
  }

  static void expect_same(const NamedTensors& a, const NamedTensors& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) {
      EXPECT_EQ(a[i].first, b[i].first);
      EXPECT_EQ(a[i].second.dtype(), b[i].second.dtype()) << a[i].first;
      EXPECT_TRUE(torch::equal(a[i].second, b[i].second)) << a[i].first;
    }
  }
};

models::TextClassifier classifier(const std::string& algebra, Scope scope = Scope::full) {
  return models::TextClassifier(models::TextClassifierOptions(20, 2)
                                    .width(16)
                                    .heads(2)
                                    .feed_forward(32)
                                    .layers(2)
                                    .algebra(algebra)
                                    .scope(scope));
}

TEST_F(WeightsTest, ModelsTravelWithEveryBit) {
  for (const char* algebra : {"real", "complex", "quaternion", "octonion", "clifford(2, 0)", "phm(4)",
                              "phm(quaternion)", "phm(clifford(2, 0))", "wkp(4)"}) {
    auto source = classifier(algebra), target = classifier(algebra);
    save_weights(*source, path_);
    load_weights(*target, path_);
    expect_same(state_of(*target), state_of(*source));
    source->eval();
    target->eval();
    const at::Tensor tokens = torch::randint(1, 20, {3, 5}, torch::kLong);
    EXPECT_TRUE(torch::equal(source->forward(tokens), target->forward(tokens))) << algebra;
    for (const auto& parameter : target->parameters()) EXPECT_TRUE(parameter.requires_grad());
  }
}

TEST_F(WeightsTest, AModuleKeepsItsOwnWhereItIsLeftOut) {
  auto source = classifier("quaternion"), target = classifier("quaternion"),
       wider = models::TextClassifier(
           models::TextClassifierOptions(20, 5).width(16).heads(2).feed_forward(32).layers(2).algebra(
               "quaternion"));
  save_weights(*source, path_);
  const auto before = state_of(*target), stored = state_of(*source);
  load_weights(*target, path_, {"head"});
  const auto after = state_of(*target);
  for (size_t i = 0; i < after.size(); ++i) {
    const auto& expected = after[i].first.starts_with("head.") ? before[i] : stored[i];
    EXPECT_TRUE(torch::equal(after[i].second, expected.second)) << after[i].first;
  }
  EXPECT_ANY_THROW(load_weights(*wider, path_));
  load_weights(*wider, path_, {"head"});
  EXPECT_TRUE(torch::equal(wider->named_parameters()["embedding.weight"],
                           source->named_parameters()["embedding.weight"]));
  EXPECT_ANY_THROW(load_weights(*wider, path_, {"hea"}));  // a name is a whole one
  EXPECT_ANY_THROW(load_weights(*target, path_, {"haed"}));
}

TEST_F(WeightsTest, BuffersAndUnusedBiasesTravel) {
  const auto make = [] {
    return torch::nn::ModuleList(Linear(LinearOptions(8, 4).algebra("quaternion").bias(false)),
                                 torch::nn::BatchNorm1d(4));
  };
  auto source = make(), target = make();
  source->at<torch::nn::BatchNorm1dImpl>(1).forward(torch::randn({6, 4}));  // moves the running statistics
  save_weights(*source, path_);
  load_weights(*target, path_);
  expect_same(state_of(*target), state_of(*source));
  EXPECT_EQ(target->named_buffers()["1.num_batches_tracked"].item<int64_t>(), 1);
}

TEST_F(WeightsTest, MetadataHoldAlgebraAndHashOfEachLayer) {
  save_weights(*classifier("quaternion", Scope::partial), path_);
  const Metadata metadata = read_safetensors(path_).metadata;
  const std::string expected = "quaternion " + algebra::get("quaternion").hash();
  EXPECT_EQ(metadata.at("format"), "pt");
  int layers = 0;
  for (const auto& [key, text] : metadata) {
    if (!key.starts_with("algebra/")) continue;
    EXPECT_THAT(key, HasSubstr("attention")) << "the feed-forward is real";
    EXPECT_EQ(text, expected) << key;
    ++layers;
  }
  EXPECT_EQ(layers, 2 * 4);  // query, key, value and output
  EXPECT_TRUE(metadata.contains("table/quaternion"));

  save_weights(*linear("phm(quaternion)"), path_);
  EXPECT_EQ(read_safetensors(path_).metadata.at("algebra/"), "phm(quaternion)");
  EXPECT_FALSE(read_safetensors(path_).metadata.contains("table/quaternion"));
}

TEST_F(WeightsTest, AnotherAlgebraOfTheSameShapesIsRefused) {
  save_weights(*classifier("quaternion"), path_);
  EXPECT_THAT(refusal(*classifier("split_quaternion")),
              AllOf(HasSubstr("layer 'encoder.layers.0."), HasSubstr("the algebra quaternion "),
                    HasSubstr("the model has split_quaternion ")));
  EXPECT_THAT(refusal(*classifier("real")), HasSubstr("'encoder.layers.0."));
  EXPECT_THAT(refusal(*classifier("phm(4)")), HasSubstr("the model has phm(4)"));
  save_weights(*linear("complex"), path_);
  EXPECT_THAT(refusal(*linear("dual")), HasSubstr("the layer was trained with the algebra complex "));
  save_weights(*linear("phm(4)"), path_);
  EXPECT_THAT(refusal(*linear("quaternion")), HasSubstr("phm(4)"));
  EXPECT_THAT(refusal(*linear("wkp(4)")), HasSubstr("the model has wkp(4)"));
}

TEST_F(WeightsTest, AnotherTableUnderTheSameNameIsRefused) {
  save_weights(*linear("quaternion"), path_);
  edit([](NamedTensors&, Metadata& metadata) {
    metadata["algebra/"] = "quaternion " + algebra::get("split_quaternion").hash();
  });
  EXPECT_THAT(refusal(*linear("quaternion")), HasSubstr(algebra::get("quaternion").hash()));
  edit([](NamedTensors&, Metadata& metadata) { metadata.erase("algebra/"); });
  EXPECT_THAT(refusal(*linear("quaternion")), HasSubstr("does not say which algebra"));
}

TEST_F(WeightsTest, ATableCountsNotItsName) {
  algebra::add("weights_test_alias", 4, algebra::get("quaternion").table());
  auto source = linear("weights_test_alias"), target = linear("quaternion");
  save_weights(*source, path_);
  load_weights(*target, path_);
  expect_same(state_of(*target), state_of(*source));
}

TEST_F(WeightsTest, WhereALearnedTensorStartedDoesNotMatter) {
  auto source = linear("phm(quaternion)"), target = linear("phm(4)");
  save_weights(*source, path_);
  edit([](NamedTensors&, Metadata& metadata) { metadata["algebra/"] = "phm(unknown here)"; });
  load_weights(*target, path_);
  expect_same(state_of(*target), state_of(*source));
}

TEST_F(WeightsTest, ShapesAndNamesMustFit) {
  save_weights(*linear("quaternion"), path_);
  EXPECT_THAT(refusal(*linear("quaternion", 32)), AllOf(HasSubstr("'S' has shape"), HasSubstr("[4, 2, 8]")));
  EXPECT_THAT(refusal(*Linear(LinearOptions(16, 8).algebra("quaternion").bias(false))),
              AllOf(HasSubstr("the file's 'bias' [8]"), HasSubstr("is not in the model")));
  edit([](NamedTensors& tensors, Metadata&) { tensors[0].first = "other_" + tensors[0].first; });
  EXPECT_THAT(refusal(*linear("quaternion")), AllOf(HasSubstr("is not in the file"), HasSubstr("1 more")));
}

// The last tensor is the one that does not fit: those before it must not have been copied.
TEST_F(WeightsTest, NothingChangesUnlessEverythingFits) {
  save_weights(*classifier("quaternion"), path_);
  auto target = classifier("quaternion");
  edit([&](NamedTensors& tensors, Metadata&) {
    for (auto& [name, tensor] : tensors)
      if (name == state_of(*target).back().first) tensor = torch::ones({1, 1, 1, 1});
  });
  EXPECT_THAT(refusal(*target), HasSubstr("has shape [1, 1, 1, 1]"));

  save_weights(*classifier("quaternion"), path_);
  std::filesystem::resize_file(path_, std::filesystem::file_size(path_) - 1);
  EXPECT_THAT(refusal(*target), HasSubstr("outside the"));
  std::filesystem::remove(path_);
  EXPECT_THAT(refusal(*target), HasSubstr("cannot open"));
}

TEST_F(WeightsTest, FloatingTypesAreConvertedToTheModules) {
  for (const auto stored : {torch::kDouble, torch::kFloat, torch::kHalf, torch::kBFloat16}) {
    for (const auto own : {torch::kDouble, torch::kFloat, torch::kBFloat16}) {
      auto source = linear("phm(4)"), target = linear("phm(4)");
      source->to(stored);
      target->to(own);
      save_weights(*source, path_);
      EXPECT_EQ(read_safetensors(path_).find("S")->scalar_type(), stored);
      load_weights(*target, path_);
      EXPECT_EQ(target->S.scalar_type(), own);
      EXPECT_TRUE(torch::equal(target->S, source->S.to(own)));
      EXPECT_TRUE(torch::equal(target->A, source->A.to(own)));
    }
  }
}

TEST_F(WeightsTest, OtherTypesMustBeTheSame) {
  torch::nn::BatchNorm1d norm(3);
  for (const auto other : {torch::kInt, torch::kFloat}) {
    save_weights(*norm, path_);
    edit([&](NamedTensors& tensors, Metadata&) {
      for (auto& [name, tensor] : tensors)
        if (name == "num_batches_tracked") tensor = tensor.to(other);
    });
    EXPECT_THAT(refusal(*norm), HasSubstr("'num_batches_tracked' has type"));
  }
  save_weights(*norm, path_);
  edit([&](NamedTensors& tensors, Metadata&) {
    for (auto& [name, tensor] : tensors)
      if (name == "weight") tensor = tensor.to(torch::kLong);
  });
  EXPECT_THAT(refusal(*norm), HasSubstr("'weight' has type Long"));
}

TEST_F(WeightsTest, PreparedWeightsAreDropped) {
  const torch::NoGradGuard no_grad;
  for (const auto way : {ops::Way::factored, ops::Way::materialised}) {
    const auto options = LinearOptions(16, 8).algebra("quaternion").way(way);
    Linear source(options), target(options);
    save_weights(*source, path_);
    source->eval();
    target->eval();
    const at::Tensor x = torch::randn({3, 16});
    const int64_t before = ops::prepared_size().weights;
    target(x);
    ASSERT_EQ(ops::prepared_size().weights, before + 1) << "nothing was kept, so nothing is tested";
    load_weights(*target, path_);
    EXPECT_EQ(ops::prepared_size().weights, before);
    EXPECT_TRUE(torch::equal(target(x), source(x))) << ops::name(way);
  }
}

TEST_F(WeightsTest, UnknownTablesAreAddedFromTheFile) {
  const std::vector<double> table = algebra::get("split_quaternion").table();
  algebra::add("weights_test_own", 4, table);
  save_weights(*linear("weights_test_own"), path_);
  edit([](NamedTensors&, Metadata& metadata) {  // as another process has written it
    metadata["table/weights_test_new"] = metadata.at("table/weights_test_own");
  });
  EXPECT_THROW(algebra::get("weights_test_new"), std::invalid_argument);
  add_algebras(path_);
  EXPECT_EQ(algebra::get("weights_test_new").table(), table);
  add_algebras(path_);  // twice does no harm

  const auto refused = [&](const std::string& key, const std::string& text) {
    save_weights(*linear("quaternion"), path_);
    edit([&](NamedTensors&, Metadata& metadata) { metadata[key] = text; });
    try {
      add_algebras(path_);
    } catch (const std::runtime_error& error) {
      return std::string(error.what());
    }
    return std::string("not refused");
  };
  EXPECT_THAT(refused("table/quaternion", R"({"n":1,"table":[[0,0,0,1.0]]})"), HasSubstr("differs"));
  EXPECT_THAT(refused("table/x1", "{"), HasSubstr("algebra 'x1':1: it is not complete JSON"));
  EXPECT_THAT(refused("table/x2", R"({"n":1,"table":[[0,0,0]]})"), HasSubstr("an entry of table must be"));
  EXPECT_THAT(refused("table/x3", R"({"n":65,"table":[]})"),
              HasSubstr("n must be a whole number from 1 to 64, got 65"));
  EXPECT_THAT(refused("table/x4", R"({"n":2,"table":[[0,0,2,1.0]]})"),
              HasSubstr("from 0 to 1, got [0,0,2,1.0]"));
}

}  // namespace
}  // namespace quatrain::nn
