// The arguments of a recurrence, checked.

#include <ATen/TensorOperators.h>
#include <ATen/functorch/BatchedTensorImpl.h>
#include <ATen/functorch/TensorWrapper.h>

#include <algorithm>

#include "ops/recurrent/recurrent.h"
#include "support/enum_names.h"

namespace quatrain::ops {

namespace {

constexpr EnumNames<Cell, 5> kCells{{{Cell::lstm, "lstm"},
                                     {Cell::lstm_printed, "lstm_printed"},
                                     {Cell::gru, "gru"},
                                     {Cell::rnn_tanh, "rnn_tanh"},
                                     {Cell::rnn_relu, "rnn_relu"}}};

void check_like(const char* argument, const at::Tensor& t, const at::Tensor& like,
                std::initializer_list<c10::SymInt> sizes) {
  check_values("recurrence", argument, t);
  TORCH_CHECK(t.sym_sizes() == c10::SymIntArrayRef(sizes), "recurrence: ", argument, " must have the shape ",
              c10::SymIntArrayRef(sizes), ", got ", t.sym_sizes());
  TORCH_CHECK(t.scalar_type() == like.scalar_type() && t.device() == like.device(), "recurrence: ", argument,
              " must be ", like.scalar_type(), " on ", like.device(), " as the inputs are, got ",
              t.scalar_type(), " on ", t.device(), " (convert the one or the other)");
}

bool any_map(const std::vector<at::Tensor>& S, const std::vector<Call>& maps, bool (*is)(const at::Tensor&)) {
  return std::any_of(S.begin(), S.end(), is) ||
         std::any_of(maps.begin(), maps.end(), [&](const Call& map) { return map.learned() && is(*map.A); });
}

}  // namespace

bool any_of(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0, const Optional& c0,
            bool (*is)(const at::Tensor&)) {
  return is(z) || is(h0) || is(value_or_none(c0)) || is(value_or_none(call.bias)) ||
         is(value_or_none(call.mask)) || any_map(call.S, call.maps, is);
}

bool any_of(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0, const Optional& c0,
            bool (*is)(const at::Tensor&)) {
  return any_of(call, inputs.x, h0, c0, is) || is(value_or_none(inputs.bias)) ||
         any_map(inputs.S, inputs.maps, is);
}

const char* name(Cell cell) {
  return name_of(kCells, cell);
}

Cell parse_cell(std::string_view name) {
  return parse_name(kCells, "cell", name);
}

int64_t gates(Cell cell) {
  return has_memory(cell) ? 4 : cell == Cell::gru ? 3 : 1;
}

bool has_memory(Cell cell) {
  return cell == Cell::lstm || cell == Cell::lstm_printed;
}

int64_t kept_values(Cell cell) {
  return has_memory(cell) ? 5 : cell == Cell::gru ? 4 : 1;
}

namespace {

// Maps, states and batch_sizes; `like` has their type and device.
void check_parts(const RecurrenceCall& call, const at::Tensor& like, const at::Tensor& h0,
                 const Optional& c0) {
  const auto all = static_cast<size_t>(gates(call.cell));
  const size_t of_gates = call.gate_maps();
  TORCH_CHECK((of_gates == 1 || of_gates == all) && (!call.projects() || has_memory(call.cell)),
              "recurrence: there must be one map for all gates, or one for each of the ", all,
              has_memory(call.cell) ? ", and at most one more, of a projection" : "", ", got ",
              call.S.size());
  for (size_t k = 0; k < call.S.size(); ++k) check_weight("recurrence", call.S[k], call.maps[k]);
  const at::Tensor& last = call.S.back();
  const c10::SymInt n = call.S[0].sym_size(0), q = call.S[0].sym_size(2),
                    p = call.projects() ? last.sym_size(2) : q;
  TORCH_CHECK(p >= 1 && q >= 1, "recurrence: each S must have a unit or more, got ", call.S[0].sym_sizes(),
              " and ", last.sym_sizes());
  for (size_t k = 0; k < of_gates; ++k)
    check_like("the weights S", call.S[k], like, {n, static_cast<int64_t>(all / of_gates) * p, q});
  if (call.projects()) check_like("S of the projection", last, like, {n, q, p});
  const c10::SymInt hidden = call.hidden(), state = call.state();
  TORCH_CHECK(h0.dim() == 2, "recurrence: h0 must have the shape (batch, n q), got ", h0.sym_sizes());
  check_like("h0", h0, like, {h0.sym_size(0), state});
  TORCH_CHECK(has_memory(call.cell) == (c0 && c0->defined()), "recurrence: c0 goes with an lstm, and ",
              name(call.cell), has_memory(call.cell) ? " needs it" : " has none");
  if (has_memory(call.cell)) check_like("c0", *c0, like, {h0.sym_size(0), hidden});
  if (call.bias) check_like("bias", *call.bias, like, {static_cast<int64_t>(all) * hidden});
  if (call.mask) check_like("mask", *call.mask, like, {h0.sym_size(0), state});
  TORCH_CHECK(call.batch_sizes.dim() == 1 && call.batch_sizes.scalar_type() == at::kLong,
              "recurrence: batch_sizes must be int64 (steps), got ", call.batch_sizes.scalar_type(), " ",
              call.batch_sizes.sym_sizes());
  TORCH_CHECK(
      call.batch_sizes.is_cpu() || call.batch_sizes.device() == like.device(),
      "recurrence: batch_sizes must be on the CPU, as packed sequences have them, or where the inputs "
      "are, got ",
      call.batch_sizes.device(), " for inputs on ", like.device());
}

}  // namespace

void check_recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0,
                      const Optional& c0) {
  check_parts(call, z, h0, c0);
  TORCH_CHECK(z.dim() == 2, "recurrence: z must have the shape (rows, n gates p), got ", z.sym_sizes());
  check_like("z", z, z, {z.sym_size(0), gates(call.cell) * call.hidden()});
}

