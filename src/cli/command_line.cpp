#include "cli/command_line.h"

#include <cstdio>

#include "cli/allocator.h"
#include "cli/console.h"
#include "cli/footers.h"
#include "cli/openmp.h"
#include "cli/parse_errors.h"
#include "cli/recipe_options.h"
#include "support/version.h"

namespace quatrain::cli {
namespace {

// As "$UNSET" is.
std::string not_empty(const std::string& name) {
  return name.empty() ? "must name what to write, got an empty text" : "";
}

void add_out(CLI::App& command, RecipeArguments& arguments) {
  command.add_option("--out", arguments.out, "Folder to write (default: runs/RECIPE-DATE-TIME)")
      ->check(not_empty, "", "")
      ->type_name("FOLDER");
}

// --set of a run that is trained.
CLI::Option* add_free_settings(CLI::App& command, std::vector<std::string>& settings) {
  return command
      .add_option(
          "--set", settings,
          "Override a key of the run's recipe that its weights do not depend on (decode.beam); may be "
          "repeated")
      ->type_name("TABLE.KEY=VALUE")
      ->allow_extra_args(false);
}

CLI::Option* add_with(CLI::App& command, std::vector<std::string>& runs) {
  return command
      .add_option("--with", runs,
                  "Answer together with this run: by the mean of all their probabilities; may be repeated")
      ->type_name("RUN")
      ->allow_extra_args(false);
}

constexpr const char* kDevice = "Where to compute: cpu, cuda or cuda:N";

// An option that is --set KEY.
CLI::Option* add_setting(CLI::App& command, RecipeArguments& arguments, const char* name,
                         const std::string& key, const char* text) {
  return command.add_option_function<std::string>(
      name, [&arguments, key](const std::string& value) { arguments.settings.push_back(key + "=" + value); },
      text);
}

CLI::Option* add_seed(CLI::App& command, RecipeArguments& arguments) {
  return add_setting(command, arguments, "--seed", "train.seed", "Seed of weights, batches and dropout")
      ->type_name("N");
}

}  // namespace

Program::Program() : app_("Hypercomplex neural networks: train, compare and use them.", "quatrain") {
  const std::string made_from = *commit() ? std::string(" (") + commit() + ")" : "";
  app_.set_version_flag("--version", std::string("quatrain ") + version() + made_from);
  app_.require_subcommand(1);
  app_.footer(kFooter);
  app_.set_help_flag("-h,--help", "Print this help and exit");
  add_train();
  add_average();
  add_evaluate();
  add_predict();
  add_shortlist();
  add_score();
  add_runs();
  add_check();
  add_plot();
  add_convert();
  add_compare();
  add_bench();
  add_info();
  add_recipes();
}

int Program::run(int count, char** words) {
  try {
    app_.parse(count, words);
  } catch (const CLI::Success& success) {  // --help, --version
    return run_guarded([&] { return app_.exit(success); });
  } catch (const CLI::ParseError& error) {
    std::fprintf(stderr, "quatrain: %s\n", explain(error, app_, {words + 1, words + count}).c_str());
    return kUsage;
  }
  forgive_closed_output(app_.get_subcommands().front()->get_name());
  if (computes_) calm_openmp(words);
  keep_freed_memory();
  return run_guarded(chosen_);
}

void Program::add_train() {
  auto* command = app_.add_subcommand("train", "Train a model by a recipe");
  command->footer(kTrainFooter);
  add_recipe_options(*command, train_);
  add_out(*command, train_);
  command->add_option("--twin", train_.twin, "Train this twin of the recipe")->type_name("NAME");
  add_seed(*command, train_);
  add_setting(*command, train_, "--weights", "train.weights",
              "Start from the weights of this run or safetensors file")
      ->type_name("RUN|FILE")
      ->check([](const std::string& value) {
        return value.empty() ? "must name a run or a file; --set train.weights= draws new weights"
                             : std::string();
      });
  auto* resume = command->add_flag("--resume", train_.resume,
                                   "Continue the run in --out, or in RECIPE if that is a run");
  command->add_option("--from", train_.from, "Resume from this checkpoint of the run (default: last)")
      ->type_name("CHECKPOINT")
      ->needs(resume);
  add_setting(*command, train_, "--keep", "train.keep",
              "Keep this many checkpoints that training can continue from")
      ->type_name("N");
  command->add_flag_callback(
      "--deterministic", [this] { train_.settings.push_back("train.deterministic=true"); },
      "Refuse operations of torch that may give other bits each time");
  add_setting(*command, train_, "--device", "train.device", kDevice)->type_name("DEVICE");
  command->add_flag("--overwrite", train_.overwrite, "Replace the run in --out")->excludes(resume);
  command->callback([this] { chosen_ = [this] { return train_command(train_); }; });
}

void Program::add_average() {
  auto* command =
      app_.add_subcommand("average", "Average the weights of a run's checkpoints into a run of its own");
  command->footer(kAverageFooter);
  command->add_option("run", average_.run, "Folder of a run")->required()->type_name("RUN");
  command->add_option("--out", average_.out, "Folder of the new run")
      ->required()
      ->check(not_empty, "", "")
      ->type_name("FOLDER");
  auto* last = command
                   ->add_option("--last", average_.last,
                                "The latest checkpoints, at most so many (default: all that are kept)")
                   ->check(CLI::Range(2, 1 << 20))
                   ->type_name("K");
  command
      ->add_option("--best", average_.best,
                   "Of all that are kept those with the best figures of the dev set, at most so many")
      ->check(CLI::Range(2, 1 << 20))
      ->type_name("K")
      ->excludes(last);
  command->add_option("--data", average_.data, "Folder of the data (default: the run's)")
      ->type_name("FOLDER")
      ->check(CLI::ExistingPath);
  command->add_option("--device", average_.device, kDevice)->type_name("DEVICE")->capture_default_str();
  command->callback([this] { chosen_ = [this] { return average_command(average_); }; });
}

void Program::add_evaluate() {
  auto* command = app_.add_subcommand("evaluate", "Score a trained run");
  command->footer(kEvaluateFooter);
  command->add_option("run", evaluate_.run, "Folder of a run")->required()->type_name("RUN");
  command->add_option("--data", evaluate_.data, "Folder of the data (default: the run's)")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory);
  command->add_option("--split", evaluate_.split, "Which set: train, dev or test")
      ->check(CLI::IsMember({"train", "dev", "test"}))
      ->capture_default_str();
  add_with(*command, evaluate_.with);
  command->add_option("--out", evaluate_.out, "Folder to write what was answered, and where it is wrong")
      ->check(not_empty, "", "")
      ->type_name("FOLDER");
  command->add_option("--device", evaluate_.device, kDevice)->type_name("DEVICE")->capture_default_str();
  add_free_settings(*command, evaluate_.settings);
  command->add_option("--json", evaluate_.json, "Write the figures as JSON; - is the standard output")
      ->type_name("FILE");
  command->callback([this] { chosen_ = [this] { return evaluate_command(evaluate_); }; });
}

