#include "quatrain/tasks/kind.h"

#include "tasks/copy_memory/kind.h"
#include "tasks/images/kind.h"
#include "tasks/language_model/kind.h"
#include "tasks/regression/kind.h"
#include "tasks/seq2seq/kind.h"
#include "tasks/speech/kind.h"
#include "tasks/text_classification/kind.h"
#include "tasks/text_pairs/kind.h"

// The list of kinds: a folder's line stands here, and nowhere else.
namespace quatrain::tasks {
namespace {

std::vector<const Kind*>& list() {
  static std::vector<const Kind*> all{&text_classification(), &regression(), &seq2seq(),    &language_model(),
                                      &copy_memory(),         &speech(),     &text_pairs(), &images()};
  return all;
}

}  // namespace

const std::vector<const Kind*>& kinds() {
  return list();
}

void add_kind(std::unique_ptr<const Kind> kind) {
  const std::string& name = kind->about().name;
  for (const Kind* known : list())
    if (known->about().name == name)
      throw std::invalid_argument("add_kind: the name must be free, '" + name + "' is taken");
  list().push_back(kind.release());  // for the life of the process
}

}  // namespace quatrain::tasks
