#include "tasks/images/model.h"

#include <torch/types.h>

#include <algorithm>
#include <atomic>

#include "data/in_threads.h"
#include "quatrain/data/image.h"
#include "quatrain/nn/safetensors.h"
#include "quatrain/train/session.h"
#include "support/numbers.h"
#include "support/text.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMean = "pixel_mean";
constexpr const char* kDeviation = "pixel_deviation";

at::Tensor as_tensor(const std::array<double, 3>& values) {
  return torch::tensor({values[0], values[1], values[2]}, torch::kDouble);
}

std::array<double, 3> as_array(const at::Tensor& values) {
  const at::Tensor here = values.cpu();
  return {here[0].item<double>(), here[1].item<double>(), here[2].item<double>()};
}

}  // namespace

ImageModel::ImageModel(Recipe recipe, std::vector<std::string> names, const data::PixelScale& scale)
    : Model(std::move(recipe)),
      classes(std::move(names)),
      network(own().network(static_cast<int64_t>(classes.size()))) {
  network->register_buffer(kMean, as_tensor(scale.mean));
  network->register_buffer(kDeviation, as_tensor(scale.deviation));
}

data::PixelScale ImageModel::scale() const {
  const auto buffers = network->named_buffers();
  return {as_array(buffers[kMean]), as_array(buffers[kDeviation])};
}

data::PixelScale ImageModel::stored_scale(const fs::path& checkpoint) {
  const fs::path weights = checkpoint / "model.safetensors";
  const nn::Safetensors stored = nn::read_safetensors(weights);
  const at::Tensor *mean = stored.find(kMean), *deviation = stored.find(kDeviation);
  if (!mean || !deviation || mean->numel() != 3 || deviation->numel() != 3)
    throw std::runtime_error(weights.string() + " has no mean and deviation of pixels; copy it again");
  return {as_array(*mean), as_array(*deviation)};
}

at::Tensor ImageModel::forward(const std::vector<at::Tensor>& input) {
  TORCH_CHECK_VALUE(input.size() == 1, "images: the input must be one tensor of pictures, got ",
                    input.size());
  return network->forward(input[0]);
}

at::Tensor ImageModel::score(const at::Tensor& images) {
  const auto logs = [&](const at::Tensor& x) { return network->forward(x).to(at::kFloat).log_softmax(1); };
  const at::Tensor straight = logs(images);
  if (!own().mirrored) return straight;
  return torch::logaddexp(straight, logs(images.flip(3))) - std::log(2.0);
}

std::string ImageModel::line_problem(const std::string& line) const {
  try {
    check_file(line);
  } catch (const std::invalid_argument& error) {
    return "the picture " + quote(line) + " cannot be read: " + error.what();
  }
  return "";
}

std::vector<at::Tensor> ImageModel::inputs(const std::vector<std::string>& lines) {
  std::vector<at::Tensor> pictures(lines.size());
  std::vector<std::string> problems(lines.size());
  std::atomic first_bad = lines.size();  // what follows it is answered later
  data::for_each_in_threads(static_cast<int64_t>(lines.size()), [&](int64_t number) {
    const auto i = static_cast<size_t>(number);
    if (i > first_bad) return;
    try {
      pictures[i] = data::fit_image(data::read_image(lines[i]), own().side(), lines[i]);
    } catch (const c10::Error& error) {
      problems[i] = error.what_without_backtrace();
      for (size_t known = first_bad; i < known && !first_bad.compare_exchange_weak(known, i);) {
      }
    }
  });
  if (first_bad < lines.size()) throw LineError(first_bad, problems[first_bad]);
  const at::Tensor input = data::to_input(torch::stack(pictures), scale(), own().mode());
  return {input.to(train::device_of(*network))};
}

std::vector<std::string> ImageModel::predict(const std::vector<std::string>& lines) {
  if (lines.empty()) return {};
  const at::Tensor shares = score(inputs(lines)[0]).exp().cpu();
  require_finite(shares);
  const auto [sorted, places] = shares.sort(/*stable=*/true, 1, /*descending=*/true);
  const int64_t named = std::min(own().top, shares.size(1));
  std::vector<std::string> answers;
  for (int64_t i = 0; i < shares.size(0); ++i) {
    std::string& answer = answers.emplace_back();
    for (int64_t k = 0; k < named; ++k)
      answer += (k > 0 ? "\t" : "") + classes[static_cast<size_t>(places[i][k].item<int64_t>())] + "\t" +
                fixed(sorted[i][k].item<double>(), 4);
  }
  return answers;
}

void ImageModel::store(const fs::path& folder) const {
  write_labels(folder / kClassesFile, classes);
}

std::vector<std::string> ImageModel::keeps_own(const fs::path& checkpoint) const {
  return head_of_other_labels(classes, checkpoint / kClassesFile);
}

std::vector<int64_t> ImageModel::head_rows(const fs::path& checkpoint) const {
  return rows_of_labels(classes, checkpoint / kClassesFile);
}

// The first convolution keeps its channels; where n does not divide them, it stays real.
std::unique_ptr<Model> ImageModel::in_algebra(const std::string& algebra) const {
  Recipe recipe = recipe_alone();
  auto& options = recipe.own<ImageOptions>();
  options.colour = own().mode();
  options.model.algebra(algebra);
  if (data::channels(*options.colour) % options.stem_n() != 0) options.model.real_stem(true);
  check(recipe);
  return std::make_unique<ImageModel>(std::move(recipe), classes, scale());
}

}  // namespace quatrain::tasks