void Program::add_predict() {
  auto* command =
      app_.add_subcommand("predict", "Answer lines with a trained run: those of the standard input");
  command->footer(kPredictFooter);
  command->add_option("run", predict_.run, "Folder of a run")->required()->type_name("RUN");
  command
      ->add_option("lines", predict_.lines,
                   "Answer these instead: texts, or the files of a run of speech or images")
      ->type_name("LINE");
  auto* live =
      command->add_flag("--live", predict_.live,
                        "The standard input is sound: raw samples of one channel, 16 bits each, the low "
                        "byte first. What is new in the answer is a line, or = and the whole answer so far "
                        "where printed words have changed; the last line is the whole answer");
  command
      ->add_option("--rate", predict_.rate, "Samples in a second of --live (default: as the run was trained)")
      ->check(CLI::Range(100, 1000000))
      ->type_name("HZ")
      ->needs(live);
  command
      ->add_flag(
          "--skip-bad", predict_.skip_bad,
          "A line that cannot be read gets an empty answer and a sentence, and the others are answered; "
          "the exit code is 1 then. Runs of speech and images always do so")
      ->excludes(live);
  add_with(*command, predict_.with)->excludes(live);
  add_free_settings(*command, predict_.settings);
  command->add_option("--device", predict_.device, kDevice)->type_name("DEVICE")->capture_default_str();
  command->callback([this] { chosen_ = [this] { return predict_command(predict_); }; });
}

