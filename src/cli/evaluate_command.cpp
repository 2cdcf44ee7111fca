#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/ensembles.h"
#include "cli/figures.h"
#include "cli/json_file.h"
#include "cli/load_while_telling.h"
#include "cli/run_folder.h"
#include "cli/work_line.h"
#include "quatrain/tasks/run.h"
#include "quatrain/train/session.h"
#include "support/atomic_file.h"
#include "support/atomic_folder.h"
#include "support/text.h"
#include "train/finite.h"
#include "train/score.h"

namespace quatrain::cli {
namespace {

// A row for all examples, and one for each part of them that has figures of its own. Not all data of a kind
// have all its figures.
Table table_of(const std::vector<tasks::Figure>& described, const train::Figures& figures,
               const std::string& split) {
  const tasks::Figure count{"count", "examples", tasks::Figure::Format::count};
  std::vector<tasks::Figure> columns{count};
  for (const auto& figure : described) {
    columns.push_back(figure);
    if (!figure.beside.empty()) columns.push_back(beside(figure));
  }
  auto groups = tasks::groups_of(figures);
  groups.insert(groups.begin(), "");
  std::erase_if(columns, [&](const tasks::Figure& column) {
    return std::none_of(groups.begin(), groups.end(),
                        [&](const auto& group) { return figures.contains(column.name + group); });
  });
  Table table;
  std::vector<std::string> titles{split + " set"};
  for (const auto& column : columns) titles.push_back(column.title);
  table.row(titles);
  for (const auto& group : groups) {
    std::vector<std::string> row{group.empty() ? "all" : group.substr(1)};
    for (const auto& column : columns) row.push_back(shown(column, figures, group));
    table.row(row);
  }
  return table;
}

train::Evaluation score(train::Task& task, const std::string& split, bool bf16) {
  WorkLine line;
  int64_t batches = 0;
  const auto show = [&] { line.show("scoring the " + split + " set: batch " + grouped(++batches)); };
  return train::score(task, split, bf16, show);
}

void write_files(const train::Evaluation& evaluation, const std::string& split, const std::string& folder) {
  if (evaluation.files.empty())
    throw std::runtime_error("evaluate: scoring the " + split +
                             " set of this run makes figures and no files: leave out --out");
  AtomicFolder made(folder);
  for (const auto& [name, text] : evaluation.files) write_text(made.path() / name, text);
  made.commit();
}

}  // namespace

int evaluate_command(const EvaluateArguments& arguments) {
  check_output(arguments.json);
  if (!arguments.out.empty()) require_new("evaluate", arguments.out);
  const train::Session session(arguments.device);
  const std::shared_ptr<tasks::Model> model =
      tasks::load_run(arguments.run, parse_settings(arguments.settings), tasks::Use::scores);
  const tasks::Recipe& recipe = model->recipe();
  session.move(model->module());
  join_runs(*model, arguments.run, arguments.with, session);
  tasks::set_threads(recipe);
  const auto data = load_while_telling(recipe, {arguments.data, arguments.split, model.get()});
  std::vector<std::string> notes = data->notes();
  if (arguments.data.empty())
    for (const auto& name : tasks::changed_data(*data, arguments.run))
      notes.push_back(
          name +
          " is not what this run was trained with: these figures cannot be compared with the run's own");
  print_notes(notes);
  if (!data->has(arguments.split))
    throw std::runtime_error("the data have no " + arguments.split +
                             " set to score: name another set with --split, or other data with --data");
  const auto task = data->make_task(model);
  const train::Evaluation evaluation = score(*task, arguments.split, recipe.train.bf16);
  const train::Figures& figures = evaluation.figures;

  if (const std::string doubt = train::doubt_of(figures, arguments.split); !doubt.empty()) {
    print_notes({doubt});
    notes.push_back(doubt);
  }
  // The figures come first: a disk that is full takes none of them away.
  if (arguments.json != "-") {
    std::fputs(table_of(recipe.about().figures, figures, arguments.split).text().c_str(), stdout);
    for (const auto& line : evaluation.lines) std::printf("%s\n", line.c_str());
  }
  if (!arguments.json.empty())
    write_json({{"run", arguments.run},
                {"with", arguments.with},
                {"split", arguments.split},
                {"figures", figures},
                {"lines", evaluation.lines},
                {"notes", notes}},
               arguments.json);
  if (!arguments.out.empty()) write_files(evaluation, arguments.split, arguments.out);
  return kSuccess;
}

}  // namespace quatrain::cli
