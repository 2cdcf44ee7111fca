#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "cli/console.h"
#include "cli/stop.h"
#include "quatrain/tasks/recipe.h"
#include "train/sentence.h"

namespace quatrain::cli {
namespace {

int fail(ExitCode code, const std::string& sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "quatrain: %s\n", printable(sentence).c_str());
  return code;
}

}  // namespace

int run_guarded(const std::function<int()>& command) {
  try {
    const int code = command();
    if (std::fflush(stdout) != 0 || std::ferror(stdout))
      return fail(kFailure, "cannot write the standard output");
    return code;
  } catch (const Stopped&) {
    return stop_code();
  } catch (const tasks::RecipeError& error) {
    return fail(kUsage, error.what());
  } catch (const UsageError& error) {
    return fail(kUsage, error.what());
  } catch (const std::bad_alloc&) {
    return fail(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailure, train::sentence_of(error));
  }
}

}  // namespace quatrain::cli
