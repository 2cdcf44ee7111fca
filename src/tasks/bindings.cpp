// Runs of any kind as a class for Python: torch.classes.quatrain.Run. It stands here and not beside the
// operators because the library of layers knows no training; Python loads this one when a run is asked for.

#include <torch/custom_class.h>

#include "quatrain/tasks/run.h"
#include "quatrain/train/session.h"
#include "tasks/task_parts.h"
#include "train/autocast.h"

namespace quatrain::tasks {
namespace {

using NamedTensors = c10::Dict<std::string, at::Tensor>;

class Run : public torch::CustomClassHolder {
 public:
  // Settings are "table.key=value".
  Run(const std::string& folder, const std::vector<std::string>& settings)
      : model_(load_run(folder, parsed(settings))) {}

  at::Tensor forward(std::vector<at::Tensor> input) { return model_->forward(input); }
  // The part of this name, and what is in it; "" is the whole.
  void train(const std::string& part, bool on) {
    for (const auto& module : model_->module().named_modules(/*name_prefix=*/"", /*include_self=*/true))
      if (module.key() == part) return module.value()->train(on);
    TORCH_CHECK_VALUE(false, "train: the model has no part '", part, "'");
  }
  // Behind so many lines, as a problem's sentence counts them.
  std::vector<std::string> predict(const std::vector<std::string>& lines, int64_t before) {
    const train::Autocast autocast(model_->recipe().train.bf16, train::device_of(model_->module()).type());
    auto [answers, problem] = answer(*model_, lines);
    TORCH_CHECK_VALUE(problem.empty(), "predict: line ", before + std::ssize(answers) + 1, ": ", problem);
    return answers;
  }
  std::vector<at::Tensor> inputs(const std::vector<std::string>& lines) {
    try {
      return inputs_of(*model_, lines);
    } catch (const LineError& error) {
      TORCH_CHECK_VALUE(false, "inputs: line ", error.line() + 1, ": ", error.what());
    }
  }
  std::vector<std::string> texts(const std::vector<std::vector<int64_t>>& numbers) {
    try {
      return model_->texts(numbers);
    } catch (const c10::ValueError& error) {
      TORCH_CHECK_VALUE(false, "texts: ", without_function(error.what_without_backtrace()));
    }
  }
  int64_t portion() { return static_cast<int64_t>(model_->portion()); }
  std::string kind() { return model_->recipe().about().name; }
  std::string recipe() { return to_toml(model_->recipe()); }

  // The model's own tensors, so that what Python writes and trains is the model.
  NamedTensors parameters() { return named(model_->module().named_parameters()); }
  NamedTensors buffers() { return named(model_->module().named_buffers()); }

 private:
  static std::vector<Setting> parsed(const std::vector<std::string>& settings) {
    std::vector<Setting> all;
    for (const auto& text : settings) all.push_back(Setting::parse(text));
    for (Setting& setting : all) setting.origin = "load";
    return all;
  }
  static NamedTensors named(const torch::OrderedDict<std::string, at::Tensor>& tensors) {
    NamedTensors all;
    for (const auto& item : tensors) all.insert(item.key(), item.value());
    return all;
  }

  std::unique_ptr<Model> model_;
};

TORCH_LIBRARY_FRAGMENT(quatrain, m) {
  m.class_<Run>("Run")
      .def(torch::init<std::string, std::vector<std::string>>())
      .def("forward", &Run::forward)
      .def("train", &Run::train)
      .def("predict", &Run::predict)
      .def("inputs", &Run::inputs)
      .def("texts", &Run::texts)
      .def("portion", &Run::portion)
      .def("kind", &Run::kind)
      .def("recipe", &Run::recipe)
      .def("parameters", &Run::parameters)
      .def("buffers", &Run::buffers);
}

}  // namespace
}  // namespace quatrain::tasks
