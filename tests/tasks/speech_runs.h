#pragma once

#include <gmock/gmock.h>
#include <torch/types.h>

#include <fstream>
#include <functional>
#include <sstream>

#include "quatrain/tasks/run.h"
#include "quatrain/train/trainer.h"
#include "tasks/settings.h"
#include "tasks/speech_corpora.h"
#include "temporary_folder.h"

/// Runs that learn the language of tones.
namespace quatrain::tasks {

inline constexpr const char* kTones = R"toml(
[task]
kind = "speech"
data = "tsv"
[features]
bands = 24
stack = 2
[model]
algebra = "quaternion"
hidden = 32
[train]
rate = 1e-2
schedule = "constant"
warmup = 0
epochs = 8
batch = 8
clip = 1.0
threads = 1
)toml";

class SpeechRuns : public test::FolderTest {
 protected:
  Recipe recipe_of(const std::vector<std::string>& settings) {
    return parse_recipe(kTones, "tones.toml", "tones", settings_of_tests(settings));
  }
  std::unique_ptr<Data> load(const std::vector<std::string>& settings, const DataRequest& request = {}) {
    DataRequest asked = request;
    asked.folder = (folder_ / "tones").string();
    return load_data(recipe_of(settings), asked);
  }
  train::Result learn(const std::vector<std::string>& settings, const std::string& name = "run") {
    const auto data = load(settings);
    const auto task = make_task(data->recipe(), *data);
    return train::Trainer(*task, data->recipe().train, {.folder = folder_ / name}).run();
  }
  std::string file(const std::string& name) const { return (folder_ / "tones" / name).string(); }
  std::string error_of_load(const std::vector<std::string>& settings) {
    return what_is_said([&] { load(settings); });
  }
  static std::string what_is_said(const std::function<void()>& call) {
    try {
      call();
    } catch (const c10::Error& error) {
      return error.what_without_backtrace();
    } catch (const std::exception& error) {
      return error.what();
    }
    return "no error";
  }
};

/// What a listener would note down: lines that add to it, and such as take its place, which are counted.
struct Noted {
  std::string text;
  int again = 0;
};

inline Noted noted(Live& live, const at::Tensor& samples, int64_t piece = 777) {
  Noted told;
  for (const at::Tensor& part : samples.split(piece)) {
    for (const std::string& news : live.push(part)) {
      if (news.starts_with("= ")) {
        told.text = news.substr(2);
        ++told.again;
      } else {
        told.text += (told.text.empty() ? "" : " ") + news;
      }
    }
  }
  return told;
}

}  // namespace quatrain::tasks
