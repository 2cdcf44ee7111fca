#pragma once

#include <string>
#include <vector>

#include "tasks/speech/classes.h"
#include "tasks/speech/data.h"
#include "tasks/task_parts.h"

namespace quatrain::tasks {

/// Sets of recordings, and what there is to say of them.
struct PreparedSpeech {
  SpeechSplits splits;
  SpeechClasses classes;
  std::vector<std::string> notes;
  Checksums checksums;
};

/// Whether what was said, and when, is there to learn from or to score against; or sound alone is to be
/// heard.
enum class Labels { needed, none };

/// Reads the sets that are asked for and sorts out what cannot be used; with task.skip_bad that is left out
/// and counted, else it is an error. The recipe is settled: its folder, rate and bands.
PreparedSpeech prepare_speech(Recipe& recipe, const DataRequest& request, Labels labels = Labels::needed);

}  // namespace quatrain::tasks
