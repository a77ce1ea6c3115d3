// Reports that tests of reports are made on.
#pragma once

#include <random>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope::examples {

// Of `samples` around their median, interval and all.
Times times_of(std::vector<double> samples_us);

// `scopes` on a chain of four dispatches and a copy: positions first, interior and last, each 18 settings; every kind of verdict, counts, a model, one noisy
// cell; names that hold markup and commas.
Report scopes_report();
// `sweep`: four lengths of batch by three settings, of hardware, with device times.
Report sweep_report();
// `ladder`: six rungs, some of whose modelled times are restated, others predicted.
Report ladder_report();

// Whatever a Report can hold, but for NaN.
Report random_report(std::mt19937_64& random);

}  // namespace uptempo::fence_scope::examples
