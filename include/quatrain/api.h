#pragma once

/// Marks the symbols that Quatrain's shared libraries export; all others are hidden.
#define QUATRAIN_API __attribute__((visibility("default")))
