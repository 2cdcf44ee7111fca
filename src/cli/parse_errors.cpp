#include "cli/parse_errors.h"

#include <algorithm>

#include "support/nearest_name.h"

namespace quatrain::cli {
namespace {

std::string more(const std::string& path) {
  return "; see " + path + " --help";
}

}  // namespace

std::string explain(const CLI::ParseError& error, const CLI::App& program,
                    const std::vector<std::string>& words) {
  const CLI::App* app = &program;
  std::string path = "quatrain";
  for (const auto& word : words) {
    std::vector<std::string> commands;
    const CLI::App* next = nullptr;
    for (const auto* command : app->get_subcommands(nullptr)) {
      commands.push_back(command->get_name());
      if (command->get_name() == word) next = command;
    }
    if (!word.starts_with('-') && !commands.empty()) {
      if (!next) return path + " has no command '" + word + "'" + did_you_mean(word, commands) + more(path);
      app = next;
      path += " " + word;
    } else if (word.starts_with("--") && word.size() > 2) {
      std::vector<std::string> options;
      for (const auto* option : app->get_options())
        for (const auto& name : option->get_lnames()) options.push_back("--" + name);
      const std::string name = word.substr(0, word.find('='));
      if (std::find(options.begin(), options.end(), name) == options.end())
        return path + " has no option '" + name + "'" + did_you_mean(name, options) + more(path);
    }
  }
  return std::string(error.what()) + more(path);
}

}  // namespace quatrain::cli
