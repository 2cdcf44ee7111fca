#include "bench/linear.h"

#include <torch/nn/module.h>
#include <torch/nn/modules/linear.h>
#include <torch/types.h>
#include <torch/utils.h>

#include <algorithm>
#include <stdexcept>

#include "bench/pass.h"
#include "quatrain/nn/linear.h"
#include "quatrain/nn/parameters.h"
#include "support/enum_names.h"
#include "support/numbers.h"
#include "support/text_table.h"

namespace quatrain::bench {
namespace {

using ops::Way;
using Forward = std::function<at::Tensor(const at::Tensor&)>;

constexpr EnumNames<at::ScalarType, 4> kDtypes{
    {{at::kFloat, "float32"}, {at::kDouble, "float64"}, {at::kBFloat16, "bfloat16"}, {at::kHalf, "float16"}}};

/// What goes through the layers of a case.
struct Inputs {
  explicit Inputs(const LinearCase& asked)
      : training(asked.training),
        x(torch::randn({asked.batch, asked.in}, asked.dtype)),
        grad(torch::randn({asked.batch, asked.out}, asked.dtype)) {}

  Call pass(const Forward& forward, const torch::nn::Module& layer) const {
    return pass_of(training, forward, layer.parameters(), x, grad);
  }

  bool training;
  at::Tensor x, grad;
};

std::shared_ptr<nn::LinearImpl> our_layer(const LinearCase& asked) {
  torch::manual_seed(0);
  nn::Linear layer(nn::LinearOptions(asked.in, asked.out).algebra(asked.algebra));
  layer->to(asked.dtype);
  return layer.ptr();
}

Call real_pass(const LinearCase& asked, const Inputs& inputs, int64_t* parameters = nullptr) {
  torch::nn::Linear layer(asked.in, asked.out);
  layer->to(asked.dtype);
  if (parameters) *parameters = nn::parameter_report(*layer).total;
  return inputs.pass([layer](const at::Tensor& v) mutable { return layer->forward(v); }, *layer);
}

/// A training step, without its optimizer, finds A moved, as an optimizer of a rate of 1e-3 would leave it.
Call our_pass(const std::shared_ptr<nn::LinearImpl>& layer, const Inputs& inputs) {
  Call call = inputs.pass([layer](const at::Tensor& v) { return layer->forward(v); }, *layer);
  const at::Tensor A = layer->A;
  if (!inputs.training || !A.defined()) return call;
  const torch::NoGradGuard no_grad;
  at::Tensor step = torch::randn_like(A) * 1e-3 * A.square().mean().sqrt();
  return [call = std::move(call), A, step]() mutable {
    {
      const torch::NoGradGuard still_none;
      A.add_(step);
      step.neg_();
    }
    call();
  };
}

void check_output(const LinearCase& asked, const std::string& name, const at::Tensor& output,
                  const at::Tensor& wanted) {
  const double rule = asked.dtype == at::kDouble ? 1e-12 : asked.dtype == at::kFloat ? 1e-4 : 3e-2;
  const double error = ((output.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
  TORCH_CHECK(error < rule, "bench: ", asked.algebra, " by '", name, "' is off by ", error,
              ", must be below ", rule);
}

/// What the ways cost when they are forced, and what the planner misses.
std::vector<Field> fields_of_ways(const std::vector<std::string>& ways, const Found& found) {
  const auto best = std::min_element(ways.begin(), ways.end(), [&](const auto& a, const auto& b) {
    return found.at("by " + a).time.median < found.at("by " + b).time.median;
  });
  if (best == ways.end()) return {hidden("best_way", "")};
  const double time = found.at("by " + *best).time.median, ours = found.at("ours").time.median;
  Field fastest = field("best_way", *best);
  fastest.title = "fastest way";
  if (ours / time > 1.1) fastest.text += " (-" + percent(1 - time / ours, 0) + ")";
  Field::Parts times;
  for (const auto& way : ways) times.emplace_back(way, found.at("by " + way).time.median * 1e6);
  return {fastest, hidden("ways_us", times)};
}

// Ours, torch's, a layer that writes out its matrix in every call, and ours by every way.
Contest contest_of(const LinearCase& asked, bool forced) {
  const auto ours = our_layer(asked);
  const Inputs inputs(asked);
  ours->eval();
  ours->factorize();
  const int64_t rank = ops::rank(ours->operands(false).product), n = ours->options.algebra().n;
  ours->train(asked.training);

  const Forward materialised = [ours](const at::Tensor& v) {
    return at::linear(v, ours->matrix(), ours->bias);
  };
  const int64_t parameters = nn::parameter_report(*ours).total;
  Contest contest;
  contest.candidates = {{"ours", our_pass(ours, inputs), parameters},
                        {"real", {}, 0},
                        {"materialised", inputs.pass(materialised, *ours), parameters}};
  contest.candidates[1].call = real_pass(asked, inputs, &contest.candidates[1].parameters);
  std::vector<std::string> ways;
  {
    const torch::NoGradGuard no_grad;
    const at::Tensor wanted =
        at::linear(inputs.x.to(at::kDouble), ours->matrix().to(at::kDouble), ours->bias.to(at::kDouble));
    check_output(asked, "ours", ours->forward(inputs.x), wanted);
    check_output(asked, "materialised", materialised(inputs.x), wanted);
    for (const Way way : {Way::factored, Way::mixed, Way::materialised}) {
      if (!forced || (way == Way::factored && rank == 0)) continue;
      // One form of a weight is kept at a time, so each forced way has a layer of its own.
      const auto twin = std::dynamic_pointer_cast<nn::LinearImpl>(ours->clone());
      twin->options.way(way);
      const std::string name = ops::name(way);
      check_output(asked, name, twin->forward(inputs.x), wanted);
      ways.push_back(name);
      contest.candidates.push_back({"by " + name, our_pass(twin, inputs), parameters});
    }
    ops::drop_prepared(ours->S);  // what is kept is then counted
  }
  Contender contender;
  Field size = column("size", std::to_string(asked.in) + "x" + std::to_string(asked.out));
  Field type = field("dtype", dtype_name(asked.dtype));
  type.title = "type";
  contender.asked = {field("algebra", asked.algebra), size, hidden("in", asked.in), hidden("out", asked.out),
                     field("batch", asked.batch),     type};
  const double limit = rank > 0 ? static_cast<double>(rank) / static_cast<double>(n * n) : 1;
  contender.more = [=, x = inputs.x](const Found& found) {
    // After its steps: a learned A has its factors, or has none, only since then.
    const auto operands = ours->operands(asked.training);
    const std::string planned =
        ops::name(ops::planned_way(x, operands.S, operands.product, operands.constant));
    Field arithmetic{.key = "limit", .value = limit, .title = "limit", .text = fixed(limit, 2)};
    const double usual = found.at("ours").time.median / found.at("materialised").time.median;
    Field to_usual{.key = "ratio_materialised", .value = usual, .title = "to usual", .text = fixed(usual, 2)};
    std::vector<Field> more{arithmetic, to_usual, field("way", planned)};
    for (Field& one : fields_of_ways(ways, found)) more.push_back(std::move(one));
    return more;
  };
  contest.contenders.push_back(std::move(contender));
  return contest;
}

}  // namespace

at::ScalarType dtype_of(std::string_view name) {
  return parse_name(kDtypes, "bench: --dtype", name);
}

const char* dtype_name(at::ScalarType dtype) {
  return name_of(kDtypes, dtype);
}

Subject linear(const std::vector<LinearCase>& cases, double seconds, bool forced) {
  Subject subject;
  subject.notes =
      "limit: R/n\u00b2, the share of torch::nn::Linear's arithmetic. to usual: share of the time of a layer "
      "that "
      "writes out its matrix in\nevery call. way: what the planner chose; fastest way: what it could have "
      "saved "
      "by another.\n";
  subject.timing = {.seconds = seconds, .turn = 300e-6};
  for (const auto& asked : cases) {
    Case one{.threads = asked.threads, .training = asked.training};
    if (asked.training)
      for (const bool real : {false, true})
        one.memory.emplace_back(real ? "real" : "ours", [asked, real] {
          const Inputs inputs(asked);
          return real ? real_pass(asked, inputs) : our_pass(our_layer(asked), inputs);
        });
    one.make = [asked, forced] { return contest_of(asked, forced); };
    subject.cases.push_back(std::move(one));
  }
  return subject;
}

std::string linear_table(const std::vector<Row>& rows) {
  if (rows.empty()) return "";
  std::vector<std::string> algebras;
  std::vector<std::pair<bool, std::string>> columns;  // training or not, and the batch
  const auto column_of = [](const Row& row) { return std::pair(row.training, row.asked_for("batch")); };
  for (const Row& row : rows) {
    if (std::find(algebras.begin(), algebras.end(), row.asked_for("algebra")) == algebras.end())
      algebras.push_back(row.asked_for("algebra"));
    if (std::find(columns.begin(), columns.end(), column_of(row)) == columns.end())
      columns.push_back(column_of(row));
  }
  const auto find = [&](const std::string& algebra, const auto& column) -> const Row* {
    for (const Row& row : rows)
      if (row.asked_for("algebra") == algebra && column_of(row) == column) return &row;
    return nullptr;
  };
  const Row& first = rows.front();
  Table table("lr");
  std::vector<std::string> passes{"", ""}, batches{"", "parameters"},
      real{"torch::nn::Linear", grouped(first.real.parameters)};
  for (size_t i = 0; i < columns.size(); ++i) {
    const bool begins = i == 0 || columns[i].first != columns[i - 1].first;
    passes.emplace_back(!begins ? "" : columns[i].first ? "training" : "inference");
    batches.push_back("batch " + columns[i].second);
    const Row* row = find(algebras.front(), columns[i]);
    real.push_back(row ? seconds(row->real.time.median) : "-");
  }
  table.row(passes);
  table.row(batches);
  table.rule();
  table.row(real);
  for (const auto& algebra : algebras) {
    std::vector<std::string> cells{algebra, ""};
    for (const auto& column : columns) {
      const Row* row = find(algebra, column);
      if (row) cells[1] = grouped(row->ours.parameters);
      cells.push_back(row ? ratio(row->ours.time.median, row->real.time.median) : "-");
    }
    table.row(cells);
  }
  return "Single layers, " + first.asked_for("in") + " -> " + first.asked_for("out") + ", " +
         first.asked_for("dtype") + ", " + counted(first.threads, "thread") +
         ": times of torch::nn::Linear, and the others' ratio to them\n\n" + table.text();
}

}  // namespace quatrain::bench
