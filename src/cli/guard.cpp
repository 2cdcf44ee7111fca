#include <array>
#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "cli/stop.h"
#include "quatrain/train/recipe.h"
#include "train/sentence.h"

namespace quatrain::cli {
namespace {

// A message may show what stands in a file: what would move a terminal's cursor or begin a line is written
// out.
std::string printable(const std::string& sentence) {
  std::string shown;
  for (const char c : sentence) {
    if (static_cast<unsigned char>(c) >= ' ' && c != 0x7F) {
      shown += c;
      continue;
    }
    if (c == '\t' || c == '\n') {
      shown += c == '\t' ? "\\t" : "\\n";
      continue;
    }
    std::array<char, 8> code{};
    std::snprintf(code.data(), code.size(), "\\x%02x", static_cast<unsigned char>(c));
    shown += code.data();
  }
  return shown;
}

int fail(ExitCode code, const std::string& sentence) {
  std::fflush(stdout);
  std::fprintf(stderr, "quatrain: %s\n", printable(sentence).c_str());
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
  } catch (const std::bad_alloc&) {
    return fail(kFailure, "out of memory");
  } catch (const std::exception& error) {
    return fail(kFailure, train::sentence_of(error));
  }
}

}  // namespace quatrain::cli
