// Reports as input of the report tests.
#pragma once

#include <random>

#include "tools/fence_scope/report/report.hpp"

namespace uptempo::fence_scope::examples {

// Times of `samples`, with their median and interval.
Times times_of(std::vector<double> samples_us);

// A report of `scopes` on a chain of four dispatches and a copy: the positions first, interior and
// last with 18 settings each. It has every kind of verdict, counts, a model, one noisy cell, and
// names that contain markup and commas.
Report scopes_report();
// A report of `sweep` on hardware: four lengths of batch with three settings each, and device
// times.
Report sweep_report();
// A report of `ladder`: six rungs; some of their model times are restated, others predicted.
Report ladder_report();

// Anything that a Report can hold, except NaN.
Report random_report(std::mt19937_64& random);

}  // namespace uptempo::fence_scope::examples
