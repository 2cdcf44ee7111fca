#include "quatrain/nn/activation.h"
#include "quatrain/nn/attention.h"
#include "quatrain/nn/encoder.h"
#include "quatrain/nn/init.h"
#include "quatrain/tasks/kind.h"
#include "quatrain/train/optimizer.h"
#include "quatrain/train/trainer.h"
#include "tasks/text_classification/options.h"
#include "train/checkpoint.h"

// In the place of the layers and optimizers, whose names a recipe may hold, and of the kinds' data and
// models: the words do not matter, that there are some does. So the recipe's target needs nothing that
// computes.
namespace quatrain {
namespace {

template <typename Enumerator>
const char* word(Enumerator value) {
  constexpr const char* kWords[] = {"glorot", "full", "partial", "pre", "post", "adam", "real", "automatic"};
  return kWords[static_cast<size_t>(value) % std::size(kWords)];
}

}  // namespace

namespace ops {
std::vector<std::string> activation_names() {
  return {"relu", "gelu"};
}
}  // namespace ops

namespace nn {
const char* name(AttentionKind value) {
  return word(value);
}
std::string attention_problem(AttentionKind, const AlgebraSpec&, HeadSplit, const char*) {
  return {};
}
const char* name(HeadSplit value) {
  return word(value);
}
const char* name(Initialiser value) {
  return word(value);
}
const char* name(NormStyle value) {
  return word(value);
}
const char* name(Scope value) {
  return word(value);
}
}  // namespace nn

namespace train {
bool is_checkpoint(const std::filesystem::path&) {
  return false;
}
const char* name(NonFinite value) {
  return word(value);
}
const char* name(OptimizerKind value) {
  return word(value);
}
}  // namespace train

namespace tasks {
namespace {

class TextKind : public Kind {
 public:
  const About& about() const override {
    static const About about{
        .name = "text_classification", .summary = "", .reads = "", .unit = "", .figures = {}, .facts = {}};
    return about;
  }
  std::unique_ptr<Options> options() const override { return std::make_unique<TextOptions>(); }
  std::unique_ptr<Data> load_data(Recipe, const DataRequest&) const override { return nullptr; }
  std::unique_ptr<Model> load_model(Recipe, const std::filesystem::path&) const override { return nullptr; }
};

}  // namespace

const std::vector<const Kind*>& kinds() {
  static const TextKind text;
  static const std::vector<const Kind*> all{&text};
  return all;
}

}  // namespace tasks

}  // namespace quatrain
