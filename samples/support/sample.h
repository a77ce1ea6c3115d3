// run_sample() of sample.hpp for samples in C.
#ifndef UPTEMPO_TOOLS_SUPPORT_SAMPLE_H
#define UPTEMPO_TOOLS_SUPPORT_SAMPLE_H

#ifdef __cplusplus
extern "C" {
#endif

// Parses `--device auto|hardware|virtual`, chooses that device, and runs `body` with its name:
// "hardware" or "virtual GPU". `body` returns 1 if its results are right, and 0 if they are wrong
// or a call failed, which it has reported. Returns the exit code. Call it first in main(): it may
// replace the process by the same program under uptempo-vgpu.
int uptempo_run_sample(const char* name, const char* description, int argc, char** argv,
                       int (*body)(const char* device));

#ifdef __cplusplus
}
#endif

#endif
