#include <torch/torch.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "cli/commands.h"
#include "cli/lines.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/session.h"
#include "support/text.h"
#include "train/autocast.h"

namespace quatrain::cli {
namespace {

constexpr size_t kPortion = 2048;  // lines that are answered together

// The lines from `begin` on that are written together: whole ones, some 4 KiB.
size_t end_of_portion(const std::string& text, size_t begin) {
  constexpr size_t kMost = 1 << 12;  // a reader that pauses keeps no more waiting
  const size_t last = text.rfind('\n', begin + kMost - 1);
  return last != text.npos && last >= begin ? last + 1 : text.find('\n', begin) + 1;
}

// Whole lines, even where a signal ends the program.
void write(const std::vector<std::string>& answers) {
  std::string text;
  for (const auto& answer : answers) text += answer + "\n";
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = end_of_portion(text, begin);
    const HeldStop held;
    while (begin < end) {
      const ssize_t written = ::write(STDOUT_FILENO, text.data() + begin, end - begin);
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) throw std::runtime_error("cannot write the standard output");
      begin += static_cast<size_t>(written);
    }
  }
}

// Loads other runs, with which the model shall answer.
void join(tasks::Model& model, const PredictArguments& arguments, const train::Session& session) {
  for (const auto& run : arguments.with) {
    const auto other = tasks::load_run(run);
    session.move(other->module());
    try {
      model.answer_with(*other);
    } catch (const tasks::RecipeError& error) {
      throw tasks::RecipeError("the runs '" + arguments.run + "' and '" + run +
                               "' cannot answer together: " + error.what());
    }
  }
}

}  // namespace

int predict_command(const PredictArguments& arguments) {
  const train::Session session(arguments.device);
  const auto model = tasks::load_run(arguments.run, parse_settings(arguments.settings));
  session.move(model->module());
  join(*model, arguments, session);
  tasks::set_threads(model->recipe());
  const torch::NoGradGuard no_grad;
  const train::Autocast autocast(model->recipe().train.bf16, session.device().type());
  LineReader reader(STDIN_FILENO, kLongestLine);
  size_t number = 0;
  if (::isatty(STDIN_FILENO))
    std::fprintf(stderr, "%s a line; end with Ctrl-D\n", model->recipe().about().reads.c_str());
  for (;;) {
    const auto lines = reader.next(kPortion);
    if (lines.empty()) break;
    const auto [answers, problem] = tasks::answer(*model, lines);
    write(answers);
    number += answers.size();
    if (!problem.empty())
      throw std::runtime_error("standard input, line " + std::to_string(number + 1) + ": " + problem);
  }
  if (const std::string text = model->summary(); !text.empty()) std::fprintf(stderr, "%s\n", text.c_str());
  return kSuccess;
}

}  // namespace quatrain::cli
