#include "tasks/images/options.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "quatrain/data/image_set.h"
#include "quatrain/data/tokenizer.h"
#include "support/text.h"
#include "tasks/data_folder.h"
#include "tasks/recipe_keys.h"

namespace quatrain::tasks {
namespace {

constexpr const char* kAutomatic = "automatic";
constexpr int64_t kLargestWidth = 1 << 16;
constexpr std::array<int64_t, 5> kDepths{18, 34, 50, 101, 152};

std::vector<int64_t> widths_of(const std::string& text) {
  std::vector<int64_t> all;
  const auto words = data::split(text, data::Tokenizer::whitespace);
  for (const auto& word : words) {
    int64_t width = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), width);
    if (error != std::errc() || end != word.data() + word.size() || width < 1 || width > kLargestWidth) break;
    all.push_back(width);
  }
  if (all.size() != 4 || words.size() != 4)
    throw std::invalid_argument("must be four whole numbers from 1 to " + std::to_string(kLargestWidth) +
                                " with spaces between, such as \"64 128 256 512\", got " + quote(text));
  return all;
}

std::string with_spaces(const std::vector<std::string>& words) {
  std::string text;
  for (const auto& word : words) text += (text.empty() ? "" : " ") + word;
  return text;
}

std::string written(const std::vector<int64_t>& widths) {
  std::vector<std::string> words;
  for (const int64_t width : widths) words.push_back(std::to_string(width));
  return with_spaces(words);
}

std::vector<std::string> colour_names() {
  std::vector<std::string> all{kAutomatic};
  for (const auto mode : data::kColourModes) all.emplace_back(data::name(mode));
  return all;
}

}  // namespace

ImageOptions::ImageOptions() {
  source.reader = "shapes";
}

// One shape for all entries reads better than what fits on a line.
// clang-format off
void ImageOptions::describe(train::Keys& keys) {
  using train::Value;
  using models::Residual;
  using Norm = models::ConvolutionNorm;
  using I = nn::Initialiser;
  constexpr double kMost = 1e8;
  constexpr const char* kFiles = "task.data other than shapes";
  const auto of_files = [this] { return source.reader != "shapes"; };

  keys.table("task", "What is learned, from which pictures.");
  keys.text("data", source.reader, "The reader of the pictures' format; `shapes` are generated.", names_of(data::image_readers()));
  keys.path("folder", source.folder,
            "Folder of the data. `--data` sets it; where both are empty, the environment's `QUATRAIN_DATA` "
            "counts.").may_change();
  keys.number("side", source.side, 2, 4096, "Of `planes` and `folders`: rows and columns of a picture; those of `folders` are brought to it.").only("task.data = planes or folders", [this] { return source.reader == "planes" || source.reader == "folders"; });
  keys.number("dev_share", source.dev_share, 0, 0.99, "Share of the training set that is the dev set where the data have none.").only(kFiles, of_files);
  keys.number("test_share", source.test_share, 0, 0.99, "Of `folders`: share that is the test set where the data have none.").only("task.data = folders", [this] { return source.reader == "folders"; });
  keys.flag("skip_bad", source.skip_bad,
            "Bad pictures (a damaged file, a label that is no class) are counted and left out; else the first is an error.").may_change_in_answers().only(kFiles, of_files);
  keys.add("classes",
           [this] { return Value(with_spaces(classes)); },
           [this](const Value& value) { classes = data::split(std::get<std::string>(value), data::Tokenizer::whitespace); },
           "Names of the classes, with spaces between, in the order of their numbers; empty: the data's own.");
  keys.add("colour",
           [this] { return Value(std::string(colour ? data::name(*colour) : kAutomatic)); },
           [this](const Value& value) {
             colour.reset();
             if (const auto& name = std::get<std::string>(value); name != kAutomatic) colour = data::parse_colour_mode(name);
           },
           "What the channels of a pixel are. `rgb`: red, green, blue. `zero_first`, `zero_last`: a zero before or behind them. "
           "`grey_first`: grey before them. `automatic`: `zero_first` where n of the first convolution is 2 or 4, else `rgb`.").values = colour_names();

  keys.table("shapes", "Sizes of the generated sets, where `task.data` is `shapes`.");
  keys.number("train", source.shapes.train, 10, kMost, "Generated pictures to train on.");
  keys.number("dev", source.shapes.dev, 10, kMost, "Generated pictures of the dev set, which selects the best checkpoint.");
  keys.number("test", source.shapes.test, 10, kMost, "Generated pictures of the test set, which is scored once, at the end.");
  keys.number("seed", source.shapes.seed, 0, 1e12, "Seed of the pictures.");

  keys.table("augmentation", "What becomes of a picture each time it is trained on.");
  keys.number("padding", augmentation.padding, 0, 4095, "It is moved by up to so many pixels, up or down and to a side (a random crop); 0: it stays.");
  keys.flag("flip", augmentation.flip, "Left and right change places, in half of the cases.");
  keys.number("cutout", augmentation.cutout, 0, 4096, "A square of so many pixels a side is hidden around a random pixel; 0: none.");
  keys.number("part", augmentation.part, 0.01, 1,
              "Before all that a random part of it, of this share of its area at least, is enlarged to the whole (a random resized crop); 1: all of it.");

  keys.table("model", "A PHResNet: a stem, four stages of residual blocks, the mean over all pixels, a real linear layer.");
  keys.algebra("algebra", model.map_settings.algebra,
               "What the convolutions multiply with: `real`, `quaternion`, `phm(4)` ..; `wkp(4)` has a weight for each summand.");
  keys.number("depth", model.depth(), 18, 152, "18 or 34: blocks of two convolutions; 50, 101 or 152: of three, the last with four times the channels.");
  keys.add("widths",
           [this] { return Value(written(model.widths())); },
           [this](const Value& value) { model.widths(widths_of(std::get<std::string>(value))); },
           "Channels of the four stages, with spaces between; n must divide them. PHYDI takes `60 120 240 516` at n = 3.");
  keys.choice("residual", model.residual(), {Residual::plain, Residual::phydi, Residual::code, Residual::fixup},
              "A block of input x with the branch F and the shortcut s. `plain`: ReLU(s(x) + F(x)). `phydi`: s(x) + alpha F(x), alpha learned and 0 at the start. "
              "`code`: s(x) + alpha ReLU(F(x)), as PHYDI's program has it. `fixup`: plain without batch norms.");
  keys.choice("norm", model.norm(), {Norm::batch, Norm::whitening},
              "Behind each convolution. `batch`: each channel gets mean 0 and variance 1 over batch and pixels. `whitening`: the n components of each unit together get the covariance I, and a learned symmetric matrix (quaternion batch norm).").only("model.residual = plain, phydi or code", [this] { return model.residual() != Residual::fixup; });
  keys.choice("stem", model.stem(), {models::Stem::small, models::Stem::large},
              "What the network begins with. `small`: a 3 x 3 convolution. `large`, for pictures of some 224 pixels a side: a 7 x 7 convolution and a maximum over 3 x 3 pixels, each of stride 2.");
  keys.flag("real_stem", model.real_stem(), "The first convolution is real, whatever the algebra.").only("an algebra of more than one component", [this] { return model.algebra().n > 1; });
  keys.add("winograd",
           [this] { return Value(std::string(ops::name(model.winograd()))); },
           [this](const Value& value) { model.winograd(ops::parse_winograd(std::get<std::string>(value))); },
           "How 3 x 3 convolutions are computed; errors of `4x4` are some four times larger than without. `2x2` and `4x4` are taken by real convolutions too, but not by the first one, which has few channels.").values = {"auto", "none", "2x2", "4x4"};
  keys.choice("initialiser", model.map_settings.initialiser, {I::glorot, I::he, I::lecun, I::polar, I::polar_he, I::polar_paper, I::polar_paper_he},
              "How weights are drawn; fans count the whole kernel.");

  keys.table("train", "How it is trained.");
  keys.number("label_smoothing", label_smoothing, 0, 0.99, "Share of the target that is spread over all classes.");

  keys.table("evaluate", "How pictures are scored and answered.");
  keys.flag("flip", mirrored, "An answer is the mean over the picture and its mirror image, at twice the work.").may_change_in_answers();
  keys.number("top", top, 1, kMost, "An answer names so many classes with their probabilities, the likeliest first; no more than there are.").only_predicts();
}
// clang-format on

