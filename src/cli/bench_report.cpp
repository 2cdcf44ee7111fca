#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench.h"
#include "cli/console.h"

namespace quatrain::cli {
namespace {

const char* dtype_name(at::ScalarType dtype) {
  switch (dtype) {
    case at::kDouble:
      return "float64";
    case at::kHalf:
      return "float16";
    case at::kBFloat16:
      return "bfloat16";
    default:
      return "float32";
  }
}

std::string memory(const LayerResult& r) {
  if (r.peak_bytes > 0)
    return bytes(static_cast<double>(r.peak_bytes)) + " (" +
           percent(static_cast<double>(r.peak_bytes) / static_cast<double>(r.real_peak_bytes), 0) + ")";
  return r.prepared > 0 ? bytes(static_cast<double>(r.prepared)) : "-";
}

}  // namespace

std::string report(const std::vector<LayerResult>& results, bool colour) {
  if (results.empty()) return "";
  Table table("lrrlrlrrrrrrll");
  table.row({"algebra", "size", "batch", "type", "threads", "pass", "time", "spread", "to real", "limit",
             "to usual", "memory", "way", "fastest way"});
  table.rule();
  for (const auto& r : results) {
    const auto& c = r.asked;
    std::string fastest = r.best_way;
    if (const auto best =
            std::find_if(r.ways.begin(), r.ways.end(), [&](const auto& w) { return w.first == r.best_way; });
        best != r.ways.end()) {
      const double excess = r.ours.median / best->second.median - 1;
      if (excess > 0.1) fastest += " (-" + percent(1 - best->second.median / r.ours.median, 0) + ")";
    }
    std::string to_real = fixed(r.ratio_real(), 2);
    if (colour) to_real = painted(to_real, r.ratio_real() <= 1 ? "32" : "31");
    table.row({c.algebra, std::to_string(c.in) + "x" + std::to_string(c.out), std::to_string(c.batch),
               dtype_name(c.dtype), std::to_string(c.threads), c.training ? "training" : "inference",
               seconds(r.ours.median), percent(r.ours.spread(), 0), to_real, fixed(r.limit, 2),
               fixed(r.ratio_materialised(), 2), memory(r), r.way, fastest});
  }
  return table.text() +
         "\nto real: share of torch::nn::Linear's time. limit: R/n\u00b2, the share of its arithmetic. to "
         "usual: "
         "share of the time of\na layer that writes out its matrix in every call. memory: of weights "
         "prepared for eval mode; in training that of the layer and a step at its peak,\nand its share of "
         "torch::nn::Linear's. spread: between the quartiles, as a share of the median. way: what the "
         "planner chose;\nfastest way: what it could have saved by another.\n";
}

nlohmann::ordered_json to_json(const std::vector<LayerResult>& results) {
  auto all = nlohmann::ordered_json::array();
  for (const auto& r : results) {
    const auto& c = r.asked;
    nlohmann::ordered_json one{{"algebra", c.algebra},
                               {"in", c.in},
                               {"out", c.out},
                               {"batch", c.batch},
                               {"dtype", dtype_name(c.dtype)},
                               {"threads", c.threads},
                               {"pass", c.training ? "training" : "inference"},
                               {"way", r.way},
                               {"best_way", r.best_way},
                               {"limit", r.limit},
                               {"ratio_real", r.ratio_real()},
                               {"ratio_materialised", r.ratio_materialised()},
                               {"spread", r.ours.spread()},
                               {"us", r.ours.median * 1e6},
                               {"real_us", r.real.median * 1e6},
                               {"parameters", r.parameters},
                               {"real_parameters", r.real_parameters},
                               {"prepared_bytes", r.prepared},
                               {"peak_bytes", r.peak_bytes},
                               {"real_peak_bytes", r.real_peak_bytes}};
    for (const auto& [way, time] : r.ways) one["ways_us"][way] = time.median * 1e6;
    all.push_back(std::move(one));
  }
  return all;
}

std::string layer_table(const std::vector<LayerResult>& results) {
  if (results.empty()) return "";
  const auto& first = results.front().asked;
  std::vector<std::string> algebras;
  std::vector<std::pair<bool, int64_t>> columns;
  for (const auto& r : results) {
    if (std::find(algebras.begin(), algebras.end(), r.asked.algebra) == algebras.end())
      algebras.push_back(r.asked.algebra);
    const std::pair column{r.asked.training, r.asked.batch};
    if (std::find(columns.begin(), columns.end(), column) == columns.end()) columns.push_back(column);
  }
  const auto find = [&](const std::string& algebra, const auto& column) -> const LayerResult* {
    for (const auto& r : results)
      if (r.asked.algebra == algebra && std::pair{r.asked.training, r.asked.batch} == column) return &r;
    return nullptr;
  };
  Table table("lr");
  std::vector<std::string> passes{"", ""}, batches{"", "parameters"},
      real{"torch::nn::Linear", grouped(results.front().real_parameters)};
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool begins = i == 0 || columns[i].first != columns[i - 1].first;
    passes.emplace_back(!begins ? "" : columns[i].first ? "training" : "inference");
    batches.push_back("batch " + std::to_string(columns[i].second));
    const LayerResult* result = find(algebras.front(), columns[i]);
    real.push_back(result ? seconds(result->real.median) : "-");
  }
  table.row(passes);
  table.row(batches);
  table.rule();
  table.row(real);
  for (const auto& algebra : algebras) {
    std::vector<std::string> row{algebra, ""};
    for (const auto& column : columns) {
      const LayerResult* result = find(algebra, column);
      if (result) row[1] = grouped(result->parameters);
      row.push_back(result ? ratio(result->ours.median, result->real.median) : "-");
    }
    table.row(row);
  }
  return "Single layers, " + std::to_string(first.in) + " -> " + std::to_string(first.out) + ", " +
         dtype_name(first.dtype) + ", " + counted(first.threads, "thread") +
         ": times of torch::nn::Linear, and the others' ratio to them\n\n" + table.text();
}

}  // namespace quatrain::cli
