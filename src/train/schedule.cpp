#include "quatrain/train/schedule.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>

#include "support/enum_names.h"

namespace quatrain::train {
namespace {

constexpr EnumNames<ScheduleKind, 5> kKinds{{{ScheduleKind::constant, "constant"},
                                             {ScheduleKind::inverse_square_root, "inverse_square_root"},
                                             {ScheduleKind::cosine, "cosine"},
                                             {ScheduleKind::step, "step"},
                                             {ScheduleKind::plateau, "plateau"}}};

}  // namespace

const char* name(ScheduleKind kind) {
  return name_of(kKinds, kind);
}

ScheduleKind parse_schedule(std::string_view name) {
  return parse_name(kKinds, "schedule", name);
}

void note_evaluation(PlateauState& state, const ScheduleOptions& options, double figure,
                     bool higher_is_better) {
  if (is_better(figure, state.best, higher_is_better)) {
    state.best = figure;
    state.bad = 0;
  } else if (++state.bad > options.patience) {
    ++state.reductions;
    state.bad = 0;
  }
}

bool is_better(double figure, const std::optional<double>& best, bool higher_is_better) {
  if (!best) return true;
  if (std::isnan(*best)) return !std::isnan(figure);
  return higher_is_better ? figure > *best : figure < *best;
}

int64_t warmup_steps(const ScheduleOptions& options, int64_t steps) {
  return options.warmup_share > 0 ? std::llround(options.warmup_share * static_cast<double>(steps))
                                  : options.warmup;
}

double schedule_scale(const ScheduleOptions& options, int64_t step, int64_t steps, int64_t steps_per_epoch,
                      const PlateauState& plateau) {
  const auto t = static_cast<double>(step);
  const int64_t warming = warmup_steps(options, steps);
  const auto w = static_cast<double>(warming);
  const double warmup = step < warming ? t / w : 1.0;
  switch (options.kind) {
    case ScheduleKind::constant:
      return warmup;
    case ScheduleKind::inverse_square_root:
      return step < warming ? warmup : std::sqrt(std::max(w, 1.0) / t);
    case ScheduleKind::cosine: {
      if (step <= warming) return warmup;
      const double part = std::min(1.0, (t - w) / std::max(1.0, static_cast<double>(steps) - w));
      return options.floor + (1 - options.floor) * (1 + std::cos(M_PI * part)) / 2;
    }
    case ScheduleKind::step: {
      const int64_t every = std::max<int64_t>(1, options.every > 0 ? options.every : steps_per_epoch);
      return warmup * std::pow(options.factor, static_cast<double>((step - 1) / every));
    }
    case ScheduleKind::plateau:
      return warmup *
             std::max(options.floor, std::pow(options.factor, static_cast<double>(plateau.reductions)));
  }
  throw std::invalid_argument("schedule_scale: unknown schedule");
}

}  // namespace quatrain::train
