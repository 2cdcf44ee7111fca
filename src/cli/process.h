#pragma once

namespace quatrain::cli {

/// Runs a command line as the process that it is for, and ends this process with its exit code.
[[noreturn]] void run_process(int count, char** words) noexcept;

}  // namespace quatrain::cli
