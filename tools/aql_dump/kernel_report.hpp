// Report of `aql_dump kernels`: what each kernel reads before its own work starts, and how to avoid
// it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace uptempo::aql_dump {

struct KernelReport {
  std::string text;  // lines of at most 80 columns, except for longer names
  nlohmann::ordered_json json;
};

// `bytes`: a code object, an offload bundle, or a program that contains bundles. Throws
// std::runtime_error that names the source for anything else.
KernelReport report_kernels(const std::string& bytes, const std::string& name);

}  // namespace uptempo::aql_dump