void Program::add_shortlist() {
  auto* command = app_.add_subcommand(
      "shortlist", "Find which target tokens are likely for each source token, so that fewer are scored");
  command->footer(kShortlistFooter);
  auto& a = shortlist_;
  command->add_option("run", a.run, "Folder of a run that translates")->required()->type_name("RUN");
  command->add_option("--data", a.data, "Folder of the data (default: the run's)")
      ->type_name("FOLDER")
      ->check(CLI::ExistingPath);
  command->add_option("--best", a.best, "Likeliest target tokens of each source token")
      ->check(CLI::Range(1, 10000))
      ->type_name("N")
      ->capture_default_str();
  command->add_option("--frequent", a.frequent, "Most frequent target tokens, which every sentence has")
      ->check(CLI::Range(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  command->callback([this] { chosen_ = [this] { return shortlist_command(shortlist_); }; });
}

void Program::add_runs() {
  auto* command = app_.add_subcommand("runs", "List the runs in a folder with their figures");
  command->footer(kRunsFooter);
  command->add_option("folder", runs_.folder, "Where to look, in folders below too")
      ->type_name("FOLDER")
      ->capture_default_str();
  command->add_option("--json", runs_.json, "Write the list as JSON; - is the standard output")
      ->type_name("FILE");
  command->callback([this] { chosen_ = [this] { return runs_command(runs_); }; });
}

void Program::add_check() {
  auto* command = app_.add_subcommand("check", "Verify every file of a run");
  command->footer(kCheckFooter);
  command->add_option("run", check_.run, "Folder of a run")->required()->type_name("RUN");
  command->add_flag("--accept", check_.accept,
                    "Take changed files for the run's own, where they can be read and fit together");
  command->callback([this] { chosen_ = [this] { return check_command(check_); }; });
}

void Program::add_plot() {
  auto* command = app_.add_subcommand("plot", "Draw the curves of one or several runs (with gnuplot)");
  command->footer(kPlotFooter);
  command->add_option("runs", plot_.runs, "Folders of runs")->required()->type_name("RUN");
  command->add_option("--out", plot_.out, "What to write, .svg or .png")
      ->type_name("FILE")
      ->capture_default_str();
  command->add_option("--figure", plot_.figure, "Figure of the dev set (default: the one that selects)")
      ->type_name("NAME");
  command->add_flag("--log", plot_.logarithmic, "Draw the values on a logarithmic axis");
  command->callback([this] { chosen_ = [this] { return plot_command(plot_); }; });
}

void Program::add_convert() {
  auto* command = app_.add_subcommand(
      "convert", "Turn a trained real model into a hypercomplex one, or write a run for another program");
  command->footer(kConvertFooter);
  auto& a = convert_;
  const auto patterns = [&](const char* name, auto& value, const char* text) {
    command->add_option(name, value, text)->type_name("PATTERN")->allow_extra_args(false);
  };
  command->add_option("in", a.in, "Weights or run of a real model")->required()->type_name("IN");
  command->add_option("out", a.out, "What to write")->required()->check(not_empty, "", "")->type_name("OUT");
  auto* algebra = command
                      ->add_option("--algebra", a.algebra,
                                   "What the layers shall multiply with: quaternion, 'phm(4)' ...")
                      ->type_name("ALGEBRA");
  auto* to = command
                 ->add_option("--to", a.to,
                              "Write a run for another program instead, into the folder OUT: ctranslate2 "
                              "(translation), kaldi (log posteriors of speech)")
                 ->type_name("FORMAT")
                 ->excludes(algebra);
  command->add_option("--data", a.data, "With --to kaldi: folder of the recordings (default: the run's)")
      ->type_name("FOLDER")
      ->check(CLI::ExistingDirectory)
      ->needs(to);
  command
      ->add_option("--split", a.split,
                   "With --to kaldi: the only set, train, dev or test (default: dev and test)")
      ->check(CLI::IsMember({"train", "dev", "test"}))
      ->needs(to);
  add_free_settings(*command, a.settings)->needs(to);
  patterns("--where", a.where, "Convert the layers of these names only; may be repeated");
  patterns("--except", a.except, "Leave the layers of these names; may be repeated");
  command
      ->add_option("--heads", a.heads, "Heads of the attention, where IN is a weights file of Quatrain's own")
      ->check(CLI::Range(1, 1 << 16));
  command->add_option("--json", a.json, "Write the report as JSON; - is the standard output")
      ->type_name("FILE")
      ->excludes(to);
  command->add_flag("--overwrite", a.overwrite, "Replace OUT")->excludes(to);
  command->callback([this] { chosen_ = [this] { return convert_command(convert_); }; });
}

void Program::add_compare() {
  auto* command = app_.add_subcommand("compare", "Train a recipe's twins and print them side by side");
  command->footer(kCompareFooter);
  add_recipe_options(*command, compare_);
  add_twins(*command, compare_);
  add_out(*command, compare_);
  add_setting(*command, compare_, "--device", "train.device",
              "Where to train: cpu, cuda or cuda:N. Times are those of the CPU")
      ->type_name("DEVICE");
  auto* seed = add_seed(*command, compare_);
  command
      ->add_option("--seeds", compare_.seeds, "Number of seeds, or a list of them: 5 or 1,2,3 (default: one)")
      ->type_name("N|LIST")
      ->excludes(seed);
  command->add_option("--json", compare_.json, "Write everything as JSON too; - is the standard output")
      ->type_name("FILE");
  command->callback([this] { chosen_ = [this] { return compare_command(compare_); }; });
}

void Program::add_bench() {
  auto* bench = app_.add_subcommand("bench", "Time layers and models beside the real ones");
  bench->footer(kBenchFooter);
  bench->require_subcommand(0, 1);
  bench->callback([this, bench] {
    computes_ = false;  // threads as other programs have them: spinning, so that small layers gain from them
    if (!bench->get_subcommands().empty()) return;
    chosen_ = [bench] {
      std::fputs(bench->help("quatrain").c_str(), stdout);
      return static_cast<int>(kSuccess);
    };
  });
  bench_.add_to(*bench, chosen_);
}

void Program::add_info() {
  auto* command = app_.add_subcommand("info", "Say what this program runs on; what a bug report needs");
  command->footer(kInfoFooter);
  auto* algebras = command->add_subcommand("algebras", "List the algebras: dimension, rank, properties");
  command->require_subcommand(0, 1);
  command->callback([this, algebras] {
    const bool list = algebras->parsed();
    computes_ = false;
    chosen_ = [list] { return list ? info_algebras_command() : info_command(); };
  });
}

void Program::add_recipes() {
  auto* command = app_.add_subcommand("recipes", "List or show the recipes");
  command->footer(kRecipesFooter);
  command->require_subcommand(0, 1);
  command->add_subcommand("list", "List them (the default)");
  auto* show = command->add_subcommand("show", "Print one");
  show->add_option("name", name_, "Name of a recipe, a file or a run")->required()->type_name("NAME");
  auto* document =
      command->add_subcommand("document", "Print docs/recipes.md: every key, made from the program's table");
  command->callback([this, show, document] {
    const bool one = show->parsed(), all = document->parsed();
    computes_ = false;
    chosen_ = [this, one, all] {
      return all ? recipes_document_command() : one ? recipes_show_command(name_) : recipes_list_command();
    };
  });
}

}  // namespace quatrain::cli
