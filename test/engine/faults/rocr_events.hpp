// Events that ROCr keeps for itself.
#pragma once

#include <cstdint>

namespace uptempo::faults {

// ROCr takes an event of the driver for each interrupt signal. It keeps those of destroyed signals
// for new ones and destroys none before HSA is shut down (EventPool, interrupt_signal.cpp at
// 6.1.2). So while HSA stays initialised, the driver holds as many as were ever in use at once.
//
// Returns the number of events that no signal has: that of new signals for which ROCr asks the
// driver for none. 0 without HSA or without an agent.
//
// Asks the driver for one more event than it returns. If that is refused, ROCr never asks again.
// So call it last.
uint64_t count_spare_events();

}  // namespace uptempo::faults
