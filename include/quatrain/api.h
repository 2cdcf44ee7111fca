#pragma once

/// Marks what a shared library of Quatrain shows to others; everything else is hidden.
#define QUATRAIN_API __attribute__((visibility("default")))
