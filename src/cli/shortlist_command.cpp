#include <cstdio>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/stop.h"
#include "cli/work_line.h"
#include "support/shell_word.h"
#include "tasks/seq2seq/shortlist.h"
#include "train/run_files.h"

namespace quatrain::cli {

int shortlist_command(const ShortlistArguments& arguments) {
  watch_for_stop();
  tasks::ShortlistRequest request;
  request.data = arguments.data;
  request.best = arguments.best;
  request.frequent = arguments.frequent;
  request.after_pairs = throw_if_stopped;
  const auto report = while_telling([&](auto tell) {
    request.tell = tell;
    return tasks::make_shortlist(arguments.run, request);
  });
  print_notes(report.notes);
  Table table;
  table.row({"training pairs", grouped(report.pairs)});
  table.row({"target vocabulary", grouped(report.vocabulary)});
  if (report.has_dev) {
    table.row({"dev sentence's list", fixed(report.mean_size, 1) + " tokens"});
    table.row({"dev tokens listed", percent(report.recall, 2)});
    table.row({"dev sentences listed wholly", percent(report.whole)});
  }
  std::printf("%s\nThe shortlist is in %s/%s. Next:\n  quatrain predict %s --set decode.shortlist=true\n",
              table.text().c_str(), arguments.run.c_str(), train::kShortlistFile,
              shell_word(arguments.run).c_str());
  return kSuccess;
}

}  // namespace quatrain::cli
