#include <c10/util/Exception.h>

#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "cli/stop.h"
#include "quatrain/train/recipe.h"

namespace quatrain::cli {
namespace {

int fail(ExitCode code, const std::string& sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "quatrain: %s\n", sentence.c_str());
  return code;
}

}  // namespace

int run_guarded(const std::function<int()>& command) {
  try {
    const int code = command();
    if (std::fflush(stdout) != 0) return fail(kFailure, "cannot write the standard output");
    return code;
  } catch (const Stopped&) {
    return stop_code();
  } catch (const train::RecipeError& error) {
    return fail(kUsage, error.what());
  } catch (const UsageError& error) {
    return fail(kUsage, error.what());
  } catch (const c10::Error& error) {
    return fail(kFailure, error.what_without_backtrace());
  } catch (const std::bad_alloc&) {
    return fail(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailure, error.what());
  }
}

}  // namespace quatrain::cli
