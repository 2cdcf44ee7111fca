// What `quatrain score` takes.

#include "cli/command_line.h"
#include "cli/footers.h"
#include "support/text.h"

namespace quatrain::cli {

void Program::add_score() {
  auto* command = app_.add_subcommand(
      "score", "Score translations (BLEU and chrF) or recognised speech (error rates) beside references");
  command->footer(kScoreFooter);
  command->add_option("hypotheses", score_.hypotheses, "Lines to score; - is the standard input")
      ->required()
      ->type_name("HYPOTHESES");
  command
      ->add_option("references", score_.references,
                   "What each line should be; several files are several references of each")
      ->required()
      ->type_name("REFERENCES");
  command
      ->add_option("--metric", score_.metric,
                   "bleu (with chrF), or the error rate of words (wer) or characters (cer)")
      ->check(CLI::IsMember({"bleu", "wer", "cer"}))
      ->capture_default_str();
  command
      ->add_option("--tokenize", score_.tokenize,
                   "How BLEU finds words: 13a in raw text (default), none where they stand apart, char for "
                   "characters")
      ->check(CLI::IsMember({"13a", "none", "char"}));
  command
      ->add_option("--alignment", score_.alignment,
                   "How wer and cer count errors: fewest_edits (default), as Kaldi does, or with the weights "
                   "of NIST's sclite")
      ->check(CLI::IsMember({"fewest_edits", "sclite"}));
  command
      ->add_option("--confusions", score_.confusions,
                   "With wer and cer: write what was taken for what, and how often, into this table")
      ->check(
          [](const std::string& name) {
            return name.empty() || name == "-" ? "must be a file, got " + quote(name) : "";
          },
          "", "")
      ->type_name("FILE");
  command->add_option("--json", score_.json, "Write the scores as JSON too; - is the standard output")
      ->type_name("FILE");
  command->callback([this] {
    computes_ = false;
    chosen_ = [this] { return score_command(score_); };
  });
}

}  // namespace quatrain::cli
