#include "cli/error_cases.h"
#include "data/picture_files.h"

namespace quatrain::cli {
namespace {

namespace fs = std::filesystem;

const std::string kSee =
    "train shapes --data colours --set task.data=folders --set task.side=12 --set \"model.widths=4 4 4 4\" "
    "--set augmentation.padding=1 --set train.steps=1 --set train.batch=4 --set train.threads=1";
const std::string kNew = kSee + " --out run2";

// A folder `colours`, and what is done to it.
Prepare colours(const std::function<void(const fs::path&)>& spoil = nullptr) {
  return [=](const Workplace& place) {
    test::write_colours(place.path("colours"), 2, 1, 1);
    if (spoil) spoil(place.path("colours"));
  };
}

// A run `seen` of it.
Prepare seen(const std::function<void(const Workplace&)>& spoil) {
  return [=](const Workplace& place) {
    colours()(place);
    place.run(kSee + " --out seen");
    spoil(place);
  };
}

// Six pictures of 4 x 4 pixels, and labels.
Prepare planes(const std::string& labels) {
  return [=](const Workplace& place) {
    test::write_bytes(place.path("colours/train.u8"), std::string(6 * 3 * 4 * 4, 'x'));
    test::write_bytes(place.path("colours/train.labels.u8"), labels);
  };
}
const std::string kPlanes = " --set task.data=planes --set task.side=4";

}  // namespace

Section image_errors() {
  return {"Pictures",
          {{"a picture that is cut off", kNew, 1, colours([](const auto& folder) {
              const auto file = folder / "train/sea/1.png";
              fs::resize_file(file, fs::file_size(file) / 2);
            })},
           {"a file that is no picture", kNew, 1,
            colours([](const auto& folder) { test::write_bytes(folder / "train/sea/1.png", "no picture"); })},
           {"an empty picture", kNew, 1,
            colours([](const auto& folder) { test::write_bytes(folder / "train/sea/1.png", ""); })},
           {"pictures of one class alone", kNew, 1, colours([](const auto& folder) {
              for (const char* set : {"train", "dev", "test"})
                for (const char* name : {"leaf", "sun"}) fs::remove_all(folder / set / name);
            })},
           {"a class of the test set that training lacks", kNew, 1,
            colours([](const auto& folder) { fs::rename(folder / "test/sun", folder / "test/moon"); })},
           {"a folder without pictures", kNew, 1, colours([](const auto& folder) {
              for (const auto& entry : fs::directory_iterator(folder)) fs::remove_all(entry);
            })},
           {"fewer labels than pictures", kNew + kPlanes, 1, planes({0, 1, 0, 1, 0})},
           {"an empty file of planes", kNew + kPlanes, 1,
            [](const Workplace& place) {
              planes("")(place);
              test::write_bytes(place.path("colours/train.u8"), "");
            }},
           {"a picture that is a line", kNew, 1, colours([](const auto& folder) {
              test::write_bytes(folder / "train/sea/1.png", test::colour_png(1, 1, 500000, 1));
            })},
           {"planes of another size", kNew + kPlanes + " --set task.side=5", 1, planes({0, 1, 0, 1, 0, 1})},
           {"CIFAR-10 that is not there", "train cifar10 --data colours --out new --set train.steps=1", 1,
            colours()},
           {"widths that n does not divide", kNew + " --set \"model.widths=6 8 8 8\"", 2, colours()},
           {"widths of three stages", kNew + " --set \"model.widths=8 8 8\"", 2, colours()},
           {"a depth that there is not", kNew + " --set model.depth=20", 2, colours()},
           {"colours that n does not divide", kNew + " --set task.colour=rgb", 2, colours()},
           {"a picture that is moved out of itself", kNew + " --set augmentation.padding=12", 2, colours()},
           {"too few names of classes", kNew + " --set \"task.classes=leaf sea\"", 2, colours()},
           {"two classes of one name", kNew + " --set \"task.classes=leaf sea leaf\"", 1, colours()},
           {"other pictures than the run's", "train seen --resume --set train.steps=2", 1,
            seen([](const Workplace& place) {
              test::write_bytes(place.path("colours/train/sea/1.png"), test::colour_png(1, 99));
            })},
           {"pictures of other classes than the run's", "evaluate seen", 1, seen([](const Workplace& place) {
              for (const char* set : {"train", "dev", "test"})
                fs::rename(place.path("colours") / set / "sun", place.path("colours") / set / "moon");
            })}}};
}

}  // namespace quatrain::cli
