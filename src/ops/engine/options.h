#pragma once

#include "quatrain/ops.h"

/// What is asked for beside the arguments of a call: by a guard of the thread, else by the environment.
namespace quatrain::ops {

enum class Winograd;

/// Whether products are to be kept: as a ProductsGuard or QUATRAIN_PRODUCTS says, else automatic.
Products requested_products();

/// How bfloat16 is to be multiplied: as a Bfloat16Guard or QUATRAIN_BFLOAT16 says, else automatic.
Bfloat16 requested_bfloat16();

/// As a PlannedRowsGuard says, else automatic.
PlannedRows requested_rows();

/// As a TrafficGuard says, else automatic.
Traffic requested_traffic();

/// The transforms asked for by an argument, else by a WinogradGuard, else by QUATRAIN_WINOGRAD, else
/// automatic.
Winograd requested_winograd(Winograd argument);

/// The way asked for by an argument, else by a WayGuard, else by QUATRAIN_WAY, else automatic.
Way requested_way(Way argument);

}  // namespace quatrain::ops