void ImageOptions::check(const Recipe& recipe) const {
  const nn::AlgebraSpec& algebra = model.algebra();
  const std::string n = "n = " + std::to_string(algebra.n) + " (" + algebra.text() + ")";
  if (std::ranges::find(kDepths, model.depth()) == kDepths.end())
    recipe.refuse("model.depth", "must be 18, 34, 50, 101 or 152, got " + std::to_string(model.depth()));
  if (const auto nearest = models::divisible_widths(model.widths(), algebra.n); nearest != model.widths())
    recipe.refuse("model.widths", "must be divisible by " + n + ", got " + quote(written(model.widths())) +
                                      " (nearest: " + quote(written(nearest)) + ")");
  if (const int64_t channels = data::channels(mode()); channels % stem_n() != 0)
    recipe.refuse("task.colour", std::string("= ") + data::name(mode()) + " gives " +
                                     std::to_string(channels) + " channels, which " + n + " does not divide" +
                                     (channels == 3 && 4 % stem_n() == 0 ? "; take zero_first"
                                                                         : "; set model.real_stem = true"));
  if (augmentation.padding >= side())
    recipe.refuse("augmentation.padding", "must be less than the side of a picture, " +
                                              std::to_string(side()) + ", got " +
                                              std::to_string(augmentation.padding));
  if (augmentation.cutout > side())
    recipe.refuse("augmentation.cutout", "must be at most the side of a picture, " + std::to_string(side()) +
                                             ", got " + std::to_string(augmentation.cutout));
  if (source.reader == "folders" && source.dev_share + source.test_share >= 1)
    recipe.refuse("task.dev_share", "and task.test_share must be less than 1 together");
}

int64_t ImageOptions::side() const {
  return source.reader == "planes" || source.reader == "folders" ? source.side : data::kShapeSide;
}

data::ColourMode ImageOptions::mode() const {
  if (colour) return *colour;
  return stem_n() == 2 || stem_n() == 4 ? data::ColourMode::zero_first : data::ColourMode::rgb;
}

models::ResNetOptions ImageOptions::network(int64_t classes) const {
  models::ResNetOptions sized = model;
  return sized.in_channels(data::channels(mode())).classes(classes);
}

}  // namespace quatrain::tasks
