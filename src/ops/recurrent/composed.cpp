// A recurrence in ATen's calls: for every device and type, and differentiable.

#include <ATen/ATen.h>

#include "ops/linear/schema.h"
#include "ops/recurrent/recurrent.h"

namespace quatrain::ops::composed {

namespace {

// (rows, n, gates or what is kept, p)
at::Tensor cut(const RecurrenceCall& call, const at::Tensor& t) {
  return t.reshape({t.size(0), call.n(), t.size(1) / call.n() / call.p(), call.p()});
}

// The state's part of the gates, (rows, n, gates, p).
at::Tensor state_gates(const RecurrenceCall& call, const at::Tensor& h) {
  std::vector<at::Tensor> parts;
  for (size_t k = 0; k < call.gate_maps(); ++k)
    parts.push_back(cut(call, dispatch_linear(h, call.S[k], std::nullopt, call.maps[k])));
  const at::Tensor all = parts.size() == 1 ? parts[0] : at::cat(parts, 2);
  return call.bias ? all + call.bias->view({call.n(), -1, call.p()}) : all;
}

// The gradient of the state from that of its part of the gates.
at::Tensor state_gradient(const RecurrenceCall& call, const at::Tensor& dr, const at::Tensor& h) {
  at::Tensor sum;
  for (size_t k = 0; k < call.gate_maps(); ++k) {
    const at::Tensor part =
        call.gate_maps() == 1 ? dr : dr.select(2, static_cast<int64_t>(k)).reshape({dr.size(0), -1});
    const at::Tensor dh = std::get<0>(dispatch_linear_backward(part.reshape({dr.size(0), -1}), h, call.S[k],
                                                               call.maps[k], {true, false, false}));
    sum = sum.defined() ? sum + dh : dh;
  }
  return sum;
}

// h of the cell's outputs (rows, n p).
at::Tensor project(const RecurrenceCall& call, const at::Tensor& u) {
  return call.projects() ? dispatch_linear(u, call.S.back(), std::nullopt, call.maps.back()) : u;
}

// The gradient of the cell's outputs from that of h.
at::Tensor projection_gradient(const RecurrenceCall& call, const at::Tensor& dh, const at::Tensor& u) {
  return std::get<0>(dispatch_linear_backward(dh, u, call.S.back(), call.maps.back(), {true, false, false}));
}

// The first `rows` of t, before the others of `state`.
at::Tensor put(const at::Tensor& t, const at::Tensor& state) {
  const int64_t rows = t.size(0), all = state.size(0);
  return rows == all ? t : at::cat({t, state.narrow(0, rows, all - rows)});
}

at::Tensor empty_like_rows(const at::Tensor& t) {
  return at::empty({0, t.size(1)}, t.options());
}

// One step of z's and the state's gates, (rows, n, gates, p), and c and h (rows, n, p, of which an lstm does
// not read h): the next h and c, and what is kept.
std::tuple<at::Tensor, at::Tensor, std::vector<at::Tensor>> step(Cell cell, const at::Tensor& z,
                                                                 const at::Tensor& r, const at::Tensor& c,
                                                                 const at::Tensor& h) {
  if (has_memory(cell)) {
    const auto gate = (z + r).unbind(2);
    const bool printed = cell == Cell::lstm_printed;
    const at::Tensor i = gate[0].sigmoid(), f = gate[1].sigmoid(), g = gate[2].tanh(),
                     o = printed ? gate[3] : gate[3].sigmoid(), next = f * c + i * g;
    return {o * (printed ? next : next.tanh()), next, {i, f, g, o, next}};
  }
  if (cell == Cell::gru) {
    const auto x = z.unbind(2), y = r.unbind(2);
    const at::Tensor reset = (x[0] + y[0]).sigmoid(), update = (x[1] + y[1]).sigmoid(),
                     fresh = (x[2] + reset * y[2]).tanh();
    return {fresh + update * (h - fresh), {}, {reset, update, fresh, y[2]}};
  }
  const at::Tensor sum = (z + r).select(2, 0), next = cell == Cell::rnn_tanh ? sum.tanh() : sum.relu();
  return {next, {}, {next}};
}

// Of one step, from the gradients of h and c (rows, n, p): those of z's gates, of the state's gates, of h
// before it where it does not come through them (undefined for none), and of c before it.
struct StepGradients {
  at::Tensor dz, dr, dh, dc;
};
StepGradients step_back(Cell cell, const at::Tensor& dh, const at::Tensor& dc,
                        const std::vector<at::Tensor>& kept, const at::Tensor& c_before,
                        const at::Tensor& h_before) {
  const auto slope = [](const at::Tensor& sigmoid) { return sigmoid * (1 - sigmoid); };
  if (has_memory(cell)) {
    const bool printed = cell == Cell::lstm_printed;
    const at::Tensor &i = kept[0], &f = kept[1], &g = kept[2], &o = kept[3], &c = kept[4];
    const at::Tensor t = printed ? c : c.tanh(), all = dc + dh * o * (printed ? at::ones_like(t) : 1 - t * t);
    const at::Tensor dz = at::stack({all * g * slope(i), all * c_before * slope(f), all * i * (1 - g * g),
                                     printed ? dh * t : dh * t * slope(o)},
                                    2);
    return {dz, dz, {}, all * f};
  }
  if (cell == Cell::gru) {
    const at::Tensor &r = kept[0], &u = kept[1], &fresh = kept[2], &y = kept[3];
    const at::Tensor dn = dh * (1 - u) * (1 - fresh * fresh), du = dh * (h_before - fresh) * slope(u),
                     dr = dn * y * slope(r);
    return {at::stack({dr, du, dn}, 2), at::stack({dr, du, dn * r}, 2), dh * u, {}};
  }
  const at::Tensor dz =
      (cell == Cell::rnn_tanh ? dh * (1 - kept[0] * kept[0]) : at::threshold_backward(dh, kept[0], 0))
          .unsqueeze(2);
  return {dz, dz, {}, {}};
}

}  // namespace

at::Tensor unprojected(const RecurrenceCall& call, const at::Tensor& kept) {
  const at::Tensor all = kept.unflatten_symint(1, {call.S[0].sym_size(0), kept_values(call.cell), -1}),
                   c = all.select(2, 4);
  return (all.select(2, 3) * (call.cell == Cell::lstm_printed ? c : c.tanh())).flatten(1);
}

States recurrence(const RecurrenceCall& call, const at::Tensor& z, const at::Tensor& h0, const Optional& c0,
                  bool keep) {
  check_recurrence(call, z, h0, c0);
  const Steps steps(call.batch_sizes, z.size(0), h0.size(0));
  const bool memory = has_memory(call.cell);
  const int64_t n = call.n(), p = call.p();
  at::Tensor h = h0, c = memory ? *c0 : at::empty({0, n * p}, h0.options());
  std::vector<at::Tensor> ys(steps.sizes.size()), kepts(steps.sizes.size());
  for (int64_t i = 0; i < steps.count(); ++i) {
    const auto t = static_cast<size_t>(steps.at(i, call.reverse));
    const int64_t rows = steps.sizes[t];
    const auto of_rows = [&](const at::Tensor& s) {
      return s.narrow(0, 0, rows).reshape({rows, n, s.size(1) / n});
    };
    const at::Tensor before = h.narrow(0, 0, rows);
    const at::Tensor r = state_gates(call, call.mask ? before * call.mask->narrow(0, 0, rows) : before);
    const auto [next, next_c, kept] = step(call.cell, cut(call, z.narrow(0, steps.first[t], rows)), r,
                                           memory ? of_rows(c) : at::Tensor(), of_rows(h));
    ys[t] = project(call, next.reshape({rows, n * p}));
    h = put(ys[t], h);
    if (memory) c = put(next_c.reshape({rows, n * p}), c);
    if (keep) kepts[t] = at::stack(kept, 2).reshape({rows, -1});
  }
  const int64_t width = kept_values(call.cell) * n * p;
  return {ys.empty() ? empty_like_rows(h0) : at::cat(ys), h.clone(), c.clone(),
          keep && !ys.empty() ? at::cat(kepts) : at::empty({0, width}, h0.options())};
}

StateGradients recurrence_backward(const RecurrenceCall& call, const Upstream& grads, const at::Tensor& y,
                                   const at::Tensor& kept, const at::Tensor& h0, const Optional& c0) {
  check_recurrence_backward(call, grads, y, kept, h0, c0);
  const Steps steps(call.batch_sizes, y.size(0), h0.size(0));
  const bool memory = has_memory(call.cell);
  const int64_t n = call.n(), p = call.p();
  const auto by_unit = [&](const at::Tensor& t) { return t.reshape({t.size(0), n, t.size(1) / n}); };
  const at::Tensor from = at::tensor(steps.before(call.reverse), at::kLong).to(h0.device());
  const at::Tensor h_before = at::cat({y, h0}).index_select(0, from);
  const at::Tensor all_kept = cut(call, kept), outputs = call.projects() ? unprojected(call, kept) : y;
  at::Tensor c_before;
  if (memory) c_before = at::cat({all_kept.select(2, 4), by_unit(*c0)}).index_select(0, from);
  at::Tensor dh = grads.h ? *grads.h : at::zeros_like(h0);
  at::Tensor dc = !memory ? at::empty({0, n * p}, h0.options()) : grads.c ? *grads.c : at::zeros_like(*c0);
  std::vector<at::Tensor> dzs(steps.sizes.size()), drs(steps.sizes.size()), reaching(steps.sizes.size());
  at::Tensor masked = h_before;
  for (int64_t i = 0; i < steps.count(); ++i) {
    const auto t = static_cast<size_t>(steps.at(i, !call.reverse));
    const int64_t rows = steps.sizes[t];
    const auto of_step = [&](const at::Tensor& s) { return s.narrow(0, steps.first[t], rows); };
    at::Tensor reached = dh.narrow(0, 0, rows);
    if (grads.y) reached = reached + of_step(*grads.y);
    reaching[t] = reached;
    if (call.projects()) reached = projection_gradient(call, reached, of_step(outputs));
    const auto step = step_back(call.cell, by_unit(reached), memory ? by_unit(dc.narrow(0, 0, rows)) : dc,
                                of_step(all_kept).unbind(2), memory ? of_step(c_before) : c_before,
                                by_unit(of_step(h_before)));
    dzs[t] = step.dz.reshape({rows, -1}), drs[t] = step.dr.reshape({rows, -1});
    at::Tensor through = state_gradient(call, step.dr, of_step(h_before));
    if (call.mask) through = through * call.mask->narrow(0, 0, rows);
    dh = put(step.dh.defined() ? step.dh.reshape({rows, n * p}) + through : through, dh);
    if (memory) dc = put(step.dc.reshape({rows, n * p}), dc);
  }
  if (call.mask) {
    std::vector<at::Tensor> masks;
    for (const int64_t rows : steps.sizes) masks.push_back(call.mask->narrow(0, 0, rows));
    if (!masks.empty()) masked = h_before * at::cat(masks);
  }
  const auto join = [&](const std::vector<at::Tensor>& parts, int64_t width) {
    return parts.empty() ? at::empty({0, width}, h0.options()) : at::cat(parts);
  };
  using Parts = std::vector<at::Tensor>;
  const int64_t width = gates(call.cell) * n * p;
  return {join(dzs, width), join(call.cell == Cell::gru ? drs : Parts(), width),   dh.clone(), dc.clone(),
          masked.clone(),   join(call.projects() ? reaching : Parts(), h0.size(1))};
}

}  // namespace quatrain::ops::composed
