#include <torch/torch.h>

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/json_file.h"
#include "cli/text_task.h"
#include "quatrain/train/session.h"
#include "support/text.h"
#include "train/autocast.h"

namespace quatrain::cli {

int evaluate_command(const EvaluateArguments& arguments) {
  const train::Session session(arguments.device);
  TrainedText trained = load_trained(arguments.run);
  session.move(*trained.model);
  set_threads(trained.recipe);
  TextData data = load_text(trained.recipe, arguments.data);
  if (data.splits.labels != trained.labels) {
    throw std::runtime_error("the data's labels (" + join(data.splits.labels) +
                             ") are not those of the run (" + join(trained.labels) + ")");
  }
  data.vocabulary = trained.vocabulary;
  const auto task = make_task(trained.recipe, data, trained.model);
  const torch::NoGradGuard no_grad;
  trained.model->eval();
  const train::Autocast autocast(trained.recipe.train.precision == "bfloat16", session.device().type());
  const auto figures = task->evaluate(arguments.split, {}).figures;

  if (!arguments.json.empty())
    write_json({{"run", arguments.run}, {"split", arguments.split}, {"figures", figures}}, arguments.json);
  if (arguments.json == "-") return kSuccess;
  Table table;
  table.row({arguments.split + " set", "examples", "accuracy", "majority"});
  for (const auto& [name, value] : figures) {
    if (!name.starts_with("accuracy")) continue;
    const std::string group = name.substr(std::string("accuracy").size());
    table.row({group.empty() ? "all" : group.substr(1), grouped(std::llround(figures.at("count" + group))),
               percent(value, 2), percent(figures.at("majority" + group), 2)});
  }
  std::printf("%s\nloss %s\n", table.text().c_str(), fixed(figures.at("loss"), 4).c_str());
  return kSuccess;
}

}  // namespace quatrain::cli
