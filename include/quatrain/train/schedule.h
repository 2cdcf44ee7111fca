#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "quatrain/api.h"

namespace quatrain::train {

/// How the learning rate goes: "constant", "inverse_square_root", "cosine", "step", "plateau".
enum class ScheduleKind { constant, inverse_square_root, cosine, step, plateau };

QUATRAIN_API const char* name(ScheduleKind kind);
/// The inverse; an unknown name is an error that lists the known ones.
QUATRAIN_API ScheduleKind parse_schedule(std::string_view name);

/// Options of a schedule. Each kind starts with a linear warm-up; t counts steps from 1, T is the run's last
/// step, w the steps of the warm-up, and the rate at step t is the optimizer's learning rate times
///
///   constant              min(1, t/w)
///   inverse_square_root   min(t/w, sqrt(w/t)): Transformer's ("noam") schedule with its peak, 1, at
///                         t = w; d^-0.5 min(t^-0.5, t w^-1.5) is this one with a learning rate of (d w)^-0.5
///   cosine                min(1, t/w), then m + (1 - m) (1 + cos(pi (t-w)/(T-w))) / 2, with m = `floor`
///   step                  min(1, t/w) factor^floor((t-1)/every)
///   plateau               min(1, t/w) factor^r, r the number of reductions: one after each `patience` + 1
///                         evaluations in a row without a better figure (0: at once, as in QRNN's recipe);
///                         not below `floor`
struct QUATRAIN_API ScheduleOptions {
  ScheduleKind kind = ScheduleKind::constant;
  int64_t warmup = 0;
  double warmup_share = 0;  ///< the warm-up as a share of the run's steps; 0: as `warmup` says
  double factor = 0.5;      ///< step, plateau
  int64_t every = 0;        ///< step: steps between two reductions; 0: once an epoch
  int64_t patience = 0;     ///< plateau
  double floor = 0;         ///< cosine, plateau: the least scale
};

/// What "plateau" remembers between evaluations; part of a checkpoint.
struct QUATRAIN_API PlateauState {
  std::optional<double> best;
  int64_t bad = 0;  ///< evaluations in a row without a better figure
  int64_t reductions = 0;
};

/// True where a figure beats the best one so far. The first one always does; after it a figure that is not a
/// number beats nothing.
QUATRAIN_API bool is_better(double figure, const std::optional<double>& best, bool higher_is_better);

/// Notes an evaluation's figure.
QUATRAIN_API void note_evaluation(PlateauState& state, const ScheduleOptions& options, double figure,
                                  bool higher_is_better);

/// The steps of the warm-up of a run of so many steps.
QUATRAIN_API int64_t warmup_steps(const ScheduleOptions& options, int64_t steps);

/// The scale of the learning rate at a step (from 1) of `steps`: a pure function.
QUATRAIN_API double schedule_scale(const ScheduleOptions& options, int64_t step, int64_t steps,
                                   int64_t steps_per_epoch, const PlateauState& plateau = {});

}  // namespace quatrain::train
