// Everything a host program needs to dispatch kernels: one include.
//
//   #include <engine/uptempo.hpp>
//   using namespace uptempo;
//
//   Runtime runtime;
//   Agent   gpu = runtime.gpu();
//   // from <kernels/bitonic_sort.hpp>, which uptempo_add_kernels makes
//   Program program{gpu, kernels::bitonic_sort()};
//   auto    sort = program.kernel<uint32_t*, uint32_t, uint32_t, uint32_t>("bitonic_sort");
//   Queue   queue{gpu};
//   DeviceBuffer<uint32_t> keys{gpu, 32768};
//
//   BatchSubmitter batch{queue};
//   for (uint32_t stage = 0; stage < 15; ++stage)
//     for (uint32_t pass = 0; pass <= stage; ++pass)
//       batch.dispatch(sort, Grid{16384}.by(256), keys.data(), stage, pass, 1u);
//   batch.submit().wait();                               // 120 packets, 1 doorbell, 1 signal
//
// Errors: set-up may throw Error, and misuse does. The hot path (dispatch, submit, wait) throws
// only if the device has failed, a deadline has passed or an argument is impossible. Each header
// states its contracts: thread safety, lifetime, order, errors.
#pragma once

#include "engine/completion/awaitable.hpp"
#include "engine/completion/completion.hpp"
#include "engine/completion/notifier.hpp"
#include "engine/dispatch/batch_submitter.hpp"
#include "engine/dispatch/queue.hpp"
#include "engine/fences/fence_plan.hpp"
#include "engine/memory/buffer.hpp"
#include "engine/memory/kernarg_placement.hpp"
#include "engine/program/kernel_start.hpp"
#include "engine/program/program.hpp"
#include "engine/recording/recording.hpp"
#include "engine/recording/recording_file.hpp"
#include "engine/runtime/agent.hpp"
#include "engine/runtime/counters.hpp"
#include "engine/runtime/error.hpp"
#include "engine/runtime/ring_access.hpp"
#include "engine/runtime/runtime.hpp"
#include "engine/runtime/signal.hpp"
#include "engine/stream/launcher.hpp"
#include "engine/stream/queue/event.hpp"
#include "engine/stream/stream.hpp"
#include "engine/stream/streams.hpp"
