#include <cstdio>
#include <new>
#include <regex>
#include <string>

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

constexpr const char* kSmaller = "take a smaller model (the sizes in [model]) or smaller batches";

/// A sentence; where it is torch's about memory that it did not get, on whatever device, one with a way out.
std::string with_way_out(const std::string& sentence) {
  static const std::regex refused("[Tt]ried to allocate ([0-9.]+) (\\w+)");
  std::smatch found;
  if (!std::regex_search(sentence, found, refused)) return sentence;
  std::string amount = found[1].str() + " " + found[2].str();
  if (found[2] == "bytes") amount = bytes(std::stod(found[1].str()));
  return "out of memory: " + amount + " were asked for at once; " + kSmaller;
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
    return fail(kFailure, std::string("out of memory; ") + kSmaller);
  } catch (const std::exception& error) {
    return fail(kFailure, with_way_out(train::sentence_of(error)));
  }
}

}  // namespace quatrain::cli
