#include <ATen/Parallel.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "cli/bench_model.h"
#include "cli/bench_run.h"
#include "cli/commands.h"
#include "cli/console.h"
#include "cli/recipe_files.h"
#include "cli/run_folder.h"
#include "cli/stop.h"
#include "quatrain/tasks/run.h"

namespace quatrain::cli {

int bench_model_command(const BenchModelArguments& arguments) {
  const tasks::Recipe recipe = read_with_settings(find_recipe(arguments.recipe), arguments);
  tasks::set_threads(recipe);
  const auto data = tasks::load_data(recipe, {arguments.data});
  auto asked = data->recipe();  // with the reader and the tokenizer that the data settled
  asked.twins = recipe.twins;
  const auto twins = twins_beside_real(asked);
  const auto passes = model_passes(asked);
  watch_for_stop();
  // Memory first: see peak_memory.
  std::vector<int64_t> peaks(passes.size() * twins.size());
  std::vector<ModelResult> results;
  const bool stopped = measure_cases(peaks.size() + passes.size(), [&](size_t i) {
    if (i < peaks.size()) {
      peaks[i] = model_memory(twins[i % twins.size()], *data, passes[i / twins.size()]);
      return;
    }
    const size_t pass = i - peaks.size();
    auto more = measure_models(twins, *data, passes[pass], arguments.seconds);
    for (size_t twin = 0; twin < twins.size(); ++twin) {
      more[twin].peak_bytes = peaks[pass * twins.size() + twin];
      more[twin].real_peak_bytes = peaks[pass * twins.size()];
      results.push_back(std::move(more[twin]));
    }
  });
  const std::string title =
      recipe.name + ", fresh models, " + counted(at::get_num_threads(), "thread") + "\n\n";
  publish(results.empty() ? "" : title + report(results, colours()), to_json(results), arguments.json);
  if (stopped) throw Stopped{};
  return kSuccess;
}

std::string report(const std::vector<ModelResult>& results, bool colour) {
  const auto share = [&](double ours, double real) {
    const std::string text = fixed(ours / real, 2);
    return colour ? painted(text, ours <= real ? "32" : "31") : text;
  };
  const std::string unit = results.empty() ? "" : results.front().recipe.about().unit;
  Table table("lrlrrrrrrrr");
  table.row({"pass", "batch", "twin", unit + "/s", "a batch", "spread", "time to real", "peak", "to real",
             "kept", "parameters"});
  table.rule();
  for (const auto& r : results) {
    const bool first =
        &r == &results.front() || r.training != (&r - 1)->training || r.batch != (&r - 1)->batch;
    if (first && &r != &results.front()) table.row({""});
    table.row({!first       ? ""
               : r.training ? "training"
                            : "inference",
               first ? std::to_string(r.batch) : "", r.recipe.name,
               grouped(std::llround(r.units_per_second())), seconds(r.seconds_per_batch()),
               percent(r.time.spread(), 0), share(r.time.median, r.real.median),
               bytes(static_cast<double>(r.peak_bytes)),
               share(static_cast<double>(r.peak_bytes), static_cast<double>(r.real_peak_bytes)),
               r.prepared > 0 ? bytes(static_cast<double>(r.prepared)) : "-", grouped(r.parameters)});
  }
  return table.text() +
         "\ntraining: forward, backward, clipping, optimizer. peak: memory of the model and its pass, from "
         "VmHWM "
         "in a process of its\nown. kept: bytes of weights prepared for eval mode. spread: between the "
         "quartiles, "
         "as a share of the median.\n";
}

nlohmann::ordered_json to_json(const std::vector<ModelResult>& results) {
  auto all = nlohmann::ordered_json::array();
  const std::string unit = results.empty() ? "" : results.front().recipe.about().unit;
  for (const auto& r : results)
    all.push_back({{"twin", r.recipe.name},
                   {"algebra", tasks::find_value(r.recipe, "model.algebra").value_or("")},
                   {"scope", tasks::find_value(r.recipe, "model.scope").value_or("")},
                   {"batch", r.batch},
                   {"dtype", r.recipe.train.bf16 ? "bfloat16" : "float32"},
                   {"threads", at::get_num_threads()},
                   {"pass", r.training ? "training" : "inference"},
                   {unit + "_per_second", r.units_per_second()},
                   {"ratio_real", r.ratio_real()},
                   {"spread", r.time.spread()},
                   {"us", r.seconds_per_batch() * 1e6},
                   {"parameters", r.parameters},
                   {"prepared_bytes", r.prepared},
                   {"peak_bytes", r.peak_bytes},
                   {"real_peak_bytes", r.real_peak_bytes}});
  return all;
}

}  // namespace quatrain::cli
