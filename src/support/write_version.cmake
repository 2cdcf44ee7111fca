# Writes version.cpp, whenever the version or the commit has changed: cmake -D OUTPUT=FILE -D VERSION=V -D SOURCES=FOLDER -P
execute_process(COMMAND git -C ${SOURCES} rev-parse --show-toplevel OUTPUT_VARIABLE top OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
set(commit "")
if(top STREQUAL SOURCES)  # not that of a checkout around an unpacked archive
  execute_process(COMMAND git -C ${SOURCES} describe --always --dirty --abbrev=10 --exclude *
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT [[#include "support/version.h"

namespace quatrain {

const char* version() {
  return "@VERSION@";
}

const char* commit() {
  return "@commit@";
}

}  // namespace quatrain
]] @ONLY)
