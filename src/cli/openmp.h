#pragma once

namespace quatrain::cli {

/// Sees that OpenMP has a short GOMP_SPINCOUNT, unless the environment says how its threads wait. Mostly a
/// function that runs before the libraries are initialised has done so; else the program is started again.
/// To be called before anything is read or written.
///
/// By default a thread that waits for the others spins for milliseconds. Where they have to share a processor
/// with other work, that keeps them from it: training on two threads of a busy machine was seen to take 70
/// times as long. The runtime reads the environment when it is loaded, before main.
void calm_openmp(char** words);

}  // namespace quatrain::cli