void check_recurrent_layer(const RecurrenceCall& call, const InputCall& inputs, const at::Tensor& h0,
                           const Optional& c0) {
  const at::Tensor& x = inputs.x;
  check_parts(call, x, h0, c0);
  const int64_t all = gates(call.cell);
  const auto maps = static_cast<int64_t>(inputs.S.size());
  TORCH_CHECK(maps == 1 || maps == all,
              "recurrent_layer: there must be one map of the inputs for all gates, or one for each of the ",
              all, ", got ", maps);
  for (size_t k = 0; k < inputs.S.size(); ++k) check_weight("recurrent_layer", inputs.S[k], inputs.maps[k]);
  const c10::SymInt n = call.S[0].sym_size(0), hidden = call.hidden(), d = inputs.S[0].sym_size(2);
  for (const at::Tensor& S : inputs.S) check_like("S of the inputs", S, x, {n, all / maps * (hidden / n), d});
  TORCH_CHECK(x.dim() == 2, "recurrent_layer: x must have the shape (rows, n d), got ", x.sym_sizes());
  check_like("x", x, x, {x.sym_size(0), n * d});
  if (inputs.bias) check_like("bias of the inputs", *inputs.bias, x, {all * hidden});
}

void check_recurrence_backward(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                               const at::Tensor& kept, const at::Tensor& h0, const Optional& c0) {
  check_parts(call, y, h0, c0);
  const c10::SymInt hidden = call.hidden(), state = call.state(), batch = h0.sym_size(0);
  TORCH_CHECK(y.dim() == 2, "recurrence: y must have the shape (rows, n q), got ", y.sym_sizes());
  check_like("y", y, y, {y.sym_size(0), state});
  check_like("kept", kept, y, {y.sym_size(0), kept_values(call.cell) * hidden});
  if (grads.y) check_like("dy", *grads.y, y, {y.sym_size(0), state});
  if (grads.h) check_like("dh", *grads.h, y, {batch, state});
  if (grads.c) check_like("dc", *grads.c, y, {has_memory(call.cell) ? batch : 0, hidden});
}

namespace {

// Without what torch.func.grad and the like wrap around whatever is made inside of them.
at::Tensor unwrapped(at::Tensor t) {
  while (const auto* wrapper = at::functorch::maybeGetTensorWrapper(t)) t = wrapper->value();
  return t;
}

}  // namespace

Steps::Steps(const at::Tensor& batch_sizes, int64_t N, int64_t B) {
  const at::Tensor values = unwrapped(batch_sizes.cpu().contiguous());
  TORCH_CHECK_VALUE(
      !at::functorch::isBatchedTensor(values),
      "recurrence: batch_sizes are the same for all that vmap goes over; pass them from outside "
      "of it");
  sizes.assign(values.const_data_ptr<int64_t>(), values.const_data_ptr<int64_t>() + values.numel());
  int64_t rows = 0;
  for (size_t t = 0; t < sizes.size(); ++t) {
    TORCH_CHECK_VALUE(sizes[t] >= 1 && sizes[t] <= (t ? sizes[t - 1] : B) && (t || sizes[t] == B),
                      "recurrence: batch_sizes must begin with the states' ", B,
                      " rows, not grow and be at least 1, got ", sizes[t], " at step ", t);
    first.push_back(rows);
    rows += sizes[t];
  }
  TORCH_CHECK_VALUE(rows == N, "recurrence: batch_sizes must be the inputs' ", N, " rows together, got ",
                    rows);
}

std::vector<int64_t> Steps::cuts(int64_t parts) const {
  const int64_t batch = sizes.empty() ? 0 : sizes[0];
  std::vector<int64_t> result{0};
  int64_t rows = 0, all = 0;
  for (const int64_t size : sizes) all += size;
  for (int64_t b = 0; b < batch; ++b) {
    rows += std::partition_point(sizes.begin(), sizes.end(), [b](int64_t size) { return size > b; }) -
            sizes.begin();
    while (rows * parts >= all * static_cast<int64_t>(result.size()) && b + 1 < batch)
      result.push_back(b + 1);
  }
  result.resize(static_cast<size_t>(parts), batch);
  result.push_back(batch);
  return result;
}

std::vector<int64_t> Steps::before(bool reverse) const {
  const int64_t N = count() ? first.back() + sizes.back() : 0;
  std::vector<int64_t> result;
  for (int64_t t = 0; t < count(); ++t) {
    const auto from = static_cast<size_t>(reverse ? t + 1 : t - 1);
    const int64_t there = from < sizes.size() ? sizes[from] : 0;
    for (int64_t b = 0; b < sizes[static_cast<size_t>(t)]; ++b)
      result.push_back(b < there ? first[from] + b : N + b);
  }
  return result;
}

}  // namespace quatrain::ops
