#include "bench/report.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "support/numbers.h"
#include "support/text_table.h"

namespace quatrain::bench {
namespace {

const char* pass_name(const Row& row) {
  return row.training ? "training" : "inference";
}

std::string bytes_or_dash(int64_t size) {
  return size > 0 ? bytes(static_cast<double>(size)) : "-";
}

// What was asked, the time, what the subject adds, the memory: in every table in this order.
std::vector<Field> cells_of(const Row& row) {
  std::vector<Field> cells = row.asked;
  cells.push_back(column("pass", pass_name(row), true));
  cells.push_back(column("threads", std::to_string(row.threads)));
  cells.push_back(column("time", seconds(row.ours.time.median)));
  cells.push_back(column("spread", percent(row.ours.time.spread(), 0)));
  cells.push_back(share_column("to real", row.ours.time.median, row.real.time.median));
  cells.insert(cells.end(), row.more.begin(), row.more.end());
  const bool peak = row.ours.peak_bytes > 0;
  cells.push_back(column("peak", bytes_or_dash(row.ours.peak_bytes)));
  cells.push_back(peak ? share_column("to real", static_cast<double>(row.ours.peak_bytes),
                                      static_cast<double>(row.real.peak_bytes))
                       : column("to real", "-"));
  cells.push_back(column("prepared", bytes_or_dash(row.ours.prepared_bytes)));
  cells.push_back(column("parameters", grouped(row.ours.parameters)));
  // What stands in the JSON alone has neither a title nor a text.
  std::erase_if(cells, [](const Field& cell) { return cell.title.empty() && cell.text.empty(); });
  return cells;
}

constexpr const char* kNotes =
    "time: the median. spread: between the quartiles, as a share of it. to real: share of the real one's "
    "time, "
    "or memory.\npeak: memory of the model and a pass, from VmHWM in a process of its own. prepared: bytes "
    "of "
    "weights prepared for eval mode.\n";

nlohmann::ordered_json value_of(const Field& field) {
  return std::visit(
      [](const auto& value) -> nlohmann::ordered_json {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, Field::Parts>) {
          auto parts = nlohmann::ordered_json::object();
          for (const auto& [name, part] : value) parts[name] = part;
          return parts;
        } else {
          return value;
        }
      },
      field.value);
}

}  // namespace

std::string report(const Subject& subject, const std::vector<Row>& rows, bool colour) {
  if (rows.empty()) return "";
  std::string alignment;
  std::vector<std::string> titles;
  for (const Field& cell : cells_of(rows.front())) {
    alignment += cell.left ? 'l' : 'r';
    titles.push_back(cell.title);
  }
  Table table(alignment);
  table.row(titles);
  table.rule();
  for (size_t i = 0; i < rows.size(); ++i) {
    const bool several = i > 1 && rows[i - 1].group == rows[i - 2].group;
    if (several && rows[i].group != rows[i - 1].group) table.row({""});
    std::vector<std::string> texts;
    for (const Field& cell : cells_of(rows[i]))
      texts.push_back(colour && cell.share > 0 ? painted(cell.text, cell.share <= 1 ? "32" : "31")
                                               : cell.text);
    table.row(std::move(texts));
  }
  return subject.title + (subject.title.empty() ? "" : "\n\n") + table.text() + "\n" + kNotes + subject.notes;
}

nlohmann::ordered_json to_json(const std::vector<Row>& rows) {
  auto all = nlohmann::ordered_json::array();
  for (const Row& row : rows) {
    nlohmann::ordered_json one;
    const auto add = [&one](const std::vector<Field>& fields) {
      for (const Field& field : fields)
        if (!field.key.empty()) one[field.key] = value_of(field);
    };
    add(row.asked);
    one["threads"] = row.threads;
    one["pass"] = pass_name(row);
    one["ratio_real"] = row.ratio_real();
    one["spread"] = row.ours.time.spread();
    one["us"] = row.ours.time.median * 1e6;
    one["real_us"] = row.real.time.median * 1e6;
    add(row.more);
    one["parameters"] = row.ours.parameters;
    one["real_parameters"] = row.real.parameters;
    one["prepared_bytes"] = row.ours.prepared_bytes;
    one["peak_bytes"] = row.ours.peak_bytes;
    one["real_peak_bytes"] = row.real.peak_bytes;
    all.push_back(std::move(one));
  }
  return all;
}

}  // namespace quatrain::bench
